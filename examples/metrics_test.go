package examples_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/redis/go-redis/v9"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	ratetier "github.com/ratetier/ratetier/core"
	ratetierotel "github.com/ratetier/ratetier/metrics/otel"
	ratetierprom "github.com/ratetier/ratetier/metrics/prometheus"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
	memorystore "github.com/ratetier/ratetier/stores/memory"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// tellEverything tells the observer whatever can become of a check.
func tellEverything(observe ratetier.Observer) {
	for _, mode := range []ratetier.Mode{ratetier.ModeTake, ratetier.ModeCharge, ratetier.ModeRefund} {
		for outcome := ratetier.OutcomeAllowed; outcome <= ratetier.OutcomeInvalidCost; outcome++ {
			for _, defaulted := range []ratetier.Outcome{0, ratetier.OutcomeMissingIdentity, ratetier.OutcomeIdentifyFailed, ratetier.OutcomeUnknownTier} {
				for bits := range 8 {
					d := ratetier.Decision{Outcome: outcome, Defaulted: defaulted, Tier: "free", Cost: 2}
					d.Allowed, d.Shadow, d.Degraded = bits&1 > 0, bits&2 > 0, bits&4 > 0
					observe(ratetier.Event{Decision: d, Mode: mode, Route: "GET /data", Elapsed: time.Second / 8})
				}
			}
		}
	}
}

// stats are the functions by which stores tell of themselves.
type stats struct {
	memory   func() memorystore.Stats
	redis    func() redisstore.Stats
	fallback func() fallbackstore.Stats
}

func newStats(t *testing.T) stats {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0"}) // nothing is sent
	t.Cleanup(func() { _ = rdb.Close() })
	shared := redisstore.New(rdb, redisstore.Config{})
	return stats{memorystore.New().Stats, shared.Stats, fallbackstore.New(shared, fallbackstore.Config{}).Stats}
}

// inPrometheus returns a registry of which package ratetierprom has filled all metrics.
func inPrometheus(t *testing.T) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	observer, err := ratetierprom.NewObserver(registry, "redis")
	if err != nil {
		t.Fatal(err)
	}
	tellEverything(observer)
	s := newStats(t)
	for _, err := range []error{
		ratetierprom.RegisterStats(registry, "memory", s.memory),
		ratetierprom.RegisterStats(registry, "redis", s.redis),
		ratetierprom.RegisterStats(registry, "fallback", s.fallback),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return registry
}

// throughOpenTelemetry is the same with package ratetierotel and the exporter of
// OpenTelemetry.
func throughOpenTelemetry(t *testing.T) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	observer, err := ratetierotel.NewObserver(provider, "redis")
	if err != nil {
		t.Fatal(err)
	}
	tellEverything(observer)
	s := newStats(t)
	_, err1 := ratetierotel.RegisterStats(provider, "memory", s.memory)
	_, err2 := ratetierotel.RegisterStats(provider, "redis", s.redis)
	_, err3 := ratetierotel.RegisterStats(provider, "fallback", s.fallback)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return registry
}

// page returns what Prometheus reads, a line each.
func page(t *testing.T, registry *prometheus.Registry) []string {
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
	return strings.Split(text.String(), "\n")
}

// One dashboard is enough: both ways lead to the same names, labels and values.
func TestOpenTelemetryExportsWhatPrometheusReads(t *testing.T) {
	direct, detour := page(t, inPrometheus(t)), page(t, throughOpenTelemetry(t))
	compare(t, strings.Join(detour, "\n"), strings.Join(direct, "\n"))
	if len(direct) < 100 {
		t.Errorf("only %d lines were compared", len(direct))
	}
}

// series are all that are exported, by the name of the metric as queries have it.
type series map[string][]labels.Labels

func exportedSeries(t *testing.T) series {
	t.Helper()
	families, err := inPrometheus(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := series{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			names := map[string]string{}
			for _, label := range metric.GetLabel() {
				names[label.GetName()] = label.GetValue()
			}
			name := family.GetName()
			if metric.GetHistogram() == nil {
				all[name] = append(all[name], labels.FromMap(names))
				continue
			}
			for _, suffix := range []string{"_count", "_sum"} {
				all[name+suffix] = append(all[name+suffix], labels.FromMap(names))
			}
			names["le"] = "+Inf"
			all[name+"_bucket"] = append(all[name+"_bucket"], labels.FromMap(names))
		}
	}
	return all
}
