//go:build !race

package ratetierprom_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	ratetier "github.com/ratetier/ratetier/core"
	ratetierprom "github.com/ratetier/ratetier/metrics/prometheus"
)

var event = ratetier.Event{
	Decision: ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free", Cost: 1},
	Identity: ratetier.Identity{User: "ana", Tier: "free"},
	Route:    "GET /data/{id}",
	Elapsed:  time.Millisecond,
}

func TestAnEventAllocatesNothing(t *testing.T) {
	registry := prometheus.NewRegistry()
	observe := newObserver(t, registry)
	if n := testing.AllocsPerRun(1000, func() { observe(event) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if count, err := testutil.GatherAndCount(registry); err != nil || count != 3 {
		t.Errorf("%d series, %v", count, err)
	}
}

func BenchmarkObserver(b *testing.B) {
	observe, err := ratetierprom.NewObserver(prometheus.NewRegistry(), "memory")
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
