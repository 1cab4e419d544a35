package fallbackstore_test

import (
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
)

// A whole check during an outage, tier, decision and all.
func BenchmarkTakeDuringAnOutage(b *testing.B) {
	for name, instances := range map[string]int{"whole quota": 0, "share": 4} {
		b.Run(name, func(b *testing.B) {
			take := takeDuringAnOutage(b, instances)
			b.ReportAllocs()
			for b.Loop() {
				if d := take(); !d.Degraded || !d.Allowed {
					b.Fatalf("%v, degraded %t", d.Outcome, d.Degraded)
				}
			}
		})
	}
}

func TestACheckDuringAnOutageAllocatesNothing(t *testing.T) {
	take := takeDuringAnOutage(t, 0)
	if n := testing.AllocsPerRun(1000, func() { take() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func takeDuringAnOutage(t testing.TB, instances int) func() ratetier.Decision {
	t.Helper()
	primary := newFakePrimary()
	primary.failWith(errDown)
	store := fallbackstore.New(primary, fallbackstore.Config{Instances: instances, Failures: 1, ProbeEvery: time.Hour})
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerSecond(1e9).Burst(1e15)},
	}))
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	take := func() ratetier.Decision { return limiter.Take(t.Context(), ana, 1) }
	if take(); !store.Stats().Down {
		t.Fatal("no outage")
	}
	return take
}
