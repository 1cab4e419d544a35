package migrating

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	throttledredis "github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

func fromUluleInRedis(rdb *redis.Client) func(ctx context.Context, user string, cost int) (answer, error) {
	return func(ctx context.Context, user string, cost int) (answer, error) {
		store, err := ululeredis.NewStore(rdb)
		if err != nil {
			return answer{}, err
		}
		c, err := limiter.New(store, limiter.Rate{Period: time.Minute, Limit: 10}).Increment(ctx, user, int64(cost))
		return answer{allowed: !c.Reached}, err
	}
}

func fromThrottled(rdb *redis.Client) func(ctx context.Context, user string, cost int) (answer, error) {
	return func(ctx context.Context, user string, cost int) (answer, error) {
		store, err := throttledredis.NewCtx(rdb, "throttled:")
		if err != nil {
			return answer{}, err
		}
		limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerMin(10), MaxBurst: 9})
		if err != nil {
			return answer{}, err
		}
		limited, result, err := limiter.RateLimitCtx(ctx, user, cost)
		return answer{!limited, result.RetryAfter}, err
	}
}

// answer is what became of a check.
type answer struct {
	allowed bool
	wait    time.Duration
}

func fromRedisRate(rdb *redis.Client) func(ctx context.Context, user string, cost int) (answer, error) {
	limiter := redis_rate.NewLimiter(rdb)
	return func(ctx context.Context, user string, cost int) (answer, error) {
		res, err := limiter.AllowN(ctx, user, redis_rate.PerMinute(10), cost)
		if err != nil {
			return answer{}, err
		}
		return answer{res.Allowed > 0, res.RetryAfter}, nil
	}
}

func toRedisStore(rdb *redis.Client) func(ctx context.Context, user string, cost int) (answer, error) {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: redisstore.New(rdb, redisstore.Config{Timeout: time.Second}),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
	}))
	return func(ctx context.Context, user string, cost int) (answer, error) {
		d := limiter.Take(ctx, ratetier.Identity{User: user, Tier: "free"}, int64(cost))
		return answer{d.Allowed, d.RetryAfter}, d.Err
	}
}

var redisLimiters = map[string]func(*redis.Client) func(context.Context, string, int) (answer, error){
	"redis_rate": fromRedisRate, "ulule": fromUluleInRedis, "throttled": fromThrottled, "ratetier": toRedisStore,
}

func TestRedisRateAllowsTheSame(t *testing.T) {
	for _, name := range []string{"redis_rate", "ratetier"} {
		t.Run(name, func(t *testing.T) {
			allow := redisLimiters[name](client(t, frozen(t).Addr()))
			for i, want := range []answer{{allowed: true}, {allowed: true}, {wait: 12 * time.Second}, {allowed: true}} {
				cost := []int{5, 4, 3, 1}[i]
				got, err := allow(t.Context(), "ana", cost)
				got.wait = max(0, got.wait) // redis_rate has -1 where there is nothing to wait for
				if (got.wait - want.wait).Abs() < time.Millisecond {
					got.wait = want.wait // redis_rate reckons in floats
				}
				if got != want || err != nil {
					t.Errorf("step %d, cost %d: got %+v, %v, want %+v", i, cost, got, err, want)
				}
			}
		})
	}
}

func TestRedisRateTellsToWaitForWhatNeverFits(t *testing.T) {
	rdb := client(t, frozen(t).Addr())
	if got, err := fromRedisRate(rdb)(t.Context(), "ana", 11); err != nil || got.allowed || got.wait <= 0 {
		t.Errorf("redis_rate: got %+v, %v", got, err)
	}
	if got, err := toRedisStore(rdb)(t.Context(), "ana", 11); err != nil || got != (answer{}) {
		t.Errorf("ratetier: got %+v, %v", got, err)
	}
}

// A check whose answer is lost is sent again by the client, and charged again.
func TestPeersChargeAgainWhatTheyDoNotKnow(t *testing.T) {
	const all = math.MaxInt32
	for _, test := range []struct {
		by        string
		lost      int32 // answers
		charged   int
		knowsThat bool // and gets no error
	}{
		{"redis_rate", 1, 2, true},
		{"redis_rate", all, 4, false}, // go-redis tries again three times
		{"ulule", 1, 2, true},
		{"ulule", all, 4, false},
		{"throttled", 1, 2, true},
		{"throttled", all, 1, false}, // compares and swaps
		{"ratetier", 1, 1, false},
		{"ratetier", all, 1, false},
	} {
		t.Run(fmt.Sprintf("%s, %d lost", test.by, test.lost), func(t *testing.T) {
			server := frozen(t)
			behind := newLossy(t, server.Addr())
			allow := redisLimiters[test.by](client(t, behind.addr))
			if _, err := allow(t.Context(), "ana", 1); err != nil { // so that all are acquainted
				t.Fatal(err)
			}
			behind.lose.Store(test.lost)
			if _, err := allow(t.Context(), "ana", 1); (err == nil) != test.knowsThat {
				t.Errorf("got error %v", err)
			}
			allow = redisLimiters[test.by](client(t, server.Addr()))
			left := 0
			for {
				got, err := allow(t.Context(), "ana", 1)
				if err != nil {
					t.Fatal(err)
				}
				if !got.allowed {
					break
				}
				left++
			}
			if charged := 9 - left; charged != test.charged {
				t.Errorf("one check of cost 1 was charged %d, want %d", charged, test.charged)
			}
		})
	}
}

// frozen returns a server whose clock stands still.
func frozen(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(time.Unix(1_900_000_000, 0))
	return server
}

func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 300 * time.Millisecond})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// lossy is a way to a server on which so many answers to scripts are lost.
type lossy struct {
	addr string
	lose atomic.Int32
}

func newLossy(t *testing.T, to string) *lossy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	l := &lossy{addr: listener.Addr().String()}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go l.carry(near, to)
		}
	}()
	return l
}

func (l *lossy) carry(near net.Conn, to string) {
	defer near.Close()
	far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	var lost atomic.Bool // from here on
	go func() {
		_, _ = io.Copy(writer(func(p []byte) (int, error) {
			if lost.Load() {
				return len(p), nil
			}
			return near.Write(p)
		}), far)
	}()
	_, _ = io.Copy(writer(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("eval")) && l.lose.Add(-1) >= 0 {
			lost.Store(true)
		}
		return far.Write(p)
	}), near)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
