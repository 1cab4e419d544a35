package metrics_test

import (
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
	"unsafe"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/metrics"
	"github.com/ratetier/ratetier/core/storetest"
)

// ledger is a system of metrics that can be read.
type ledger struct {
	mu     sync.Mutex
	totals map[string]float64
	made   int // calls of the methods
}

func newLedger() *ledger { return &ledger{totals: map[string]float64{}} }

func (l *ledger) add(metric *metrics.Metric, labels []string) func(float64) {
	var pairs []string
	for i, name := range metric.Labels {
		if labels[i] != "" && labels[i] != "no" {
			pairs = append(pairs, name+"="+labels[i])
		}
	}
	series := fmt.Sprintf("%s{%s}", metric.Prometheus(), strings.Join(pairs, ","))
	l.mu.Lock()
	l.totals[series] += 0
	l.made++
	l.mu.Unlock()
	return func(v float64) {
		l.mu.Lock()
		l.totals[series] += v
		l.mu.Unlock()
	}
}

func (l *ledger) Counter(metric *metrics.Metric, labels []string) func(int64) {
	add := l.add(metric, labels)
	return func(n int64) { add(float64(n)) }
}

func (l *ledger) Histogram(metric *metrics.Metric, labels []string) func(float64) {
	return l.add(metric, labels)
}

// lines returns the series with their totals, in order.
func (l *ledger) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, series := range slices.Sorted(maps.Keys(l.totals)) {
		lines = append(lines, fmt.Sprint(strings.TrimPrefix(series, "ratetier_"), " ", l.totals[series]))
	}
	return lines
}

func TestEventsCountWhereTheyBelong(t *testing.T) {
	const (
		take, charge, refund = ratetier.ModeTake, ratetier.ModeCharge, ratetier.ModeRefund

		took, failed = "check_duration_seconds{store=redis} 0.5", "store_errors_total{store=redis} 1"
	)
	for _, test := range []struct {
		mode     ratetier.Mode
		decision ratetier.Decision
		want     []string
	}{
		{take, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free"}, []string{
			took, "cost_charged_total{tier=free,route=/a} 3", "decisions_total{tier=free,route=/a,outcome=allowed,allowed=yes} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free", Defaulted: ratetier.OutcomeUnknownTier}, []string{
			took, "cost_charged_total{tier=free,route=/a} 3", "decisions_total{tier=free,route=/a,outcome=allowed,allowed=yes,defaulted=unknown_tier} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free", Degraded: true}, []string{
			took, "cost_charged_total{tier=free,route=/a} 3", "decisions_total{tier=free,route=/a,outcome=allowed,allowed=yes,degraded=yes} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeLimited, Tier: "free"}, []string{
			took, "cost_refused_total{tier=free,route=/a} 3", "decisions_total{tier=free,route=/a,outcome=limited} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeLimited, Tier: "free", Allowed: true, Shadow: true}, []string{
			took, "cost_refused_total{tier=free,route=/a} 3", "decisions_total{tier=free,route=/a,outcome=limited,allowed=shadow} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeUnlimited, Allowed: true, Tier: "max"}, []string{
			"decisions_total{tier=max,route=/a,outcome=unlimited,allowed=yes} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeCostTooHigh, Tier: "free"}, []string{
			"decisions_total{tier=free,route=/a,outcome=cost_too_high} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeUnknownTier}, []string{
			"decisions_total{route=/a,outcome=unknown_tier} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeInvalidCost}, []string{
			"decisions_total{route=/a,outcome=invalid_cost} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeCanceled, Tier: "free"}, []string{
			"decisions_total{tier=free,route=/a,outcome=canceled} 1",
		}},
		{take, ratetier.Decision{Outcome: ratetier.OutcomeStoreFailed, Allowed: true, Tier: "free"}, []string{
			took, "decisions_total{tier=free,route=/a,outcome=store_failed,allowed=yes} 1", failed,
		}},
		{charge, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free"}, []string{
			took, "cost_charged_total{tier=free,route=/a} 3",
		}},
		{refund, ratetier.Decision{Outcome: ratetier.OutcomeAllowed, Allowed: true, Tier: "free"}, []string{
			took, "cost_refunded_total{tier=free,route=/a} 3",
		}},
		{refund, ratetier.Decision{Outcome: ratetier.OutcomeStoreFailed, Allowed: true, Tier: "free"}, []string{took, failed}},
	} {
		l := newLedger()
		test.decision.Cost = 3
		metrics.NewObserver(l, "redis")(ratetier.Event{
			Decision: test.decision, Mode: test.mode, Route: "/a", Elapsed: time.Second / 2,
			Identity: ratetier.Identity{User: "ana", Tier: "whatever the token says"},
		})
		if got := l.lines(); !slices.Equal(got, test.want) {
			t.Errorf("%v %+v:\n got %q\nwant %q", test.mode, test.decision, got, test.want)
		}
	}
}

