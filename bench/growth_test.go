package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// BenchmarkGrowth measures a check, and what a bucket takes, as users become more.
func BenchmarkGrowth(b *testing.B) {
	for _, users := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("users=%d", users), func(b *testing.B) {
			used := measureChecks(b, users, 3, ratetier.PerSecond(1).Burst(burst), true)
			b.ReportMetric(float64(used)/float64(users), "B/key")
		})
	}
}

// BenchmarkTiers measures a check as tiers become more.
func BenchmarkTiers(b *testing.B) {
	for _, tiers := range []int{3, 1000} {
		b.Run(fmt.Sprintf("tiers=%d", tiers), func(b *testing.B) {
			measureChecks(b, 100_000, tiers, ratetier.PerSecond(1).Burst(burst), true)
		})
	}
}

// BenchmarkRefused measures a check that is refused beside one that is not.
func BenchmarkRefused(b *testing.B) {
	b.Run("answer=allowed", func(b *testing.B) { measureChecks(b, 1, 3, ratetier.PerSecond(1).Burst(burst), true) })
	b.Run("answer=refused", func(b *testing.B) { measureChecks(b, 1, 3, ratetier.PerDay(1).Burst(before), false) })
}

// BenchmarkSweep measures by how long a check is held up that has to drop what a million
// users have left behind: of as many checks by new users, all but one in 10 000 are faster.
func BenchmarkSweep(b *testing.B) {
	const users, slower = 1_000_000, 100
	store, err := memorystore.NewWith(memorystore.Config{MaxBuckets: users})
	if err != nil {
		b.Fatal(err)
	}
	clock := clocktest.New(time.Unix(1_800_000_000, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{Store: store, Clock: clock, Tiers: ratetier.Tiers{"pro": ratetier.PerMinute(10)}}))
	user, took := 0, make([]time.Duration, users)
	come := func() {
		for i := range took {
			identity := ratetier.Identity{User: "user-" + strconv.Itoa(user), Tier: "pro"}
			user++
			start := time.Now()
			limiter.Take(context.Background(), identity, 1)
			took[i] = time.Since(start)
		}
	}
	come()
	var held time.Duration
	for b.Loop() {
		clock.Advance(time.Hour)
		come()
		slices.Sort(took)
		held += took[users-slower]
	}
	b.ReportMetric(float64(held)/float64(b.N), "held-ns")
	if kept := store.Stats().Buckets; kept > users || kept < users*9/10 {
		b.Fatalf("%d buckets, want about %d", kept, users)
	}
}

// before is what each user has taken before, so that no bucket is full again meanwhile.
const before = 1000

// measureChecks measures checks of users who come in random order. It returns how many
// bytes their buckets take.
func measureChecks(b *testing.B, users, tiers int, quota ratetier.Quota, allow bool) int64 {
	b.Helper()
	table, names := ratetier.Tiers{}, make([]string, tiers)
	for i := range names {
		names[i] = "tier-" + strconv.Itoa(i)
		table[names[i]] = quota
	}
	identities := make([]ratetier.Identity, users)
	for i, at := range rand.Perm(users) {
		identities[at] = ratetier.Identity{User: "user-" + strconv.Itoa(i), Tier: names[i%tiers]}
	}
	empty := heap()
	store, err := memorystore.NewWith(memorystore.Config{MaxBuckets: 2 * max(users, 1_000_000)})
	if err != nil {
		b.Fatal(err)
	}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{Store: store, Tiers: table}))
	for _, identity := range identities {
		limiter.Take(context.Background(), identity, before)
	}
	used := heap() - empty
	b.ReportAllocs()
	for i := 0; b.Loop(); {
		if d := limiter.Take(context.Background(), identities[i], 1); d.Allowed != allow {
			b.Fatalf("allowed is %t, want %t", d.Allowed, allow)
		}
		if i++; i == users {
			i = 0
		}
	}
	if kept := store.Stats().Buckets; kept != users {
		b.Fatalf("%d buckets, want %d", kept, users)
	}
	return used
}

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
