//go:build !race

package ratetier_test

import (
	"context"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/gcra"
)

// oneBucket is a store that allocates nothing.
type oneBucket struct{ tats [ratetier.MaxRates]int64 }

func (s *oneBucket) Apply(_ context.Context, request *ratetier.Request, result *ratetier.Result) error {
	request.Apply(s.tats[:], result)
	return nil
}

func (s *oneBucket) Reset(context.Context, ratetier.Key) error { return nil }

// quickBucket is one that is quick.
type quickBucket struct{ oneBucket }

func (s *quickBucket) Itself() ratetier.Store { return s }

func (s *quickBucket) Hash(ratetier.Key) ratetier.Hash { return ratetier.Hash{} }

func (s *quickBucket) Take(_ ratetier.Hash, limit gcra.Limit, cost, now int64) (used int64, allowed, ok bool) {
	s.tats[0], used, allowed = limit.Take(s.tats[0], now, cost)
	return used, allowed, true
}

func TestACheckAllocatesNothing(t *testing.T) {
	t.Run("store", func(t *testing.T) { allocatesNothing(t, new(oneBucket)) })
	t.Run("quick store", func(t *testing.T) { allocatesNothing(t, new(quickBucket)) })
}

func allocatesNothing(t *testing.T, store ratetier.Store) {
	t.Helper()
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{
			"one":  ratetier.PerSecond(10),
			"four": ratetier.PerSecond(10).And(ratetier.PerMinute(20)).And(ratetier.PerHour(30)).And(ratetier.PerDay(40)),
		},
		DefaultTier: "one",
	}))
	for name, id := range map[string]ratetier.Identity{
		"one rate": user("ana", "one"), "four rates": user("ana", "four"), "unknown tier": user("ana", "gold"), "nobody": {},
	} {
		allowed, refused := 0, 0
		if n := testing.AllocsPerRun(1000, func() {
			if limiter.Take(context.Background(), id, 1).Allowed {
				allowed++
			} else {
				refused++
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if refused == 0 {
			t.Errorf("%s: %d were allowed, and none refused", name, allowed)
		}
	}
}

// Whatever the limit and the time, which once had a table in common.
func TestFiguresAllocateNothing(t *testing.T) {
	clock := clocktest.New(time.Unix(1_800_000_000, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: new(oneBucket),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1000), "pro": ratetier.PerMinute(1256)},
		Clock: clock,
	}))
	for range 300 {
		free, pro := limiter.Peek(t.Context(), user("ana", "free")), limiter.Peek(t.Context(), user("ana", "pro"))
		free.Remaining, pro.Remaining = 9, 9 // a long one is spelled anew, as it is seldom the same
		if n := testing.AllocsPerRun(10, func() { _, _, _ = free.Figures(); _, _, _ = pro.Figures() }); n != 0 {
			t.Fatalf("at %v: %v allocations", clock.Now(), n)
		}
		clock.Advance(time.Second)
	}
}

func BenchmarkLimiter(b *testing.B) {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: new(oneBucket),
		Tiers: ratetier.Tiers{"free": ratetier.PerSecond(1000)},
	}))
	b.ReportAllocs()
	for b.Loop() {
		if d := limiter.Take(context.Background(), ana, 1); !d.Measured() {
			b.Fatal(d.Outcome)
		}
	}
}
