package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// service is the example under test.
type service struct {
	api, metrics http.Handler
	log          bytes.Buffer
}

func newTestService(t *testing.T) *service {
	t.Helper()
	s := new(service)
	var err error
	if s.api, s.metrics, err = newService(slog.New(slog.NewTextHandler(&s.log, nil)), "pepper"); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) get(key, path string) int {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	r.Header.Set("X-Api-Key", key)
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return w.Code
}

// scrape returns what Prometheus reads, and how many series that is.
func (s *service) scrape(t *testing.T) (families map[string]*dto.MetricFamily, series int) {
	t.Helper()
	w := httptest.NewRecorder()
	s.metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		series += len(family.GetMetric())
	}
	return families, series
}

func TestTheServiceCanBeWatched(t *testing.T) {
	s := newTestService(t)
	for _, step := range []struct {
		key, path string
		status    int
	}{
		{"key_ana", "/report/1", 200}, {"key_ana", "/report/2", 200}, {"key_ana", "/data/1", 429},
		{"key_bea", "/data/1", 200}, {"key_eva", "/data/1", 200}, {"", "/data/1", 401},
	} {
		if got := s.get(step.key, step.path); got != step.status {
			t.Errorf("%q got %d for %s, want %d", step.key, got, step.path, step.status)
		}
	}
	families, _ := s.scrape(t)
	got := map[string]float64{}
	for _, metric := range families["ratetier_decisions_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		got[fmt.Sprintf("%s, %s: %s%s", labels["tier"], labels["route"], labels["outcome"], labels["defaulted"])] = metric.GetCounter().GetValue()
	}
	for line, want := range map[string]float64{
		"free, GET /report/{id}: allowed":           2,
		"free, GET /data/{id}: limited":             1,
		"pro, GET /data/{id}: allowed":              1,
		"free, GET /data/{id}: allowedunknown_tier": 1,
		", GET /data/{id}: missing_identity":        1,
	} {
		if got[line] != want {
			t.Errorf("%s %v times, want %v, of %v", line, got[line], want, got)
		}
	}
	if buckets := families["ratetier_store_buckets"].GetMetric()[0].GetGauge().GetValue(); buckets != 3 {
		t.Errorf("%v buckets, want 3", buckets)
	}
	if log := s.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "tier=gold") ||
		!strings.Contains(log, "user=00b187303e2c96cc") {
		t.Errorf("the log is %q", log)
	}
}

// Whatever clients send, there are as many series as there are plans and routes.
func TestSeriesDoNotGrowWithKeysAndPaths(t *testing.T) {
	s := newTestService(t)
	send := func(from, to int) {
		for i := from; i < to; i++ {
			for _, key := range []string{fmt.Sprint("key ", i), "key_ana", "key_eva"} {
				for _, path := range []string{"/data/", "/report/", "/"} {
					s.get(key, fmt.Sprint(path, i))
				}
			}
		}
	}
	send(0, 20)
	_, few := s.scrape(t)
	send(20, 3000)
	if _, many := s.scrape(t); many != few || few == 0 {
		t.Errorf("%d series after 20 keys and paths, %d after 3000", few, many)
	}
}
