package memorystore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func BenchmarkTake(b *testing.B) {
	for _, users := range []int{1, 100_000, 1_000_000} {
		identities := make([]ratetier.Identity, users)
		for i := range identities {
			identities[i] = ratetier.Identity{User: "user-" + strconv.Itoa(i*7919%users), Tier: "pro"}
		}
		store, err := memorystore.NewWith(memorystore.Config{MaxBuckets: 2 << 20})
		if err != nil {
			b.Fatal(err)
		}
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: store,
			Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10), "pro": ratetier.PerHour(1_000_000), "max": ratetier.Unlimited()},
		}))
		for _, id := range identities {
			limiter.Take(context.Background(), id, 1)
		}
		b.Run("serial/"+strconv.Itoa(users), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if d := limiter.Take(context.Background(), identities[i], 1); d.Outcome == 0 {
					b.Fatal(d)
				}
				if i++; i == users {
					i = 0
				}
			}
		})
		b.Run("parallel/"+strconv.Itoa(users), func(b *testing.B) {
			b.ReportAllocs()
			var worker atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				i := int(worker.Add(1)) * users / 3 % users
				for pb.Next() {
					if d := limiter.Take(context.Background(), identities[i], 1); d.Outcome == 0 {
						b.Fatal(d)
					}
					if i++; i == users {
						i = 0
					}
				}
			})
		})
	}
}
