//go:build !race

package metrics_test

import (
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/metrics"
)

// total is a system of metrics with one number.
type total struct{ n int64 }

func (t *total) Counter(*metrics.Metric, []string) func(int64) { return func(n int64) { t.n += n } }
func (t *total) Histogram(*metrics.Metric, []string) func(float64) {
	return func(float64) { t.n++ }
}

func TestAnEventAllocatesNothing(t *testing.T) {
	counted := new(total)
	observe := metrics.NewObserver(counted, "memory")
	event := ratetier.Event{
		Decision: ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free", Cost: 1},
		Route:    "GET /data/{id}",
	}
	if n := testing.AllocsPerRun(1000, func() { observe(event) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if counted.n != 3*1001 { // a decision, a cell and a duration each; AllocsPerRun makes one call more
		t.Errorf("counted %d", counted.n)
	}
}
