package ratetierotel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/ratetier/ratetier/core/metrics"
)

// RegisterStats registers what a store tells of itself: an instrument for each field of
// what its Stats method returns, as [metrics.Stats] says. The function is called whenever
// the metrics are collected, until the registration is ended with Unregister.
//
//	registration, err := ratetierotel.RegisterStats(provider, "memory", store.Stats)
//
// It is an error if a field is of a type that cannot be counted. No two stores of a
// provider should have the same name.
func RegisterStats[S any](provider metric.MeterProvider, store string, stats func() S) (metric.Registration, error) {
	if provider == nil {
		return nil, errNoProvider
	}
	described, read, err := metrics.Stats(stats)
	if err != nil {
		return nil, fmt.Errorf("ratetierotel: %w", err)
	}
	meter := provider.Meter(scope)
	var instruments []metric.Float64Observable
	var registered []metric.Observable
	var errs []error
	for _, d := range described {
		instrument, err := observable(meter, &d)
		instruments, registered, errs = append(instruments, instrument), append(registered, instrument), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("ratetierotel: %w", err)
	}
	label := metric.WithAttributeSet(attributes(&described[0], []string{store}))
	registration, err := meter.RegisterCallback(func(_ context.Context, observer metric.Observer) error {
		for i, value := range read() {
			observer.ObserveFloat64(instruments[i], value, label)
		}
		return nil
	}, registered...)
	if err != nil {
		return nil, fmt.Errorf("ratetierotel: %w", err)
	}
	return registration, nil
}

func observable(meter metric.Meter, d *metrics.Metric) (metric.Float64Observable, error) {
	if d.Kind == metrics.Gauge {
		return meter.Float64ObservableGauge(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
	}
	return meter.Float64ObservableCounter(d.Name, metric.WithUnit(d.Unit), metric.WithDescription(d.Help))
}
