// Package ratetierprom counts what limiters decide, and what their stores do, for
// Prometheus.
//
//	observer, err := ratetierprom.NewObserver(prometheus.DefaultRegisterer, "redis")
//	...
//	limiter, err := ratetier.New(ratetier.Config{
//		Store:    store,
//		Observer: observer,
//		...
//	})
//	err = ratetierprom.RegisterStats(prometheus.DefaultRegisterer, "redis", store.Stats)
//
// Labels are tiers, patterns of routes, and what was found: never a user, nor anything
// else that a client makes up. Package metrics has the list.
//
// # Several limiters
//
// Limiters may share an observer. To tell them apart, give each one of its own, in a
// registry that adds a label:
//
//	prometheus.WrapRegistererWith(prometheus.Labels{"limiter": "login"}, registry)
package ratetierprom

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/metrics"
)

// NewObserver registers the metrics of a limiter, and returns the observer that counts
// them. The store is the name by which the limiter's is known in the label "store", such
// as "redis". It is an error if the registry has these metrics already: share the
// observer that they came with.
func NewObserver(registry prometheus.Registerer, store string) (ratetier.Observer, error) {
	m := newMeter()
	if err := register(registry, m); err != nil {
		return nil, err
	}
	return metrics.NewObserver(m, store), nil
}

func register(registry prometheus.Registerer, collector prometheus.Collector) error {
	if registry == nil {
		return errors.New("ratetierprom: no registry: use for example prometheus.DefaultRegisterer")
	}
	err := registry.Register(collector)
	if twice := (prometheus.AlreadyRegisteredError{}); errors.As(err, &twice) {
		return fmt.Errorf("ratetierprom: the registry has these metrics already: share what they are counted by, or add a label with prometheus.WrapRegistererWith: %w", err)
	}
	if err != nil {
		return fmt.Errorf("ratetierprom: %w", err)
	}
	return nil
}

// meter has the metrics of [metrics.Observed], which are registered all or none.
type meter struct {
	counters   map[*metrics.Metric]*prometheus.CounterVec
	histograms map[*metrics.Metric]*prometheus.HistogramVec
}

func newMeter() *meter {
	m := &meter{map[*metrics.Metric]*prometheus.CounterVec{}, map[*metrics.Metric]*prometheus.HistogramVec{}}
	for _, metric := range metrics.Observed() {
		switch metric.Kind {
		case metrics.Histogram:
			m.histograms[metric] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: metric.Prometheus(), Help: metric.Help, Buckets: metrics.Buckets(),
			}, metric.Labels)
		default:
			m.counters[metric] = prometheus.NewCounterVec(prometheus.CounterOpts{
				Name: metric.Prometheus(), Help: metric.Help,
			}, metric.Labels)
		}
	}
	return m
}

// Counter is of [metrics.Meter].
func (m *meter) Counter(metric *metrics.Metric, labels []string) func(int64) {
	counter := m.counters[metric].WithLabelValues(labels...)
	return func(n int64) { counter.Add(float64(n)) }
}

// Histogram is of [metrics.Meter].
func (m *meter) Histogram(metric *metrics.Metric, labels []string) func(float64) {
	return m.histograms[metric].WithLabelValues(labels...).Observe
}

// Describe is of [prometheus.Collector].
func (m *meter) Describe(descriptions chan<- *prometheus.Desc) {
	for _, collector := range m.collectors() {
		collector.Describe(descriptions)
	}
}

// Collect is of [prometheus.Collector].
func (m *meter) Collect(collected chan<- prometheus.Metric) {
	for _, collector := range m.collectors() {
		collector.Collect(collected)
	}
}

func (m *meter) collectors() (collectors []prometheus.Collector) {
	for _, counter := range m.counters {
		collectors = append(collectors, counter)
	}
	for _, histogram := range m.histograms {
		collectors = append(collectors, histogram)
	}
	return collectors
}
