package ratetierotel_test

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	ratetierotel "github.com/ratetier/ratetier/metrics/otel"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example() {
	ctx := context.Background()
	reader := sdk.NewManualReader() // an exporter reads by itself
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	observer, err := ratetierotel.NewObserver(provider, "memory")
	if err != nil {
		panic(err)
	}
	store := memorystore.New()
	if _, err := ratetierotel.RegisterStats(provider, "memory", store.Stats); err != nil {
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
		limiter.Take(ctx, ana, 4)
	}

	var read metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &read); err != nil {
		panic(err)
	}
	for _, metric := range read.ScopeMetrics[0].Metrics {
		switch data := metric.Data.(type) {
		case metricdata.Sum[int64]:
			for _, point := range data.DataPoints {
				fmt.Println(metric.Name, point.Attributes.Encoded(attribute.DefaultEncoder()), point.Value)
			}
		case metricdata.Sum[float64]:
			fmt.Println(metric.Name, data.DataPoints[0].Value)
		case metricdata.Gauge[float64]:
			fmt.Println(metric.Name, data.DataPoints[0].Value)
		}
	}
	// Unordered output:
	// ratetier.decisions allowed=yes,defaulted=,degraded=no,outcome=allowed,route=,tier=free 2
	// ratetier.decisions allowed=no,defaulted=,degraded=no,outcome=limited,route=,tier=free 1
	// ratetier.cost.charged route=,tier=free 8
	// ratetier.cost.refused route=,tier=free 4
	// ratetier.store.buckets 1
	// ratetier.store.evictions 0
}
