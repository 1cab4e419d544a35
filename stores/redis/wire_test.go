package redisstore_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// What is stored is what services in other languages that share the limit expect.
func TestOneRateIsStoredAsAnIntegerThatExpiresWhenTheBucketIsFull(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{})
	if _, err := take(t.Context(), store, ana, 10); err != nil {
		t.Fatal(err)
	}
	const key = "trt:free:33d2315cbeb866b8b237240a98d605f2e6e41b8a"
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != key {
		t.Fatalf("keys %q, want only %s", keys, key)
	}
	if value := rdb.Get(t.Context(), key).Val(); !regexp.MustCompile(`^\d{16}$`).MatchString(value) {
		t.Errorf("value %q, want microseconds", value)
	}
	if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 50*time.Second || ttl > time.Minute {
		t.Errorf("expires in %v, want a minute or just under", ttl)
	}
}

func TestKeys(t *testing.T) {
	rdb := startServer(t).client(t)
	address := ratetier.Key{Tier: "free", User: "192.0.2.1", Anonymous: true}
	for _, test := range []struct {
		config redisstore.Config
		key    ratetier.Key
		want   string
	}{
		{redisstore.Config{}, ana, "trt:free:33d2315cbeb866b8b237240a98d605f2e6e41b8a"},
		{redisstore.Config{}, address, "trt:free@e7ac7ecd794e71914a63e2cbdca798fceb5afd12"},
		{redisstore.Config{Secret: "Jefe"}, ratetier.Key{Tier: "free", User: "what do ya want for nothing?"},
			"trt:free:effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"}, // RFC 2202, test case 2
		{redisstore.Config{ReadableKeys: true}, ana, "trt:4:free:key_ana"},
		{redisstore.Config{ReadableKeys: true}, address, "trt:4:free@192.0.2.1"},
		{redisstore.Config{Prefix: "api"}, ana, "api:free:33d2315cbeb866b8b237240a98d605f2e6e41b8a"},
	} {
		rdb.FlushDB(t.Context())
		if _, err := take(t.Context(), redisstore.New(rdb, test.config), test.key, 1); err != nil {
			t.Fatal(err)
		}
		if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != test.want {
			t.Errorf("%v: keys %q, want only %s", test.config, keys, test.want)
		}
	}
}

// Each rate has its TAT, and a fraction where it is not a whole microsecond.
func TestValues(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{})
	now := time.Unix(1_800_000_000, 0)
	store.SetClock(func() time.Time { return now })
	limit := func(interval, burst int64) gcra.Limit {
		return gcra.Limit{Interval: interval, Offset: interval * burst}
	}
	for _, test := range []struct {
		limits []gcra.Limit
		value  string
		ms     int64
	}{
		{[]gcra.Limit{limit(6e9, 10)}, "1800000006000000", 6000},
		{[]gcra.Limit{limit(6e9, 10), limit(864e9, 100)}, "1800000006000000 1800000864000000", 864_000},
		{[]gcra.Limit{limit(1_764_705_883, 17)}, "1800000001764705.883", 1765},
		{[]gcra.Limit{limit(60_000_000_001, 1)}, "1800000060000000.001", 60_001},
		{[]gcra.Limit{limit(60_000_000_090, 1), limit(1e9, 1)}, "1800000060000000.090 1800000001000000", 60_001},
		{[]gcra.Limit{limit(int64(gcra.MaxOffset), 1)}, "4953600000000000", 3_153_600_000_000},
		{[]gcra.Limit{limit(int64(gcra.MaxOffset)-1, 1)}, "4953599999999999.999", 3_153_600_000_000},
	} {
		rdb.FlushDB(t.Context())
		request := ratetier.Request{Key: ana, Limits: test.limits, Cost: 1}
		var result ratetier.Result
		if err := store.Apply(t.Context(), &request, &result); err != nil || !result.Allowed {
			t.Fatalf("%v: %+v, %v", test.limits, result, err)
		}
		key := onlyKey(t, rdb)
		if value := rdb.Get(t.Context(), key).Val(); value != test.value {
			t.Errorf("%v: value %q, want %q", test.limits, value, test.value)
		}
		if ms := rdb.PTTL(t.Context(), key).Val().Milliseconds(); ms > test.ms || ms < test.ms-1000 {
			t.Errorf("%v: expires in %d ms, want %d or just under", test.limits, ms, test.ms)
		}
		for i, limit := range test.limits {
			if result.Used[i] != limit.Interval {
				t.Errorf("%v: used %v, want one interval", test.limits, result.Used)
			}
		}
	}
}

func onlyKey(t *testing.T, rdb redis.UniversalClient) string {
	t.Helper()
	keys := rdb.Keys(t.Context(), "*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q, want one", keys)
	}
	return keys[0]
}

// What is under the key and no bucket is a full one, and is overwritten.
func TestWhatIsNoBucketHeals(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{})
	if _, err := take(t.Context(), store, ana, 1); err != nil {
		t.Fatal(err)
	}
	key := onlyKey(t, rdb)
	future := "1999999999999999"
	spoil := map[string]func(){
		"a list": func() { rdb.RPush(t.Context(), key, "a", "b") },
		"a hash": func() { rdb.HSet(t.Context(), key, "a", "b") },
		"a set":  func() { rdb.SAdd(t.Context(), key, "a") },
	}
	for _, value := range []string{
		"", " ", "nonsense", "-1", "nan", "inf", "1e15", "0x10", "1,5", "1.5", "1.5000", future + ".", ".123",
		future + " nonsense", "nonsense " + future, future + "\n", future + "\x00", strings.Repeat("9", 400),
	} {
		spoil[value] = func() { rdb.Set(t.Context(), key, value, 0) }
	}
	for name, spoil := range spoil {
		rdb.Del(t.Context(), key)
		spoil()
		result, err := take(t.Context(), store, ana, 3)
		if err != nil || !result.Allowed || result.Used[0] != 3*tenPerMinute.Interval {
			t.Errorf("%q: %+v, %v, want 3 of 10 used", name, result, err)
		}
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%q: expires in %v", name, ttl)
		}
		if err := store.Reset(t.Context(), ana); err != nil {
			t.Errorf("%q: reset: %v", name, err)
		}
		spoil()
		if err := store.Reset(t.Context(), ana); err != nil || rdb.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%q: after a reset (%v) it is still there", name, err)
		}
	}
}
