package redisstore_test

import (
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// A user costs Redis as much however many there are. The bounds leave other versions some
// room above what Redis 7.0 takes.
func TestMemoryForEachUser(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{})
	for rates, most := range map[int]int64{1: 240, 2: 250, 4: 300} {
		rdb.FlushDB(t.Context())
		limits := make([]gcra.Limit, rates)
		for i := range limits {
			limits[i] = gcra.Limit{Interval: 3_600_000_000_001, Offset: 36_000_000_000_010}
		}
		before, users := usedMemory(t, rdb), 0
		for _, goal := range []int{1 << 14, 1 << 16} {
			for users < goal {
				requests := make([]ratetier.Request, 256)
				for i := range requests {
					requests[i] = ratetier.Request{Key: ratetier.Key{Tier: "free", User: strconv.Itoa(users)}, Limits: limits, Cost: 1}
					users++
				}
				if _, err := store.Together(t.Context(), requests); err != nil {
					t.Fatal(err)
				}
			}
			each := (usedMemory(t, rdb) - before) / int64(users)
			t.Logf("%d rates, %d users: %d bytes each", rates, users, each)
			if each > most {
				t.Errorf("%d rates, %d users: %d bytes each, want at most %d", rates, users, each, most)
			}
		}
	}
}

func usedMemory(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	bytes, err := strconv.ParseInt(rdb.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
