package ratetierotel_test

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// refusing is a provider whose meters make nothing.
type refusing struct {
	noop.MeterProvider
	err error
}

func (r refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{err: r.err} }

type refusingMeter struct {
	noop.Meter
	err error
}

func (m refusingMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, m.err
}

func (m refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, m.err
}

func (m refusingMeter) Float64ObservableGauge(string, ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return nil, m.err
}
