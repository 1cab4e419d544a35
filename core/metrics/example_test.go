package metrics_test

import (
	"context"
	"expvar"
	"fmt"
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/metrics"
	"github.com/ratetier/ratetier/core/storetest"
)

// published is a Meter for package expvar. It has counters only.
type published struct{ *expvar.Map }

func (p published) Counter(metric *metrics.Metric, labels []string) func(int64) {
	name := metric.Name + " " + strings.Join(labels, ",")
	return func(n int64) { p.Add(name, n) }
}

func (p published) Histogram(*metrics.Metric, []string) func(float64) { return func(float64) {} }

func Example() {
	vars := new(expvar.Map) // expvar.NewMap("ratetier") in a service
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:    storetest.Reference(),
		Tiers:    ratetier.Tiers{"free": ratetier.PerMinute(10)},
		Observer: metrics.NewObserver(published{vars}, "reference"),
		Clock:    clocktest.New(time.Unix(0, 0)),
	}))
	for range 3 {
		limiter.Take(context.Background(), ratetier.Identity{User: "ana", Tier: "free"}, 4)
	}
	vars.Do(func(v expvar.KeyValue) { fmt.Println(v.Key, v.Value) })
	// Output:
	// ratetier.cost.charged free, 8
	// ratetier.cost.refused free, 4
	// ratetier.decisions free,,allowed,yes,,no 2
	// ratetier.decisions free,,limited,no,,no 1
}
