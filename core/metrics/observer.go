package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	ratetier "github.com/ratetier/ratetier/core"
)

// Meter is a system of metrics. Its methods are called, one at a time, for the first event
// of its kind; asked for the same labels again, they return what adds to the same number.
// The functions that they return are called for each event, from many goroutines at once.
// Labels are in the order of [Metric.Labels].
type Meter interface {
	// Counter returns what adds to the counter with these labels. It adds 0 or more.
	Counter(metric *Metric, labels []string) (add func(int64))

	// Histogram returns what records a value in the histogram with these labels.
	Histogram(metric *Metric, labels []string) (record func(float64))
}

// maxRoutes bounds the labels if routes are not patterns after all, but paths.
const maxRoutes = 1000

// OtherRoutes is the label of the routes that are seen after the first 1000. An adapter
// tells patterns, of which there are fewer; but a check of your own may not.
const OtherRoutes = "other"

// NewObserver returns an observer that counts events with the meter. The store is the
// label by which the limiter's is known, such as "redis". An event costs no allocation
// but for the first with its labels.
func NewObserver(meter Meter, store string) ratetier.Observer {
	o := &observer{meter: meter, store: store, routes: map[string]bool{}}
	o.series.Store(&map[labels]*series{})
	return func(event ratetier.Event) { o.of(labelsOf(&event)).count(&event) }
}

type observer struct {
	meter Meter
	store string

	series atomic.Pointer[map[labels]*series] // replaced, never changed
	adding sync.Mutex
	routes map[string]bool // those among series
}

// labels is all that tells one event from another as far as metrics go.
type labels struct {
	tier, route        string
	outcome, defaulted ratetier.Outcome
	mode               ratetier.Mode
	allowed, shadow    bool
	degraded           bool
}

// labelsOf takes the tier from the decision, where it is one that is configured. That of
// the identity is whatever a token says.
func labelsOf(event *ratetier.Event) labels {
	return labels{
		tier: event.Tier, route: event.Route, outcome: event.Outcome, defaulted: event.Defaulted,
		mode: event.Mode, allowed: event.Allowed, shadow: event.Shadow, degraded: event.Degraded,
	}
}

// of returns the series of the labels.
func (o *observer) of(l labels) *series {
	if s := (*o.series.Load())[l]; s != nil {
		return s
	}
	o.adding.Lock()
	defer o.adding.Unlock()
	if !o.routes[l.route] && len(o.routes) >= maxRoutes {
		l.route = OtherRoutes
	}
	if s := (*o.series.Load())[l]; s != nil {
		return s
	}
	l.route = strings.Clone(l.route) // it may be part of a buffer that is used again
	o.routes[l.route] = true
	more := maps.Clone(*o.series.Load())
	more[l] = o.newSeries(&l)
	o.series.Store(&more)
	return more[l]
}

// series is what the events with certain labels are counted in, nil where they do not
// count.
type series struct {
	decisions, cost, errors func(int64)
	duration                func(float64)
}

func (o *observer) newSeries(l *labels) *series {
	s := new(series)
	if l.mode == ratetier.ModeTake {
		s.decisions = o.meter.Counter(&Decisions, l.decision())
	}
	if cost := l.cost(); cost != nil {
		s.cost = o.meter.Counter(cost, []string{l.tier, l.route})
	}
	switch l.outcome {
	case ratetier.OutcomeStoreFailed:
		s.errors = o.meter.Counter(&StoreErrors, []string{o.store})
		fallthrough
	case ratetier.OutcomeAllowed, ratetier.OutcomeLimited:
		s.duration = o.meter.Histogram(&CheckDuration, []string{o.store})
	default: // the store was not asked, or the caller did not wait for it
	}
	return s
}

// decision returns the labels of [Decisions].
func (l *labels) decision() []string {
	allowed, defaulted := yesOrNo(l.allowed), ""
	if l.shadow {
		allowed = "shadow"
	}
	if l.defaulted != 0 {
		defaulted = l.defaulted.String()
	}
	return []string{l.tier, l.route, l.outcome.String(), allowed, defaulted, yesOrNo(l.degraded)}
}

// cost returns which metric the cost of the event belongs to, nil if it moved nothing. A
// cost that can never fit is left out: it may be any number that a client thinks of.
func (l *labels) cost() *Metric {
	switch {
	case l.outcome == ratetier.OutcomeLimited:
		return &CostRefused
	case l.outcome != ratetier.OutcomeAllowed:
		return nil
	case l.mode == ratetier.ModeRefund:
		return &CostRefunded
	default:
		return &CostCharged
	}
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (s *series) count(event *ratetier.Event) {
	if s.decisions != nil {
		s.decisions(1)
	}
	if s.cost != nil {
		s.cost(event.Cost)
	}
	if s.errors != nil {
		s.errors(1)
	}
	if s.duration != nil {
		s.duration(event.Elapsed.Seconds())
	}
}
