package ratetierprom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/metrics"
	ratetierprom "github.com/ratetier/ratetier/metrics/prometheus"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// ailing is a store that fails when told to, and takes a millisecond in any case.
type ailing struct {
	*memorystore.Store
	clock *clocktest.Clock
	err   error
}

func (s *ailing) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	s.clock.Advance(time.Millisecond)
	if s.err != nil {
		return s.err
	}
	return s.Store.Apply(ctx, request, result)
}

// busy is a registry with the metrics of a limiter to which everything has happened.
func busy(t *testing.T) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	store := &ailing{Store: memorystore.New(), clock: clocktest.New(time.Unix(0, 0))}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       store,
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(10), "max": ratetier.Unlimited()},
		DefaultTier: "free",
		Observer:    newObserver(t, registry),
		Clock:       store.clock,
	}))
	if err := ratetierprom.RegisterStats(registry, "memory", store.Stats); err != nil {
		t.Fatal(err)
	}
	ctx, ana := context.Background(), ratetier.Identity{User: "ana", Tier: "free"}
	_, admission := limiter.Admit(ctx, ratetier.Check{Identity: ana, Cost: 6, Route: "GET /report"})
	if err := admission.Settle(ctx, 4); err != nil {
		t.Fatal(err)
	}
	limiter.Take(ctx, ana, 7)
	limiter.Take(ctx, ana, 11)
	limiter.Take(ctx, ratetier.Identity{User: "eva", Tier: "gold"}, 1)
	limiter.Take(ctx, ratetier.Identity{User: "bea", Tier: "max"}, 1)
	store.err = errors.New("out of order")
	limiter.Take(ctx, ana, 1)
	return registry
}

func newObserver(t *testing.T, registry prometheus.Registerer) ratetier.Observer {
	t.Helper()
	observer, err := ratetierprom.NewObserver(registry, "memory")
	if err != nil {
		t.Fatal(err)
	}
	return observer
}

// exported is what Prometheus reads, as its own parser understands it.
func exported(t *testing.T, registry *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestWhatPrometheusReads(t *testing.T) {
	var got []string
	families := exported(t, busy(t))
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, metric := range families[name].GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				if label.GetValue() != "" {
					labels = append(labels, label.GetName()+"="+label.GetValue())
				}
			}
			value := fmt.Sprint(metric.GetCounter().GetValue() + metric.GetGauge().GetValue())
			if h := metric.GetHistogram(); h != nil {
				value = fmt.Sprint(h.GetSampleCount(), " in ", h.GetSampleSum(), " s, ", len(h.GetBucket()), " buckets")
			}
			got = append(got, fmt.Sprintf("%s{%s} %s", strings.TrimPrefix(name, "ratetier_"), strings.Join(labels, ","), value))
		}
	}
	want := []string{
		"check_duration_seconds{store=memory} 5 in 0.005 s, 15 buckets",
		"cost_charged_total{tier=free} 1",
		"cost_charged_total{route=GET /report,tier=free} 6",
		"cost_refunded_total{route=GET /report,tier=free} 2",
		"cost_refused_total{tier=free} 7",
		"decisions_total{allowed=no,degraded=no,outcome=cost_too_high,tier=free} 1",
		"decisions_total{allowed=no,degraded=no,outcome=limited,tier=free} 1",
		"decisions_total{allowed=yes,degraded=no,outcome=allowed,route=GET /report,tier=free} 1",
		"decisions_total{allowed=yes,degraded=no,outcome=store_failed,tier=free} 1",
		"decisions_total{allowed=yes,degraded=no,outcome=unlimited,tier=max} 1",
		"decisions_total{allowed=yes,defaulted=unknown_tier,degraded=no,outcome=allowed,tier=free} 1",
		"store_buckets{store=memory} 2",
		"store_errors_total{store=memory} 1",
		"store_evictions_total{store=memory} 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The names, units and descriptions are as Prometheus wants them.
func TestTheMetricsAreFreeOfLint(t *testing.T) {
	registry := busy(t)
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families := exported(t, registry)
	for _, metric := range metrics.Observed() {
		if families[metric.Prometheus()].GetHelp() != metric.Help {
			t.Errorf("%s is missing, or described otherwise", metric.Prometheus())
		}
	}
}

func TestTenThousandUsersMakeNoMoreSeriesThanTen(t *testing.T) {
	registry := prometheus.NewRegistry()
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(1)},
		DefaultTier: "free",
		Observer:    newObserver(t, registry),
	}))
	series := func(users int) int {
		for i := range users {
			for range 2 {
				limiter.Take(context.Background(), ratetier.Identity{User: strconv.Itoa(i), Tier: "free"}, 1)
				limiter.Take(context.Background(), ratetier.Identity{User: strconv.Itoa(i), Tier: fmt.Sprint("plan", i)}, 1)
			}
		}
		count, err := testutil.GatherAndCount(registry)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if few, many := series(10), series(10_000); few != many {
		t.Errorf("10 users make %d series, 10000 make %d", few, many)
	}
}

