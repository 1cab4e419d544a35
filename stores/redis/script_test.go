package redisstore_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// Random requests, many in one call and several of them for one bucket, are answered to
// the nanosecond as the plainest store answers them one by one.
func TestACallOfManyRequestsIsAnsweredAsOneByOne(t *testing.T) {
	for name, rdb := range map[string]redis.UniversalClient{
		"redis":     startServer(t).client(t),
		"miniredis": newClient(t, miniredis.RunT(t).Addr()),
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 123_456_000)
			store := redisstore.New(rdb, redisstore.Config{})
			store.SetClock(func() time.Time { return now })
			store.Keep()
			reference := storetest.Reference()
			random := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				requests := make([]ratetier.Request, 1+random.IntN(40))
				want := make([]ratetier.Result, len(requests))
				for i := range requests {
					requests[i] = randomRequest(random, now)
					if err := reference.Apply(t.Context(), &requests[i], &want[i]); err != nil {
						t.Fatal(err)
					}
				}
				got, err := store.Together(t.Context(), requests)
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if got[i] != want[i] {
						t.Fatalf("request %d of %d, %+v: %+v, want %+v", i, len(got), requests[i], got[i], want[i])
					}
				}
				now = now.Add(time.Duration(random.Int64N(int64(time.Minute)) / 1000 * 1000))
			}
		})
	}
}

// randomRequest returns a request for one of a few buckets, each of which always has
// the same number of rates, whose figures are of any size.
func randomRequest(random *rand.Rand, now time.Time) ratetier.Request {
	bucket := random.IntN(8)
	limits := make([]gcra.Limit, 1+bucket%ratetier.MaxRates)
	most := int64(math.MaxInt64)
	for i := range limits {
		longest := []int64{int64(time.Millisecond), int64(time.Minute), int64(gcra.MaxOffset) / 100}[random.IntN(3)]
		interval := 1 + random.Int64N(longest)
		limits[i] = gcra.Limit{Interval: interval, Offset: interval * (1 + random.Int64N(100))}
		most = min(most, limits[i].Burst())
	}
	request := ratetier.Request{
		Mode:   []ratetier.Mode{ratetier.ModeTake, ratetier.ModeTake, ratetier.ModeCharge, ratetier.ModeRefund}[random.IntN(4)],
		Key:    ratetier.Key{Tier: "free", User: strconv.Itoa(bucket)},
		Limits: limits,
		Cost:   random.Int64N(most + 1),
		Now:    now.UnixNano(),
	}
	if request.Mode != ratetier.ModeTake {
		limits[0].Interval = random.Int64N(math.MaxInt64) * random.Int64N(2) // any number of nanoseconds, or none
		request.Cost = random.Int64N(3)
	}
	return request
}
