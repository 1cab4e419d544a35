// Package ratetierotel counts what limiters decide, and what their stores do, through
// the metrics API of OpenTelemetry.
//
//	observer, err := ratetierotel.NewObserver(otel.GetMeterProvider(), "redis")
//	...
//	limiter, err := ratetier.New(ratetier.Config{
//		Store:    store,
//		Observer: observer,
//		...
//	})
//	registration, err := ratetierotel.RegisterStats(otel.GetMeterProvider(), "redis", store.Stats)
//
// Attributes are tiers, patterns of routes, and what was found: never a user, nor
// anything else that a client makes up. Package metrics has the list. Translated to
// Prometheus, they are what package ratetierprom exports.
package ratetierotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/metrics"
)

// scope is the name of the instrumentation.
const scope = "github.com/ratetier/ratetier/metrics/otel"

// NewObserver returns an observer that counts decisions with a meter of the provider.
// The store is the name by which the limiter's is known in the attribute "store", such as
// "redis". Observers of one provider count together.
func NewObserver(provider metric.MeterProvider, store string) (ratetier.Observer, error) {
	m, err := newMeter(provider)
	if err != nil {
		return nil, err
	}
	return metrics.NewObserver(m, store), nil
}

// meter has the instruments of [metrics.Observed].
type meter struct {
	counters   map[*metrics.Metric]metric.Int64Counter
	histograms map[*metrics.Metric]metric.Float64Histogram
}

func newMeter(provider metric.MeterProvider) (*meter, error) {
	if provider == nil {
		return nil, errNoProvider
	}
	m := &meter{map[*metrics.Metric]metric.Int64Counter{}, map[*metrics.Metric]metric.Float64Histogram{}}
	instruments := provider.Meter(scope)
	var errs []error
	for _, described := range metrics.Observed() {
		var err error
		switch described.Kind {
		case metrics.Histogram:
			m.histograms[described], err = instruments.Float64Histogram(described.Name,
				metric.WithUnit(described.Unit), metric.WithDescription(described.Help),
				metric.WithExplicitBucketBoundaries(metrics.Buckets()...))
		default:
			m.counters[described], err = instruments.Int64Counter(described.Name,
				metric.WithUnit(described.Unit), metric.WithDescription(described.Help))
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("ratetierotel: %w", err)
	}
	return m, nil
}

var errNoProvider = errors.New("ratetierotel: no provider: use for example otel.GetMeterProvider()")

// Counter is of [metrics.Meter].
func (m *meter) Counter(described *metrics.Metric, labels []string) func(int64) {
	counter := m.counters[described]
	options := []metric.AddOption{metric.WithAttributeSet(attributes(described, labels))}
	return func(n int64) { counter.Add(context.Background(), n, options...) }
}

// Histogram is of [metrics.Meter].
func (m *meter) Histogram(described *metrics.Metric, labels []string) func(float64) {
	histogram := m.histograms[described]
	options := []metric.RecordOption{metric.WithAttributeSet(attributes(described, labels))}
	return func(value float64) { histogram.Record(context.Background(), value, options...) }
}

func attributes(described *metrics.Metric, labels []string) attribute.Set {
	var pairs []attribute.KeyValue
	for i, name := range described.Labels {
		pairs = append(pairs, attribute.String(name, labels[i]))
	}
	return attribute.NewSet(pairs...)
}