func TestRegisteringTwiceIsAnError(t *testing.T) {
	registry := prometheus.NewRegistry()
	observe := newObserver(t, registry)
	store := memorystore.New()
	if err := ratetierprom.RegisterStats(registry, "memory", store.Stats); err != nil {
		t.Fatal(err)
	}
	const twice = "the registry has these metrics already"
	if _, err := ratetierprom.NewObserver(registry, "memory"); err == nil || !strings.Contains(err.Error(), twice) {
		t.Errorf("a second observer: %v", err)
	}
	if err := ratetierprom.RegisterStats(registry, "memory", store.Stats); err == nil || !strings.Contains(err.Error(), twice) {
		t.Errorf("the same statistics: %v", err)
	}
	// A store of another name, or a label, tells them apart.
	if err := ratetierprom.RegisterStats(registry, "local", memorystore.New().Stats); err != nil {
		t.Errorf("the statistics of another store: %v", err)
	}
	wrapped := prometheus.WrapRegistererWith(prometheus.Labels{"limiter": "login"}, prometheus.NewRegistry())
	if _, err := ratetierprom.NewObserver(wrapped, "memory"); err != nil {
		t.Errorf("with a label: %v", err)
	}
	// The first one still counts.
	observe(ratetier.Event{Decision: ratetier.Decision{Outcome: ratetier.OutcomeUnlimited}})
	if families := exported(t, registry); len(families["ratetier_decisions_total"].GetMetric()) != 1 || len(families["ratetier_store_buckets"].GetMetric()) != 2 {
		t.Errorf("exported %v", families)
	}
}

func TestWhatIsWrongIsSaidWhenItIsRegistered(t *testing.T) {
	store := memorystore.New()
	_, noRegistry := ratetierprom.NewObserver(nil, "memory")
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "ratetier_decisions_total"}))
	_, taken1 := ratetierprom.NewObserver(taken, "memory")
	for want, err := range map[string]error{
		"ratetierprom: no registry: use":                      noRegistry,
		"ratetierprom: no registry: use for example":          ratetierprom.RegisterStats(nil, "memory", store.Stats),
		"ratetierprom: statistics of type int":                ratetierprom.RegisterStats(prometheus.NewRegistry(), "memory", func() int { return 1 }),
		"ratetierprom: a previously registered descriptor":    taken1,
		"ratetierprom: no function that returns statistics: ": ratetierprom.RegisterStats[memorystore.Stats](prometheus.NewRegistry(), "memory", nil),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got error %v, want one that begins with %q", err, want)
		}
	}
	// Nothing is left of what could not be registered whole.
	if count, err := testutil.GatherAndCount(taken); err != nil || count != 1 {
		t.Errorf("%d series, %v", count, err)
	}
}

func TestEventsAndScrapesAtTheSameTime(t *testing.T) {
	registry := prometheus.NewRegistry()
	observe := newObserver(t, registry)
	const goroutines, events = 16, 500
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range events {
				observe(ratetier.Event{
					Decision: ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Cost: 2},
					Route:    strconv.Itoa(i % 10),
				})
				if g == 0 && i%50 == 0 {
					_, _ = registry.Gather() // the last one is looked at
				}
			}
		})
	}
	wg.Wait()
	families := exported(t, registry)
	for name, want := range map[string]float64{"ratetier_decisions_total": goroutines * events, "ratetier_cost_charged_total": 2 * goroutines * events} {
		total := 0.0
		for _, metric := range families[name].GetMetric() {
			total += metric.GetCounter().GetValue()
		}
		if total != want {
			t.Errorf("%s adds up to %v, want %v", name, total, want)
		}
	}
}
