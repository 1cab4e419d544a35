package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratetier/ratetier/core/metrics"
)

func TestFieldsOfStatisticsBecomeMetrics(t *testing.T) {
	type state uint8
	type stats struct {
		Buckets      int
		Evictions    uint64
		FullBuckets  uint32
		DegradedTime time.Duration
		Open         bool
		Below        int64
		State        state
		internal     string
	}
	now := stats{internal: "hidden"}
	described, read, err := metrics.Stats(func() stats { return now })
	if err != nil {
		t.Fatal(err)
	}
	now = stats{7, 1 << 40, 3, 1500 * time.Millisecond, true, -4, 2, now.internal}
	values := read()
	var got []string
	for i, m := range described {
		got = append(got, fmt.Sprintf("%s %s %v", m.Name, m.Prometheus(), values[i]))
		if !slices.Equal(m.Labels, []string{"store"}) || !strings.HasSuffix(m.Help, ", as the documentation of the store's Stats has it.") {
			t.Errorf("%+v", m)
		}
	}
	want := []string{
		"ratetier.store.buckets ratetier_store_buckets 7",
		"ratetier.store.evictions ratetier_store_evictions_total 1.099511627776e+12",
		"ratetier.store.full_buckets ratetier_store_full_buckets_total 3",
		"ratetier.store.degraded_time ratetier_store_degraded_time_seconds_total 1.5",
		"ratetier.store.open ratetier_store_open 1",
		"ratetier.store.below ratetier_store_below -4",
		"ratetier.store.state ratetier_store_state_total 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	now = stats{}
	if values := read(); values[0] != 0 || values[4] != 0 {
		t.Errorf("the values do not follow: %v", values)
	}
}

func TestStatisticsThatCannotBeCountedAreErrors(t *testing.T) {
	type hidden struct{ n int }
	for want, err := range map[string]error{
		"no function that returns statistics":                         statsError[struct{ N int }](nil),
		"statistics of type int: must be a struct":                    statsError(func() int { return 1 }),
		"metrics_test.hidden has no exported fields":                  statsError(func() hidden { return hidden{1} }),
		"field Name is a string: must be an integer, a duration":      statsError(func() (s struct{ N, Name string }) { return s }),
		"field N is a string":                                         statsError(func() (s struct{ N, Name string }) { return s }),
		"field Last is a time.Time":                                   statsError(func() (s struct{ Last time.Time }) { return s }),
		"field Share is a float64: must be an integer, a duration or": statsError(func() (s struct{ Share float64 }) { return s }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

func statsError[S any](stats func() S) error {
	_, _, err := metrics.Stats(stats)
	return err
}
