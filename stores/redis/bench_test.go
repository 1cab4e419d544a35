package redisstore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

func BenchmarkApply(b *testing.B) {
	storetest.Bench(b, subject(b, startServer(b).client(b)))
}

// BenchmarkCallers measures how checks that wait at the same moment share calls. The last
// is a caller that sends its checks itself.
func BenchmarkCallers(b *testing.B) {
	s := startServer(b)
	rdb, punctual := s.client(b), s.client(b, punctual)
	for _, test := range []struct {
		name    string
		callers int
		rdb     *redis.Client
	}{
		{"1", 1, rdb}, {"8", 8, rdb}, {"64", 64, rdb}, {"256", 256, rdb}, {"1 itself", 1, punctual},
	} {
		b.Run(test.name, func(b *testing.B) {
			store := redisstore.New(test.rdb, redisstore.Config{Timeout: time.Minute})
			b.ReportAllocs()
			b.SetParallelism((test.callers + 1) / 2)
			var users atomic.Int64
			loop := func(next func() bool) {
				limits := []gcra.Limit{{Interval: 1, Offset: int64(24 * time.Hour)}}
				request := ratetier.Request{Limits: limits, Cost: 1}
				request.Key = ratetier.Key{Tier: "free", User: strconv.FormatInt(users.Add(1), 10)}
				for next() {
					var result ratetier.Result
					if err := store.Apply(context.Background(), &request, &result); err != nil || !result.Allowed {
						b.Errorf("%+v, %v", result, err)
						return
					}
				}
			}
			if test.callers == 1 {
				loop(b.Loop)
			} else {
				b.RunParallel(func(pb *testing.PB) { loop(pb.Next) })
			}
		})
	}
}

// BenchmarkRefused measures a refusal that is remembered.
func BenchmarkRefused(b *testing.B) {
	store := redisstore.New(startServer(b).client(b), redisstore.Config{Timeout: time.Minute})
	request := ratetier.Request{Key: ana, Limits: hourly(1), Cost: 1}
	if err := store.Apply(b.Context(), &request, new(ratetier.Result)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var result ratetier.Result
		if err := store.Apply(b.Context(), &request, &result); err != nil || result.Allowed {
			b.Fatalf("%+v, %v", result, err)
		}
	}
	if stats := store.Stats(); stats.Repeated < stats.Checks {
		b.Errorf("%+v, want most repeated", stats)
	}
}
