package memorystore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// BenchmarkTake measures a whole check, the look-up of the tier and the decision
// included, of users who come in random order: each with a bucket in use, or each
// with one that has become full since the last time and may have been dropped.
func BenchmarkTake(b *testing.B) {
	for _, test := range []struct {
		name  string
		users int
		quota ratetier.Quota
		allow bool
	}{
		{"one user", 1, ratetier.PerSecond(10).Burst(1 << 30), true},
		{"one user, refused", 1, ratetier.PerDay(1), false},
		{"100k users", 100_000, ratetier.PerSecond(1).Burst(1 << 30), true},
		{"100k users, refused", 100_000, ratetier.PerDay(1), false},
		{"100k users, idle in between", 100_000, ratetier.PerSecond(1_000_000), true},
		{"1M users", 1_000_000, ratetier.PerSecond(1).Burst(1 << 30), true},
	} {
		store, err := memorystore.NewWith(memorystore.Config{MaxBuckets: 2 << 20})
		if err != nil {
			b.Fatal(err)
		}
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: store,
			Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10), "pro": test.quota, "enterprise": ratetier.Unlimited()},
		}))
		identities := make([]ratetier.Identity, test.users)
		for i := range identities {
			identities[i] = ratetier.Identity{User: "user-" + strconv.Itoa(i), Tier: "pro"}
			limiter.Take(context.Background(), identities[i], 1)
		}
		rand.Shuffle(len(identities), func(i, j int) { identities[i], identities[j] = identities[j], identities[i] })
		loop := func(next func() bool, from int) error {
			for i := from % test.users; next(); {
				if d := limiter.Take(context.Background(), identities[i], 1); d.Allowed != test.allow {
					return fmt.Errorf("allowed is %t, want %t", d.Allowed, test.allow)
				}
				if i++; i == test.users {
					i = 0
				}
			}
			return nil
		}
		b.Run(test.name+"/serial", func(b *testing.B) {
			b.ReportAllocs()
			if err := loop(b.Loop, 0); err != nil {
				b.Fatal(err)
			}
		})
		b.Run(test.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			var goroutine atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				if err := loop(pb.Next, int(goroutine.Add(1))*test.users/3); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
