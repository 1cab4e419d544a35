package redisstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/storetest"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// Real Redis can be told no time, so the store goes by a clock of the test.
func TestConformanceOnRedis(t *testing.T) {
	rdb := startServer(t).client(t)
	storetest.Run(t, subject(t, rdb))
}

// subject returns a subject whose stores go by the time of the suite.
func subject(t testing.TB, rdb redis.UniversalClient) storetest.Subject {
	t.Helper()
	var now atomic.Int64
	open := func() (ratetier.Store, error) {
		store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
		store.SetClock(func() time.Time { return time.Unix(0, now.Load()) })
		store.Keep()
		return store, nil
	}
	return storetest.Subject{
		New: func() (ratetier.Store, error) {
			if err := rdb.FlushDB(t.Context()).Err(); err != nil {
				return nil, err
			}
			return open()
		},
		Peer:    open,
		SetTime: func(to time.Time) { now.Store(to.UnixNano()) },
		Buckets: func() (int, error) {
			n, err := rdb.DBSize(t.Context()).Result()
			return int(n), err
		},
	}
}

// miniredis has the time of the suite, for its clock and for the expiry of keys.
func TestConformanceOnMiniredis(t *testing.T) {
	mini := miniredis.RunT(t)
	mini.ClockTTL(true)
	rdb := newClient(t, mini.Addr())
	open := func() (ratetier.Store, error) {
		return redisstore.New(rdb, redisstore.Config{Timeout: time.Minute, AskAlways: true}), nil
	}
	storetest.Run(t, storetest.Subject{
		New: func() (ratetier.Store, error) {
			mini.FlushAll()
			mini.SetError("")
			return open()
		},
		Peer:    open,
		SetTime: mini.SetTime,
		Buckets: func() (int, error) { return len(mini.Keys()), nil },
		Fail:    func() { mini.SetError("ERR failing") },
	})
}
