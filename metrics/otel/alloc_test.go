//go:build !race

package ratetierotel_test

import (
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	ratetierotel "github.com/ratetier/ratetier/metrics/otel"
)

var event = ratetier.Event{
	Decision: ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free", Cost: 1},
	Identity: ratetier.Identity{User: "ana", Tier: "free"},
	Route:    "GET /data/{id}",
	Elapsed:  time.Millisecond,
}

func TestAnEventAllocatesNothing(t *testing.T) {
	provider, reader := newProvider()
	observe := newObserver(t, provider)
	if n := testing.AllocsPerRun(1000, func() { observe(event) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if lines := collected(t, reader); len(lines) != 3 {
		t.Errorf("collected %q", lines)
	}
}

func BenchmarkObserver(b *testing.B) {
	provider, _ := newProvider()
	observe, err := ratetierotel.NewObserver(provider, "memory")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			observe(event)
		}
	})
}
