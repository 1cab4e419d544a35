package ratetierprom_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	ratetierprom "github.com/ratetier/ratetier/metrics/prometheus"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example() {
	registry := prometheus.NewRegistry()
	observer, err := ratetierprom.NewObserver(registry, "memory")
	if err != nil {
		panic(err)
	}
	store := memorystore.New()
	if err := ratetierprom.RegisterStats(registry, "memory", store.Stats); err != nil {
		panic(err)
	}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:    store,
		Tiers:    ratetier.Tiers{"free": ratetier.PerMinute(10)},
		Observer: observer,
		Clock:    clocktest.New(time.Unix(0, 0)), // for this example; leave it out
	}))
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	for range 3 {
		limiter.Take(context.Background(), ana, 4)
	}

	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "ratetier") && !strings.Contains(line, "duration") {
			fmt.Print(line)
		}
	}
	// Output:
	// ratetier_cost_charged_total{route="",tier="free"} 8
	// ratetier_cost_refused_total{route="",tier="free"} 4
	// ratetier_decisions_total{allowed="no",defaulted="",degraded="no",outcome="limited",route="",tier="free"} 1
	// ratetier_decisions_total{allowed="yes",defaulted="",degraded="no",outcome="allowed",route="",tier="free"} 2
	// ratetier_store_buckets{store="memory"} 1
	// ratetier_store_evictions_total{store="memory"} 0
}
