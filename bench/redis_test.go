package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
	"github.com/ratetier/ratetier/stores/redis/redistest"
)

// waitingCheck is a check that waits for Redis. It returns whether the user may go on.
type waitingCheck func(user string) (bool, error)

// redisPeers make a limiter in Redis whose users never use up what they may. Each has a
// client with its defaults, which is for ratetier the one that Open makes.
var redisPeers = []struct {
	name string
	make func(b *testing.B, addr string) waitingCheck
}{
	{"ratetier", func(b *testing.B, addr string) waitingCheck {
		limiter := newRedisLimiter(b, addr)
		return func(user string) (bool, error) {
			d := limiter.Take(context.Background(), ratetier.Identity{User: user, Tier: "pro"}, 1)
			return d.Outcome == ratetier.OutcomeAllowed, d.Err
		}
	}},
	{"redis_rate", func(b *testing.B, addr string) waitingCheck {
		limiter := redis_rate.NewLimiter(newRedisClient(b, addr))
		return func(user string) (bool, error) {
			result, err := limiter.Allow(context.Background(), user, redis_rate.Limit{Rate: burst, Burst: burst, Period: time.Minute})
			return err == nil && result.Allowed == 1, err
		}
	}},
	{"throttled", func(b *testing.B, addr string) waitingCheck {
		store, err := throttledredis.NewCtx(newRedisClient(b, addr), "throttled:")
		if err != nil {
			b.Fatal(err)
		}
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(1_000_000), MaxBurst: burst})
		if err != nil {
			b.Fatal(err)
		}
		limiter.SetMaxCASAttemptsLimit(1000) // it tries again when another caller was faster
		return func(user string) (bool, error) {
			limited, _, err := limiter.RateLimitCtx(context.Background(), user, 1)
			return !limited, err
		}
	}},
	{"ulule", func(b *testing.B, addr string) waitingCheck {
		store, err := ululeredis.NewStore(newRedisClient(b, addr))
		if err != nil {
			b.Fatal(err)
		}
		l := limiter.New(store, limiter.Rate{Period: time.Hour, Limit: burst})
		return func(user string) (bool, error) {
			c, err := l.Get(context.Background(), user)
			return err == nil && !c.Reached, err
		}
	}},
}

func newRedisClient(b *testing.B, addr string) *redis.Client {
	b.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	b.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func newRedisLimiter(b *testing.B, addr string) *ratetier.Limiter {
	b.Helper()
	store, err := redisstore.Open("redis://"+addr, redisstore.Config{Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerDay(1), "pro": ratetier.PerMinute(burst)},
	}))
}

// BenchmarkRedis measures a check in Redis, of a thousand users in random order, by callers
// who wait for one check after the other.
func BenchmarkRedis(b *testing.B) {
	const users = 1000
	server := redistest.Start(b)
	names := make([]string, users)
	for i := range names {
		names[i] = "user-" + strconv.Itoa(i)
	}
	for _, callers := range []int{1, 64, 256} {
		for _, peer := range redisPeers {
			may := peer.make(b, server.Addr())
			loop := func(next func() bool) error {
				for next() {
					if ok, err := may(names[rand.IntN(users)]); !ok {
						return fmt.Errorf("%s refused a user: %w", peer.name, err)
					}
				}
				return nil
			}
			b.Run(fmt.Sprintf("callers=%d/by=%s", callers, peer.name), func(b *testing.B) {
				b.ReportAllocs()
				if callers == 1 {
					if err := loop(b.Loop); err != nil {
						b.Fatal(err)
					}
					return
				}
				processors := runtime.GOMAXPROCS(0)
				b.SetParallelism((callers + processors - 1) / processors)
				b.RunParallel(func(pb *testing.PB) {
					if err := loop(pb.Next); err != nil {
						b.Error(err)
					}
				})
			})
		}
	}
}

// BenchmarkRedisRefused measures the check of a user who has just been refused.
func BenchmarkRedisRefused(b *testing.B) {
	limiter := newRedisLimiter(b, redistest.Start(b).Addr())
	user := ratetier.Identity{User: "ana", Tier: "free"}
	limiter.Take(b.Context(), user, 1)
	b.ReportAllocs()
	for b.Loop() {
		if d := limiter.Take(context.Background(), user, 1); d.Outcome != ratetier.OutcomeLimited {
			b.Fatalf("%v, %v", d.Outcome, d.Err)
		}
	}
}
