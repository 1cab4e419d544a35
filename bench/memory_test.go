package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	golimiter "github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// burst is what nobody uses up.
const burst = 1 << 30

// check is one check of a user. It returns whether the user may go on.
type check func(user string) bool

// peers make a limiter in memory that refuses nobody.
var peers = []struct {
	name string
	make func(b *testing.B) check
}{
	{"ratetier", func(b *testing.B) check {
		store, err := memorystore.NewWith(memorystore.Config{MaxBuckets: 2 << 20})
		if err != nil {
			b.Fatal(err)
		}
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: store,
			// No bucket is full, and so dropped, while it is measured.
			Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10), "pro": ratetier.PerMinute(1).Burst(50_000_000), "max": ratetier.Unlimited()},
		}))
		return func(user string) bool {
			return limiter.Take(context.Background(), ratetier.Identity{User: user, Tier: "pro"}, 1).Allowed
		}
	}},
	{"go-limiter", func(b *testing.B) check {
		store, err := golimiter.New(&golimiter.Config{Tokens: burst, Interval: 24 * time.Hour, SweepInterval: 24 * time.Hour, SweepMinTTL: 24 * time.Hour})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Close(context.Background()) })
		return func(user string) bool {
			_, _, _, ok, _ := store.Take(context.Background(), user)
			return ok
		}
	}},
	{"x-time-rate", func(*testing.B) check {
		var limiters sync.Map
		return func(user string) bool {
			limiter, ok := limiters.Load(user)
			if !ok {
				limiter, _ = limiters.LoadOrStore(user, rate.NewLimiter(1, burst))
			}
			l, _ := limiter.(*rate.Limiter)
			return l.Allow()
		}
	}},
	{"throttled", func(b *testing.B) check {
		store, err := throttledstore.NewCtx(0)
		if err != nil {
			b.Fatal(err)
		}
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(1_000_000), MaxBurst: burst})
		if err != nil {
			b.Fatal(err)
		}
		limiter.SetMaxCASAttemptsLimit(1 << 20) // or two callers of one user get errors
		return func(user string) bool {
			limited, _, err := limiter.RateLimitCtx(context.Background(), user, 1)
			return !limited && err == nil
		}
	}},
	{"ulule", func(*testing.B) check {
		l := limiter.New(ululestore.NewStoreWithOptions(limiter.StoreOptions{Prefix: "l", CleanUpInterval: time.Hour}), limiter.Rate{Period: 24 * time.Hour, Limit: burst})
		return func(user string) bool {
			c, err := l.Get(context.Background(), user)
			return err == nil && !c.Reached
		}
	}},
}

// BenchmarkMemory measures a check in memory, of users who come in random order.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1, 100_000, 1_000_000} {
		users := make([]string, n)
		for i := range users {
			users[i] = "user-" + strconv.Itoa(i)
		}
		for _, peer := range peers {
			may := peer.make(b)
			for _, user := range users {
				may(user)
			}
			order := rand.Perm(n)
			shuffled := make([]string, n)
			for i, at := range order {
				shuffled[i] = users[at]
			}
			loop := func(next func() bool, from int) error {
				for i := from % n; next(); {
					if !may(shuffled[i]) {
						return fmt.Errorf("%s refused a user", peer.name)
					}
					if i++; i == n {
						i = 0
					}
				}
				return nil
			}
			name := fmt.Sprintf("users=%d/by=%s", n, peer.name)
			b.Run(name+"/serial", func(b *testing.B) {
				b.ReportAllocs()
				if err := loop(b.Loop, 0); err != nil {
					b.Fatal(err)
				}
			})
			b.Run(name+"/parallel", func(b *testing.B) {
				b.ReportAllocs()
				var goroutine atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					if err := loop(pb.Next, int(goroutine.Add(1))*n/3); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}
