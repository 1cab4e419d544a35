package redisstore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

func BenchmarkApply(b *testing.B) {
	storetest.Bench(b, subject(b, startServer(b).client(b)))
}

// BenchmarkCallers measures how checks that wait at the same moment share calls.
func BenchmarkCallers(b *testing.B) {
	rdb := startServer(b).client(b)
	limits := []gcra.Limit{{Interval: 1, Offset: int64(24 * time.Hour)}}
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
			b.ReportAllocs()
			b.SetParallelism((callers + 1) / 2)
			var users atomic.Int64
			loop := func(next func() bool) {
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
			if callers == 1 {
				loop(b.Loop)
			} else {
				b.RunParallel(func(pb *testing.PB) { loop(pb.Next) })
			}
		})
	}
}
