// Package metrics says what is counted about limiters and their stores, once for every
// system of metrics. Package ratetierprom tells it to Prometheus, ratetierotel to
// OpenTelemetry; for another system implement [Meter].
//
// Users are never part of it, nor anything else that a client makes up: there are as many
// series as there are tiers, routes and outcomes, however many users there are.
package metrics

import "strings"

// Metric describes one number that is kept for each combination of labels.
type Metric struct {
	// Name is the name in OpenTelemetry, such as "ratetier.check.duration".
	Name string

	// Unit is a unit of UCUM: "s", a word in braces for what is merely counted, or "".
	Unit string

	// Help is a sentence on what is measured.
	Help string

	Kind   Kind     // how the numbers add up
	Labels []string // their names, in the order in which a [Meter] gets them
}

// Kind is how the numbers of a [Metric] add up.
type Kind uint8

const (
	// Counter only grows.
	Counter Kind = iota
	// Gauge goes up and down.
	Gauge
	// Histogram counts how many values were at most as large as each of [Buckets].
	Histogram
)

// What is counted by an observer.
var (
	Decisions = Metric{
		Name: "ratetier.decisions", Unit: "{decision}", Kind: Counter,
		Labels: []string{"tier", "route", "outcome", "allowed", "defaulted", "degraded"},
		Help:   "Takes that were decided, by what was found and whether the request may go on.",
	}
	CostCharged = Metric{
		Name: "ratetier.cost.charged", Unit: "{cell}", Kind: Counter, Labels: []string{"tier", "route"},
		Help: "Cells that were taken from buckets.",
	}
	CostRefunded = Metric{
		Name: "ratetier.cost.refunded", Unit: "{cell}", Kind: Counter, Labels: []string{"tier", "route"},
		Help: "Cells that were given back to buckets.",
	}
	CostRefused = Metric{
		Name: "ratetier.cost.refused", Unit: "{cell}", Kind: Counter, Labels: []string{"tier", "route"},
		Help: "Cells that were asked for and did not fit at that moment, in shadow mode too.",
	}
	CheckDuration = Metric{
		Name: "ratetier.check.duration", Unit: "s", Kind: Histogram, Labels: []string{"store"},
		Help: "Time that checks took which the store decided, or failed to.",
	}
	StoreErrors = Metric{
		Name: "ratetier.store.errors", Unit: "{error}", Kind: Counter, Labels: []string{"store"},
		Help: "Checks that the store did not decide.",
	}
)

// Observed returns what is counted by an observer.
func Observed() []*Metric {
	return []*Metric{&Decisions, &CostCharged, &CostRefunded, &CostRefused, &CheckDuration, &StoreErrors}
}

// Buckets returns the upper bounds of [CheckDuration], in seconds: from what a store in
// memory takes to what one in trouble does.
func Buckets() []float64 {
	return []float64{1e-6, 1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1}
}

// Prometheus returns the name in Prometheus, such as "ratetier_check_duration_seconds".
// It is what OpenTelemetry's translation makes of Name and Unit.
func (m *Metric) Prometheus() string {
	name := strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}
