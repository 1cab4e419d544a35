package ratetierprom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratetier/ratetier/core/metrics"
)

// RegisterStats registers what a store tells of itself: a metric for each field of what
// its Stats method returns, as [metrics.Stats] says. The function is called whenever the
// metrics are collected.
//
//	err := ratetierprom.RegisterStats(registry, "memory", store.Stats)
//
// It is an error if a field is of a type that cannot be counted, or if the registry has
// metrics of a store of that name already.
func RegisterStats[S any](registry prometheus.Registerer, store string, stats func() S) error {
	described, read, err := metrics.Stats(stats)
	if err != nil {
		return fmt.Errorf("ratetierprom: %w", err)
	}
	c := &statsCollector{read: read}
	for _, metric := range described {
		kind := prometheus.CounterValue
		if metric.Kind == metrics.Gauge {
			kind = prometheus.GaugeValue
		}
		c.kinds = append(c.kinds, kind)
		c.descriptions = append(c.descriptions,
			prometheus.NewDesc(metric.Prometheus(), metric.Help, nil, prometheus.Labels{"store": store}))
	}
	return register(registry, c)
}

// statsCollector reads a store's statistics when asked.
type statsCollector struct {
	descriptions []*prometheus.Desc
	kinds        []prometheus.ValueType
	read         func() []float64
}

// Describe is of [prometheus.Collector].
func (c *statsCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range c.descriptions {
		descriptions <- description
	}
}

// Collect is of [prometheus.Collector].
func (c *statsCollector) Collect(collected chan<- prometheus.Metric) {
	for i, value := range c.read() {
		collected <- prometheus.MustNewConstMetric(c.descriptions[i], c.kinds[i], value)
	}
}
