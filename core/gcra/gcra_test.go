package gcra_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ratetier/ratetier/core/gcra"
)

// bucket decides by the package's functions, as a store does.
type bucket struct {
	limit gcra.Limit
	tat   int64
}

func (b *bucket) take(now, cost int64) (allowed bool, remaining, wait int64) {
	used := b.limit.Used(b.tat, now)
	if used > b.limit.Offset {
		b.tat = now + used
	}
	if wait = b.limit.Wait(used, cost); wait == 0 && cost > 0 {
		used = b.limit.Charge(used, cost)
		b.tat = now + used
	}
	return wait == 0, b.limit.Remaining(used), wait
}

func mustNew(t testing.TB, count int64, period time.Duration, burst int64) gcra.Limit {
	t.Helper()
	limit, err := gcra.New(count, period, burst)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// A step takes a cost, the given number of times, and sees each time what the want
// says: "A" and what remains, or "D", what remains and how long to wait. Where want
// is "A 9..0", remaining counts down.
type step struct {
	at    time.Duration
	times int
	cost  int64
	want  string
}

func TestTake(t *testing.T) {
	for _, test := range []struct {
		name   string
		count  int64
		period time.Duration
		burst  int64
		steps  []step
	}{
		{"the article: ten per minute", 10, time.Minute, 10, []step{
			{0, 10, 1, "A 9..0"}, {0, 1, 1, "D 0 6s"},
			{6 * time.Second, 1, 1, "A 0"}, {6 * time.Second, 1, 1, "D 0 6s"},
			{36 * time.Second, 5, 1, "A 4..0"}, {36 * time.Second, 1, 1, "D 0 6s"},
		}},
		{"the article: no double burst at the boundary of a window", 10, time.Minute, 10, []step{
			{59 * time.Second, 10, 1, "A 9..0"}, {60 * time.Second, 10, 1, "D 0 5s"},
		}},
		{"no double burst within 200 ms of a boundary", 10, time.Minute, 10, []step{
			{59900 * time.Millisecond, 10, 1, "A 9..0"}, {60100 * time.Millisecond, 10, 1, "D 0 5.8s"},
		}},
		{"one in ten years", 1, 10 * year, 1, []step{
			{0, 1, 1, "A 0"}, {0, 2, 1, "D 0 87600h0m0s"}, {10*year - 1, 1, 1, "D 0 1ns"}, {10 * year, 1, 1, "A 0"},
		}},
		{"a cost times the interval that overflows never fits", 1, time.Hour, 5, []step{
			{0, 1, 3_000_000, "D 5 never"}, {0, 1, math.MaxInt64, "D 5 never"}, {0, 5, 1, "A 4..0"},
		}},
		{"six thousand a second are exactly that many", 6000, time.Second, 6000, []step{
			{0, 6000, 1, "A 5999..0"}, {0, 1000, 1, "D 0 166.667µs"},
		}},
		{"one per nanosecond", 1e9, time.Second, 10, []step{
			{0, 10, 1, "A 9..0"}, {0, 1, 1, "D 0 1ns"}, {1, 1, 1, "A 0"}, {1, 1, 1, "D 0 1ns"},
		}},
		{"65535 a second refill one within 100 ms", 65535, time.Second, 65535, []step{
			{0, 1, 1, "A 65534"}, {100 * time.Millisecond, 1, 1, "A 65534"}, {200 * time.Millisecond, 1, 1, "A 65534"},
		}},
		{"an interval of a whole fraction of a second admits at the exact boundary", 10, 13 * time.Second, 1, []step{
			{0, 1, 1, "A 0"}, {1300*time.Millisecond - 1, 1, 1, "D 0 1ns"}, {1300 * time.Millisecond, 1, 1, "A 0"},
		}},
		{"an interval of a third is rounded up to the nanosecond", 3, 10 * time.Second, 1, []step{
			{0, 1, 1, "A 0"}, {3333333333, 1, 1, "D 0 1ns"}, {3333333334, 1, 1, "A 0"},
		}},
		{"a window below a second", 2, 500 * time.Millisecond, 2, []step{
			{0, 2, 1, "A 1..0"}, {0, 2, 1, "D 0 250ms"}, {250 * time.Millisecond, 1, 1, "A 0"},
		}},
		{"remaining is never off by one", 17, 30 * time.Second, 17, []step{
			{0, 17, 1, "A 16..0"}, {0, 1, 1, "D 0 1.764705883s"},
		}},
		{"a clock set back costs one refill and the lateness", 1, time.Second, 5, []step{
			{time.Hour, 1, 1, "A 4"}, {0, 1, 0, "A 0"},
			{0, 1, 1, "D 0 2s"}, {2 * time.Second, 1, 1, "A 0"}, {3 * time.Second, 1, 1, "A 0"}, {8 * time.Second, 1, 5, "A 0"},
		}},
		{"a clock set back does not fill an empty bucket", 10, time.Minute, 10, []step{
			{time.Hour, 10, 1, "A 9..0"}, {59 * time.Minute, 1, 1, "D 0 7s"},
		}},
		{"who comes late gives nothing back", 1, time.Second, 5, []step{
			{time.Hour, 5, 1, "A 4..0"}, {time.Hour - time.Second, 1, 1, "D 0 2s"}, {time.Hour, 1, 1, "D 0 1s"},
			{time.Hour + time.Second, 1, 1, "A 0"},
		}},
		{"who comes late takes as much as who does not", 1, time.Second, 5, []step{
			{time.Hour, 1, 3, "A 2"}, {time.Hour - time.Second, 1, 1, "A 0"}, {time.Hour, 1, 1, "A 0"}, {time.Hour, 1, 1, "D 0 1s"},
		}},
		{"refusals do not extend the wait", 1, time.Second, 1, []step{
			{0, 1, 1, "A 0"}, {100 * time.Millisecond, 1, 1, "D 0 900ms"}, {900 * time.Millisecond, 1, 1, "D 0 100ms"},
			{time.Second, 1, 1, "A 0"}, {1900 * time.Millisecond, 1, 1, "D 0 100ms"}, {2 * time.Second, 1, 1, "A 0"},
		}},
		{"a large cost that is refused leaves the rest", 10, time.Minute, 10, []step{
			{0, 1, 8, "A 2"}, {0, 1, 5, "D 2 18s"}, {0, 1, 1, "A 1"},
		}},
		{"one in ten seconds", 1, 10 * time.Second, 1, []step{
			{0, 1, 1, "A 0"}, {2 * time.Second, 1, 1, "D 0 8s"}, {5 * time.Second, 1, 1, "D 0 5s"},
			{9 * time.Second, 1, 1, "D 0 1s"}, {10 * time.Second, 1, 1, "A 0"},
		}},
		{"cost 0 takes nothing", 1, time.Second, 1, []step{
			{0, 3, 0, "A 1"}, {0, 1, 1, "A 0"}, {0, 3, 0, "A 0"}, {time.Second, 1, 0, "A 1"},
		}},
		{"a burst above the count", 1, time.Second, 3, []step{
			{0, 3, 1, "A 2..0"}, {0, 1, 1, "D 0 1s"}, {time.Second, 1, 3, "D 1 2s"}, {3 * time.Second, 1, 3, "A 0"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := bucket{limit: mustNew(t, test.count, test.period, test.burst)}
			for i, step := range test.steps {
				want, first := step.want, int64(0)
				counts := strings.HasSuffix(want, "..0")
				if counts {
					if _, err := fmt.Sscanf(want, "A %d..0", &first); err != nil {
						t.Fatal(err)
					}
				}
				for n := range step.times {
					if counts {
						want = fmt.Sprintf("A %d", first-int64(n))
					}
					if got := show(b.take(int64(step.at), step.cost)); got != want {
						t.Fatalf("step %d, time %d: cost %d at %v: got %q, want %q", i, n, step.cost, step.at, got, want)
					}
				}
			}
		})
	}
}

func show(allowed bool, remaining, wait int64) string {
	switch {
	case allowed:
		return fmt.Sprintf("A %d", remaining)
	case wait == math.MaxInt64:
		return fmt.Sprintf("D %d never", remaining)
	default:
		return fmt.Sprintf("D %d %v", remaining, time.Duration(wait))
	}
}

func TestTakeAdmitsTenInTenSecondsAtOnePerSecond(t *testing.T) {
	b := bucket{limit: mustNew(t, 1, time.Second, 1)}
	admitted := 0
	for at := time.Duration(0); at < 10*time.Second; at += 100 * time.Millisecond {
		if allowed, _, _ := b.take(int64(at), 1); allowed {
			admitted++
		}
	}
	if admitted != 10 {
		t.Errorf("a call every 100 ms for 10 s: %d admitted, want 10", admitted)
	}
}

func TestTakeAdmitsAtMostTwiceTheCountInOnePeriod(t *testing.T) {
	b := bucket{limit: mustNew(t, 17, 30*time.Second, 17)}
	admitted := 0
	for at := time.Duration(0); at < 30*time.Second; at += time.Second / 10 {
		if allowed, _, _ := b.take(int64(at), 1); allowed {
			admitted++
		}
	}
	if admitted != 33 { // 17 at once, and one after each of 16 whole intervals
		t.Errorf("17 per 30 s, greedy for 30 s: %d admitted, want 33", admitted)
	}
}

func TestNew(t *testing.T) {
	for _, test := range []struct {
		count  int64
		period time.Duration
		burst  int64
		want   string
	}{
		{10, time.Minute, 10, "interval 6s, burst 10"},
		{3, 10 * time.Second, 1, "interval 3.333333334s, burst 1"},
		{65535, time.Second, 65535, "interval 15.26µs, burst 65535"},
		{900_000, time.Second, 900_000, "interval 1.112µs, burst 900000"},
		{40_000_000, time.Minute, 40_000_000, "interval 1.5µs, burst 40000000"},
		{1e9, time.Second, 1e9, "interval 1ns, burst 1000000000"},
		{1, 1, 1, "interval 1ns, burst 1"},
		{1, 100 * year, 1, "interval 876000h0m0s, burst 1"},
		{1, day, 36_500, "interval 24h0m0s, burst 36500"},
		{math.MaxInt64, math.MaxInt64, 1, "interval 1ns, burst 1"},
		{1e9, time.Second, int64(100 * year), "interval 1ns, burst 3153600000000000000"},

		{0, time.Second, 1, "count 0: must be at least 1"},
		{-1, time.Second, 1, "count -1: must be at least 1"},
		{math.MinInt64, time.Second, 1, "count -9223372036854775808: must be at least 1"},
		{1, 0, 1, "period 0s: must be positive"},
		{1, -time.Second, 1, "period -1s: must be positive"},
		{1, time.Second, 0, "burst 0: must be at least 1"},
		{0, time.Second, 1, "count 0: must be at least 1"},
		{1, time.Second, -5, "burst -5: must be at least 1"},
		{2e9, time.Second, 10, "2000000000 in 1s is faster than one per nanosecond: lower the count or lengthen the period"},
		{1, day, 200_000, "burst 200000: at 24h0m0s a cell the bucket would take over 100 years to fill; lower the burst to at most 36500"},
		{1, time.Second, math.MaxInt64, "burst 9223372036854775807: at 1s a cell the bucket would take over 100 years to fill; lower the burst to at most 3153600000"},
		{1e9, time.Second, int64(100*year) + 1, "burst 3153600000000000001: at 1ns a cell the bucket would take over 100 years to fill; lower the burst to at most 3153600000000000000"},
		{1, 101 * year, 1, "period 884760h0m0s: a single cell would take over 100 years to come back; raise the count or shorten the period"},
		{1, math.MaxInt64, 1, "period 2562047h47m16.854775807s: a single cell would take over 100 years to come back; raise the count or shorten the period"},
	} {
		got := ""
		if limit, err := gcra.New(test.count, test.period, test.burst); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("interval %v, burst %d", time.Duration(limit.Interval), limit.Burst())
		}
		if got != test.want {
			t.Errorf("New(%d, %v, %d): got %q, want %q", test.count, test.period, test.burst, got, test.want)
		}
	}
}