// What clients make up does not become a label: not users, not tiers that their tokens
// name, not costs. Nor do paths, should somebody take them for patterns.
func TestSeriesAreBounded(t *testing.T) {
	l := newLedger()
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       storetest.Reference(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(2), "pro": ratetier.PerMinute(5)},
		DefaultTier: "free",
		Observer:    metrics.NewObserver(l, "memory"),
	}))
	decide := func(from, to int, route string) {
		for i := from; i < to; i++ {
			name := strconv.Itoa(i)
			for _, identity := range []ratetier.Identity{
				{User: name, Tier: "pro"}, {User: name, Tier: "plan " + name}, ratetier.Unidentified(name, errors.New("error "+name)),
			} {
				limiter.Admit(context.Background(), ratetier.Check{Identity: identity, Cost: int64(i), Route: route})
			}
		}
	}
	decide(0, 10, "/data/{id}")
	few := len(l.lines())
	decide(10, 10_000, "/data/{id}")
	if many := len(l.lines()); many != few {
		t.Errorf("10 users make %d series, 10000 make %d", few, many)
	}
	for i := range 5000 {
		decide(0, 1, fmt.Sprint("/data/", i))
	}
	routes, other := map[string]bool{}, 0
	for _, line := range l.lines() {
		if _, route, ok := strings.Cut(line, "route="); ok {
			route = route[:strings.IndexAny(route, ",}")]
			routes[route] = true
			if route == metrics.OtherRoutes {
				other++
			}
		}
	}
	if len(routes) != 1001 || other == 0 {
		t.Errorf("%d routes are labels, want 1000 and %q", len(routes), metrics.OtherRoutes)
	}
}

func TestARouteMayBePartOfABufferThatIsUsedAgain(t *testing.T) {
	l := newLedger()
	observe := metrics.NewObserver(l, "memory")
	event := func(route string) {
		observe(ratetier.Event{Decision: ratetier.Decision{Outcome: ratetier.OutcomeUnlimited, Allowed: true}, Route: route})
	}
	buffer := []byte("/a")
	event(unsafe.String(&buffer[0], len(buffer)))
	copy(buffer, "/b")
	event(unsafe.String(&buffer[0], len(buffer)))
	event("/a")
	want := []string{
		"decisions_total{route=/a,outcome=unlimited,allowed=yes} 2",
		"decisions_total{route=/b,outcome=unlimited,allowed=yes} 1",
	}
	if got := l.lines(); !slices.Equal(got, want) || l.made != len(want) {
		t.Errorf("got %q, made %d times; want %q", got, l.made, want)
	}
}

func TestNothingIsLostBetweenGoroutines(t *testing.T) {
	l := newLedger()
	observe := metrics.NewObserver(l, "memory")
	const goroutines, events, routes = 16, 1000, 100
	start := make(chan struct{})
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			<-start
			for i := range events {
				observe(ratetier.Event{
					Decision: ratetier.Decision{Outcome: ratetier.OutcomeUnlimited, Allowed: true},
					Route:    strconv.Itoa((g*7 + i) % routes),
				})
			}
		})
	}
	close(start)
	wg.Wait()
	lines := l.lines()
	for _, line := range lines {
		if !strings.HasSuffix(line, fmt.Sprint(" ", goroutines*events/routes)) {
			t.Error(line)
		}
	}
	if len(lines) != routes {
		t.Errorf("%d series, want %d", len(lines), routes)
	}
}

func TestNamesInPrometheus(t *testing.T) {
	var names []string
	for _, metric := range metrics.Observed() {
		names = append(names, metric.Prometheus())
	}
	want := []string{
		"ratetier_decisions_total", "ratetier_cost_charged_total", "ratetier_cost_refunded_total",
		"ratetier_cost_refused_total", "ratetier_check_duration_seconds", "ratetier_store_errors_total",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
