package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// clocked is a store whose clock, and that of the server, stand still until told.
type clocked struct {
	*redisstore.Store
	now time.Time
}

func newClocked(rdb redis.UniversalClient, config redisstore.Config) *clocked {
	c := &clocked{Store: redisstore.New(rdb, config), now: time.Unix(1_800_000_000, 0)}
	c.SetClock(func() time.Time { return c.now })
	return c
}

// Each step is a take; asked tells whether Redis has to be asked.
func TestADenialIsRepeatedForAsLongAsRedisWouldRepeatIt(t *testing.T) {
	const tenPerSecond = 100 * time.Millisecond
	limits := []gcra.Limit{{Interval: int64(tenPerSecond), Offset: 10 * int64(tenPerSecond)}}
	rdb := startServer(t).client(t)
	store := newClocked(rdb, redisstore.Config{})
	start := store.now
	for _, step := range []struct {
		at      time.Duration
		cost    int64
		allowed bool
		asked   bool
		used    time.Duration
	}{
		{0, 10, true, true, time.Second},
		{0, 1, false, true, time.Second},
		{0, 1, false, false, time.Second},
		{50 * time.Millisecond, 1, false, false, 950 * time.Millisecond},
		{99 * time.Millisecond, 1, false, false, 901 * time.Millisecond},
		{99 * time.Millisecond, 0, true, true, 901 * time.Millisecond}, // a peek
		{100 * time.Millisecond, 2, false, false, 900 * time.Millisecond},
		{100 * time.Millisecond, 1, true, true, time.Second}, // what was refused was too much
		{150 * time.Millisecond, 3, false, false, 850 * time.Millisecond},
		{500 * time.Millisecond, 10, false, false, 500 * time.Millisecond},
		{999 * time.Millisecond, 10, false, false, time.Millisecond},
		{1000 * time.Millisecond, 10, false, true, 100 * time.Millisecond},
		{1050 * time.Millisecond, 10, false, false, 50 * time.Millisecond},
		{1050 * time.Millisecond, 9, true, true, 950 * time.Millisecond},
	} {
		store.now = start.Add(step.at)
		before := store.Stats()
		request := ratetier.Request{Key: ana, Limits: limits, Cost: step.cost}
		var result ratetier.Result
		if err := store.Apply(t.Context(), &request, &result); err != nil {
			t.Fatal(err)
		}
		after := store.Stats()
		asked := after.Checks > before.Checks
		if result.Allowed != step.allowed || asked != step.asked || asked == (after.Repeated > before.Repeated) {
			t.Errorf("%+v: allowed %t, asked %t", step, result.Allowed, asked)
		}
		if used := time.Duration(result.Used[0]); used != step.used {
			t.Errorf("%+v: used %v", step, used)
		}
	}
}

func TestADenialIsForgottenWhenItMayNoLongerHold(t *testing.T) {
	rdb := startServer(t).client(t)
	limits := []gcra.Limit{tenPerMinute}
	more := []gcra.Limit{{Interval: tenPerMinute.Interval / 2, Offset: tenPerMinute.Offset}}
	apply := func(store *clocked, mode ratetier.Mode, key ratetier.Key, limits []gcra.Limit) {
		t.Helper()
		var result ratetier.Result
		request := ratetier.Request{Mode: mode, Key: key, Limits: limits, Cost: 1}
		if err := store.Apply(t.Context(), &request, &result); err != nil {
			t.Fatal(err)
		}
	}
	bea := ratetier.Key{Tier: "free", User: "bea"}
	anonymous := ana
	anonymous.Anonymous = true
	for _, test := range []struct {
		name   string
		config redisstore.Config
		change func(*clocked)
		key    ratetier.Key
		limits []gcra.Limit
		asked  bool
	}{
		{"nothing", redisstore.Config{}, func(*clocked) {}, ana, limits, false},
		{"another's refund", redisstore.Config{}, func(s *clocked) { apply(s, ratetier.ModeRefund, bea, limits) }, ana, limits, false},
		{"refund", redisstore.Config{}, func(s *clocked) { apply(s, ratetier.ModeRefund, ana, limits) }, ana, limits, true},
		{"charge", redisstore.Config{}, func(s *clocked) { apply(s, ratetier.ModeCharge, ana, limits) }, ana, limits, true},
		{"reset", redisstore.Config{}, func(s *clocked) { _ = s.Reset(t.Context(), ana) }, ana, limits, true},
		{"a second", redisstore.Config{}, func(s *clocked) { s.now = s.now.Add(time.Second) }, ana, limits, true},
		{"another quota", redisstore.Config{}, func(*clocked) {}, ana, more, true},
		{"another bucket", redisstore.Config{}, func(*clocked) {}, anonymous, limits, true},
		{"switched off", redisstore.Config{AskAlways: true}, func(*clocked) {}, ana, limits, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			rdb.FlushDB(t.Context())
			store := newClocked(rdb, test.config)
			for range 11 {
				apply(store, ratetier.ModeTake, ana, limits)
			}
			test.change(store)
			before := store.Stats().Checks
			apply(store, ratetier.ModeTake, test.key, test.limits)
			if asked := store.Stats().Checks > before; asked != test.asked {
				t.Errorf("Redis asked: %t, want %t", asked, test.asked)
			}
		})
	}
}
