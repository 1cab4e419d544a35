package ratetierotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/metrics"
	ratetierotel "github.com/ratetier/ratetier/metrics/otel"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func newProvider() (*sdk.MeterProvider, *sdk.ManualReader) {
	reader := sdk.NewManualReader()
	return sdk.NewMeterProvider(sdk.WithReader(reader)), reader
}

func newObserver(t *testing.T, provider *sdk.MeterProvider) ratetier.Observer {
	t.Helper()
	observer, err := ratetierotel.NewObserver(provider, "memory")
	if err != nil {
		t.Fatal(err)
	}
	return observer
}

// collected is what an exporter reads: each point on a line, in order.
func collected(t *testing.T, reader *sdk.ManualReader) (lines []string) {
	t.Helper()
	var read metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &read); err != nil {
		t.Fatal(err)
	}
	for _, scope := range read.ScopeMetrics {
		for _, m := range scope.Metrics {
			line := func(labels attribute.Set, value ...any) {
				var set []string
				for _, label := range labels.ToSlice() {
					if label.Value.AsString() != "" {
						set = append(set, fmt.Sprint(label.Key, "=", label.Value.AsString()))
					}
				}
				lines = append(lines, fmt.Sprintf("%s{%s} %s%s",
					strings.TrimPrefix(m.Name, "ratetier."), strings.Join(set, ","), fmt.Sprint(value...), m.Unit))
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					line(point.Attributes, point.Value, " ")
				}
			case metricdata.Sum[float64]:
				for _, point := range data.DataPoints {
					line(point.Attributes, point.Value)
				}
			case metricdata.Gauge[float64]:
				for _, point := range data.DataPoints {
					line(point.Attributes, "at ", point.Value)
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					line(point.Attributes, point.Count, " in ", point.Sum, " ", len(point.BucketCounts), " buckets of ")
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestWhatAnExporterReads(t *testing.T) {
	provider, reader := newProvider()
	observe := newObserver(t, provider)
	event := func(mode ratetier.Mode, decision ratetier.Decision) {
		decision.Cost = 3
		observe(ratetier.Event{Decision: decision, Mode: mode, Route: "GET /a", Elapsed: time.Second / 2})
	}
	event(ratetier.ModeTake, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free"})
	event(ratetier.ModeTake, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free"})
	event(ratetier.ModeTake, ratetier.Decision{Outcome: ratetier.OutcomeLimited, Tier: "free", Degraded: true})
	event(ratetier.ModeRefund, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Tier: "free"})
	event(ratetier.ModeTake, ratetier.Decision{Outcome: ratetier.OutcomeStoreFailed, Tier: "free"})
	if _, err := ratetierotel.RegisterStats(provider, "memory", func() memorystore.Stats {
		return memorystore.Stats{Buckets: 5, Evictions: 6}
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"check.duration{store=memory} 5 in 2.5 15 buckets of s",
		"cost.charged{route=GET /a,tier=free} 6 {cell}",
		"cost.refunded{route=GET /a,tier=free} 3 {cell}",
		"cost.refused{route=GET /a,tier=free} 3 {cell}",
		"decisions{allowed=no,degraded=no,outcome=store_failed,route=GET /a,tier=free} 1 {decision}",
		"decisions{allowed=no,degraded=yes,outcome=limited,route=GET /a,tier=free} 1 {decision}",
		"decisions{allowed=yes,degraded=no,outcome=allowed,route=GET /a,tier=free} 2 {decision}",
		"store.buckets{store=memory} at 5",
		"store.errors{store=memory} 1 {error}",
		"store.evictions{store=memory} 6",
	}
	if got := collected(t, reader); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestStoresOfDifferentNamesAreToldApart(t *testing.T) {
	provider, reader := newProvider()
	register := func(store string, buckets int) interface{ Unregister() error } {
		registration, err := ratetierotel.RegisterStats(provider, store, func() memorystore.Stats {
			return memorystore.Stats{Buckets: buckets}
		})
		if err != nil {
			t.Fatal(err)
		}
		return registration
	}
	register("local", 1)
	far := register("far", 2)
	want := []string{"store.buckets{store=far} at 2", "store.buckets{store=local} at 1", "store.evictions{store=far} 0", "store.evictions{store=local} 0"}
	if got := collected(t, reader); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := far.Unregister(); err != nil {
		t.Error(err)
	}
	if got := collected(t, reader); !slices.Equal(got, []string{want[1], want[3]}) {
		t.Errorf("after it was unregistered: %q", got)
	}
}

func TestObserversOfOneProviderCountTogether(t *testing.T) {
	provider, reader := newProvider()
	for range 2 {
		newObserver(t, provider)(ratetier.Event{Decision: ratetier.Decision{Outcome: ratetier.OutcomeBlocked}})
	}
	want := []string{"decisions{allowed=no,degraded=no,outcome=blocked} 2 {decision}"}
	if got := collected(t, reader); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsWrongIsSaidWhenItIsRegistered(t *testing.T) {
	provider, _ := newProvider()
	_, noObserver := ratetierotel.NewObserver(nil, "memory")
	_, noStats := ratetierotel.RegisterStats(nil, "memory", memorystore.New().Stats)
	_, noStruct := ratetierotel.RegisterStats(provider, "memory", func() int { return 1 })
	for want, err := range map[string]error{
		"ratetierotel: no provider: use for example otel.Get": noObserver,
		"ratetierotel: no provider: use":                      noStats,
		"ratetierotel: statistics of type int":                noStruct,
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got error %v, want one that begins with %q", err, want)
		}
	}
}

func TestEventsAndCollectionsAtTheSameTime(t *testing.T) {
	provider, reader := newProvider()
	observe := newObserver(t, provider)
	const goroutines, events, routes = 16, 500, 10
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range events {
				observe(ratetier.Event{
					Decision: ratetier.Decision{Outcome: ratetier.OutcomeUnlimited, Allowed: true, Tier: "max"},
					Route:    strconv.Itoa(i % routes),
				})
				if g == 0 && i%50 == 0 {
					_ = reader.Collect(context.Background(), new(metricdata.ResourceMetrics)) // the last one is looked at
				}
			}
		})
	}
	wg.Wait()
	lines := collected(t, reader)
	for _, line := range lines {
		if !strings.HasSuffix(line, fmt.Sprintf(" %d {decision}", goroutines*events/routes)) {
			t.Error(line)
		}
	}
	if len(lines) != routes {
		t.Errorf("%d points, want %d", len(lines), routes)
	}
}

// An instrument that cannot be made is an error of the constructor.
func TestErrorsOfTheProviderAreReturned(t *testing.T) {
	want := errors.New("no more instruments")
	_, err := ratetierotel.NewObserver(refusing{err: want}, "memory")
	if !errors.Is(err, want) || strings.Count(err.Error(), want.Error()) != len(metrics.Observed()) {
		t.Errorf("an observer: %v", err)
	}
	if _, err := ratetierotel.RegisterStats(refusing{err: want}, "memory", memorystore.New().Stats); !errors.Is(err, want) {
		t.Errorf("statistics: %v", err)
	}
}
