package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
	redisstore "github.com/ratetier/ratetier/stores/redis"
	"github.com/ratetier/ratetier/stores/redis/redistest"
)

// Whatever happens to Redis under load, each request is answered, the local limit holds to
// the cell, and the shared one is back when Redis is.
func TestRequestsAreDecidedWhateverHappensToRedis(t *testing.T) {
	for _, test := range []struct {
		name         string
		fault, mend  func(*redistest.Server, *redis.Client) error
		losesBuckets bool
	}{
		{"killed", kill, restart, true},
		{"frozen", signal(syscall.SIGSTOP), signal(syscall.SIGCONT), false},
		{"paused", command("CLIENT", "PAUSE", "60000", "WRITE"), command("CLIENT", "UNPAUSE"), false},
		{"full", command("CONFIG", "SET", "maxmemory", "1"), command("CONFIG", "SET", "maxmemory", "0"), false},
		{"read-only", command("REPLICAOF", "127.0.0.1", "1"), command("REPLICAOF", "NO", "ONE"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			const quota = 5000                     // and none comes back while the test runs
			const timeout = 500 * time.Millisecond // which Redis keeps on a busy machine
			const probeEvery = 100 * time.Millisecond
			s := redistest.Start(t)
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
			defer rdb.Close()
			admin := redis.NewClient(&redis.Options{Addr: s.Addr()})
			defer admin.Close()
			store := fallbackstore.New(redisstore.New(rdb, redisstore.Config{Timeout: timeout}), fallbackstore.Config{ProbeEvery: probeEvery})
			limiter := ratetier.Must(ratetier.New(ratetier.Config{
				Store:         store,
				Tiers:         ratetier.Tiers{"free": ratetier.Per(quota, quota*24*time.Hour)},
				OnStoreFailed: ratetier.Deny(503),
			}))
			l := newLoad(t, limiter)
			defer l.stop()

			wait(t, "requests to be shared", func() bool { return l.shared.Load() >= 500 })
			if err := test.fault(s, admin); err != nil {
				t.Fatal(err)
			}
			wait(t, "an outage", func() bool { return store.Stats().Down })
			l.quick.Store(true)
			began, local := time.Now(), l.local.Load()
			wait(t, "some probes to fail, and users to be refused", func() bool {
				return time.Since(began) > 5*probeEvery && l.local.Load() >= local+2*quota
			})
			if got := store.Stats(); !got.Down || got.Outages != 1 {
				t.Errorf("%+v, want one outage that lasts", got)
			}
			l.quick.Store(false)
			if err := test.mend(s, admin); err != nil {
				t.Fatal(err)
			}
			wait(t, "the outage to be over", func() bool { return !store.Stats().Down })
			shared := l.shared.Load()
			wait(t, "requests to be shared again", func() bool { return l.shared.Load() >= shared+2*quota })
			l.stop()

			if l.admittedLocally.Load() != quota {
				t.Errorf("admitted %d locally, want exactly %d", l.admittedLocally.Load(), quota)
			}
			most := int64(quota)
			if test.losesBuckets {
				most *= 2
			}
			if got := l.admitted.Load(); got > most || got < quota/2 {
				t.Errorf("admitted %d by Redis, want at most %d", got, most)
			}
			if slowest := time.Duration(l.slowest.Load()); slowest > timeout+5*time.Second {
				t.Errorf("a request took %v", slowest)
			}
			slices.Sort(l.times)
			if median := l.times[len(l.times)/2]; median > timeout/100 {
				t.Errorf("half of %d requests took over %v during the outage", len(l.times), median)
			}
		})
	}
}

// load is callers who take 1 of one bucket again and again.
type load struct {
	shared, local             atomic.Int64 // requests decided by Redis and locally
	admitted, admittedLocally atomic.Int64 // of them, those let through
	slowest                   atomic.Int64 // in nanoseconds
	quick                     atomic.Bool  // whether to note times

	mu    sync.Mutex
	times []time.Duration

	stopped atomic.Bool
	callers sync.WaitGroup
}

func newLoad(t *testing.T, limiter *ratetier.Limiter) *load {
	t.Helper()
	l := new(load)
	for range 4 {
		l.callers.Go(func() {
			for !l.stopped.Load() {
				l.take(t, limiter)
			}
		})
	}
	return l
}

func (l *load) take(t *testing.T, limiter *ratetier.Limiter) {
	began := time.Now()
	d := limiter.Take(t.Context(), ana, 1)
	took := time.Since(began)
	if d.Outcome != ratetier.OutcomeAllowed && d.Outcome != ratetier.OutcomeLimited {
		t.Errorf("%v, error %v, want a decision", d.Outcome, d.Err)
	}
	decided, admitted := &l.shared, &l.admitted
	if d.Degraded {
		decided, admitted = &l.local, &l.admittedLocally
	}
	decided.Add(1)
	if d.Allowed {
		admitted.Add(1)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest.Store(max(l.slowest.Load(), int64(took)))
	if l.quick.Load() {
		l.times = append(l.times, took)
	}
}

func (l *load) stop() {
	l.stopped.Store(true)
	l.callers.Wait()
}

// kill ends the server as a crash would.
func kill(s *redistest.Server, _ *redis.Client) error {
	s.Kill()
	return nil
}

func restart(s *redistest.Server, _ *redis.Client) error {
	s.Restart()
	return nil
}

func signal(sig syscall.Signal) func(*redistest.Server, *redis.Client) error {
	return func(s *redistest.Server, _ *redis.Client) error {
		s.Signal(sig)
		return nil
	}
}

func command(words ...any) func(*redistest.Server, *redis.Client) error {
	return func(_ *redistest.Server, rdb *redis.Client) error {
		return rdb.Do(context.Background(), words...).Err()
	}
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
		<-time.After(time.Millisecond)
	}
}
