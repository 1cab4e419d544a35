// Package soak is for a limiter what a long drive is for a car: everything at once, for as
// long as SOAK says, and 2s where it says nothing. `make soak SOAK=10m` is the long one.
package soak

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
	memorystore "github.com/ratetier/ratetier/stores/memory"
	redisstore "github.com/ratetier/ratetier/stores/redis"
	"github.com/ratetier/ratetier/stores/redis/redistest"
)

const (
	callers   = 3       // of each limiter
	instances = 2       // that share Redis
	growth    = 8 << 20 // bytes by which the heap may differ, for what happens to be under way
)

// Whatever reloads, outages, cancellations and late settlements there are, no user is
// admitted more than the quota, and nothing is left behind.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "2s"))
	if err != nil {
		t.Fatalf("SOAK: %v", err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	t.Logf("again with SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	goroutines := runtime.NumGoroutine()
	server := redistest.Start(t)
	memory, err := memorystore.NewWith(memorystore.Config{MaxBuckets: 2 * million})
	if err != nil {
		t.Fatal(err)
	}
	limiters := []*ratetier.Limiter{newLimiter(memory)}
	var clients []*redis.Client
	var stores []*fallbackstore.Store
	for range instances {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		store := fallbackstore.New(redisstore.New(rdb, redisstore.Config{Timeout: 100 * time.Millisecond}),
			fallbackstore.Config{ProbeEvery: 100 * time.Millisecond})
		clients, stores = append(clients, rdb), append(stores, store)
		limiters = append(limiters, newLimiter(store))
	}
	c := &crowd{t: t, limiter: limiters[0], began: time.Now(), admitted: make([]int64, million)}
	for range million {
		c.ask() // so that all have a bucket from the start
	}
	heap := heapInUse()

	books := newBooks()
	var stopped atomic.Bool
	var requests atomic.Int64
	var working sync.WaitGroup
	for i, limiter := range limiters {
		for range callers {
			account := books.ofMemory
			if i > 0 {
				account = books.ofInstance(i - 1)
			}
			c := &caller{t: t, limiter: limiter, account: account, random: rand.New(rand.NewPCG(seed, random.Uint64()))}
			working.Go(func() {
				for !stopped.Load() {
					c.ask()
					requests.Add(1)
				}
				c.settle(time.Now().Add(window))
			})
		}
	}
	working.Go(func() {
		for !stopped.Load() {
			c.ask()
			requests.Add(1)
		}
	})
	stop := func() {
		stopped.Store(true)
		working.Wait()
	}
	defer stop() // also where a server cannot be started again

	// watch checks the books again and again, for up to that long.
	watch := func(span time.Duration) {
		for until := time.Now().Add(span); time.Now().Before(until) && !t.Failed(); time.Sleep(10 * time.Millisecond) {
			books.check(t)
		}
	}
	told := time.Now()
	for end := told.Add(length); time.Now().Before(end) && !t.Failed(); {
		next := reload(random)
		for _, limiter := range limiters {
			if err := limiter.SetTiers(next); err != nil {
				t.Error(err)
			}
		}
		calm, outage := time.Duration(random.Int64N(int64(400*time.Millisecond))), time.Duration(random.Int64N(int64(400*time.Millisecond)))
		watch(calm)
		switch random.IntN(3) {
		case 0:
			books.lost.Add(1) // all buckets, and users start afresh
			server.Kill()
			watch(outage)
			server.Restart()
		case 1:
			server.Signal(syscall.SIGSTOP)
			watch(outage)
			server.Signal(syscall.SIGCONT)
		default: // reload alone
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			t.Logf("%d requests, %d restarts, %d outages, %d goroutines, %d MB", requests.Load(),
				books.lost.Load(), stores[0].Stats().Outages, runtime.NumGoroutine(), heapInUse()>>20)
		}
	}
	stop()
	books.check(t)
	if !t.Failed() {
		books.checkUse(t)
	}
	if stats := memory.Stats(); stats.Buckets < million || stats.Evictions > 0 {
		t.Errorf("%+v, want a bucket for each of a million users", stats)
	}
	if now := heapInUse(); now > heap+growth {
		t.Errorf("the heap grew from %d to %d bytes", heap, now)
	}
	for _, rdb := range clients {
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	}
	server.Kill()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, and %d before:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
		}
	}
	runtime.KeepAlive(memory)
}

func newLimiter(store ratetier.Store) *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store:         store,
		Tiers:         tiers(bursts[0]),
		OnStoreFailed: ratetier.Deny(503),
	}))
}

// heapInUse is what is still in use after a collection.
func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// caller asks for the watched users, one request after the other.
type caller struct {
	t       *testing.T
	limiter *ratetier.Limiter
	account func(user int, degraded bool) *account
	random  *rand.Rand
	open    []work
}

// work is an admission that is yet to be settled.
type work struct {
	user      int
	admission *ratetier.Admission
	actual    int64
	due       time.Time
}

// ask makes one request: some are given up by the caller, and those of every other user
// are settled, up to a quarter of a window later.
func (c *caller) ask() {
	ctx, cancel := context.Background(), func() {}
	gaveUp := c.random.IntN(4) == 0
	if gaveUp {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.random.Int64N(int64(time.Millisecond))))
	}
	defer cancel()
	user, cost := c.random.IntN(watched), 1+c.random.Int64N(9)
	identity := ratetier.Identity{User: fmt.Sprint("watched: ", user), Tier: "free"}
	_, admission := c.limiter.Admit(ctx, ratetier.Check{Identity: identity, Cost: cost})
	switch d := admission.Decision(); d.Outcome {
	case ratetier.OutcomeAllowed:
		actual := cost
		if settles(user) {
			actual = c.random.Int64N(cost + 1)
			c.open = append(c.open, work{user, admission, actual, time.Now().Add(time.Duration(c.random.Int64N(int64(window / 4))))})
		}
		c.account(user, d.Degraded).add(d.Limit, actual)
	case ratetier.OutcomeLimited:
	default:
		if !gaveUp {
			c.t.Errorf("%v, %v: want a decision", d.Outcome, d.Err)
		}
	}
	c.settle(time.Now())
}

// settle settles what is due by then. An error is no matter: where the store cannot be
// reached, the user was charged too much.
func (c *caller) settle(by time.Time) {
	c.open = slices.DeleteFunc(c.open, func(w work) bool {
		if w.due.After(by) {
			return false
		}
		_ = w.admission.Settle(context.Background(), w.actual)
		return true
	})
}
