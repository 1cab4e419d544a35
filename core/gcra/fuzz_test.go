package gcra_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ratetier/ratetier/core/gcra"
)

// model is GCRA as virtual scheduling in unbounded integers, from its definition: the
// TAT moves by one interval a cell, and a request fits if it stays within the offset.
type model struct {
	interval, offset, tat *big.Int
}

func newModel(count int64, period time.Duration, burst int64) *model {
	interval := new(big.Int).Add(big.NewInt(int64(period)), big.NewInt(count-1))
	interval.Div(interval, big.NewInt(count))
	return &model{interval, new(big.Int).Mul(interval, big.NewInt(burst)), big.NewInt(math.MinInt64)}
}

// tatAt clamps the TAT into now .. now + offset + lateness.
func (m *model) tatAt(now int64) *big.Int {
	low, tat := big.NewInt(now), new(big.Int).Set(m.tat)
	high := new(big.Int).Add(low, m.offset)
	high.Add(high, big.NewInt(int64(gcra.Lateness)))
	if tat.Cmp(low) < 0 {
		return low
	}
	if tat.Cmp(high) > 0 {
		return high
	}
	return tat
}

func (m *model) take(now, cost int64) bool {
	tat := m.tatAt(now)
	moved := new(big.Int).Add(tat, new(big.Int).Mul(m.interval, big.NewInt(cost)))
	if tat.Cmp(m.tat) < 0 {
		m.tat = tat
	}
	if cost > 0 && new(big.Int).Sub(moved, m.offset).Cmp(big.NewInt(now)) > 0 {
		return false
	}
	if cost > 0 {
		m.tat = moved
	}
	return true
}

func FuzzTakeDecidesLikeTheDefinition(f *testing.F) {
	f.Add(int64(10), int64(time.Minute), int64(10), uint64(1))
	f.Add(int64(17), int64(30*time.Second), int64(17), uint64(2))
	f.Add(int64(65535), int64(time.Second), int64(65535), uint64(3))
	f.Add(int64(1), int64(10*year), int64(1), uint64(4))
	f.Add(int64(1e9), int64(time.Second), int64(10), uint64(5))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(1), uint64(6))
	f.Add(int64(900_001), int64(time.Second), int64(3), uint64(7))
	f.Fuzz(func(t *testing.T, count, period, burst int64, seed uint64) {
		limit, err := gcra.New(count, time.Duration(period), burst)
		if err != nil {
			t.Skip() // not a rate
		}
		m, b := newModel(count, time.Duration(period), burst), bucket{limit: limit}
		random := rand.New(rand.NewPCG(seed, 0))
		start := int64(1_800_000_000) * int64(time.Second)
		latest, sum := start, new(big.Int)
		for range 200 {
			latest += random.Int64N(min(3*limit.Interval, int64(year)/200))
			now := latest
			if random.IntN(2) == 0 { // was held up after it had read the clock
				now = max(start, now-random.Int64N(1+int64(gcra.Lateness)))
			}
			cost := random.Int64N(4)
			if random.IntN(8) == 0 {
				cost = random.Int64N(math.MaxInt64)
			}
			before := b.limit.Used(b.tat, now)
			next, used, ok := b.limit.Take(b.tat, now, min(cost, b.limit.Burst()))
			allowed, remaining, wait := b.take(now, cost)
			if cost <= b.limit.Burst() && (next != b.tat || used != b.limit.Used(b.tat, now) || ok != allowed) {
				t.Fatalf("%d cells at %d: Take returns %d, %d, %t, want %d, %d, %t", cost, now, next, used, ok, b.tat, b.limit.Used(b.tat, now), allowed)
			}
			if want := m.take(now, cost); allowed != want {
				t.Fatalf("%d cells at %d: allowed is %t, want %t", cost, now, allowed, want)
			}
			after := b.limit.Used(b.tat, now)
			if want := new(big.Int).Sub(m.tatAt(now), big.NewInt(now)); want.Cmp(big.NewInt(after)) != 0 {
				t.Fatalf("%d cells at %d: used is %d, want %v", cost, now, after, want)
			}
			if allowed {
				sum.Add(sum, big.NewInt(cost))
			} else if after != before {
				t.Fatalf("a refused request moved the use from %d to %d", before, after)
			}
			checkRemaining(t, b, now, remaining)
			checkWait(t, b, now, cost, wait)
		}
		// Never more than the burst and what refills: sum x interval <= offset + elapsed.
		most := new(big.Int).Add(m.offset, big.NewInt(latest-start))
		if sum.Mul(sum, m.interval).Cmp(most) > 0 {
			t.Fatalf("more was admitted than the burst and the rate allow")
		}
	})
}

// checkRemaining checks that what remains can really be taken, and no more.
func checkRemaining(t *testing.T, b bucket, now, remaining int64) {
	t.Helper()
	if allowed, _, _ := b.take(now, remaining); !allowed {
		t.Fatalf("%d remain, and cannot be taken", remaining)
	}
	if allowed, _, _ := b.take(now, 1); allowed {
		t.Fatalf("%d remained, and one more could be taken", remaining)
	}
}

// checkWait checks that the wait is long enough, and a nanosecond less is not.
func checkWait(t *testing.T, b bucket, now, cost, wait int64) {
	t.Helper()
	if wait == 0 {
		return
	}
	if (wait == math.MaxInt64) != (cost > b.limit.Burst()) {
		t.Fatalf("to wait for %d of %d: %d", cost, b.limit.Burst(), wait)
	}
	if wait == math.MaxInt64 {
		return
	}
	early, late := b, b
	if allowed, _, _ := early.take(now+wait-1, cost); allowed {
		t.Fatalf("%d cells fitted 1 ns before the wait of %d was over", cost, wait)
	}
	if allowed, _, _ := late.take(now+wait, cost); !allowed {
		t.Fatalf("%d cells did not fit after the wait of %d", cost, wait)
	}
}

func FuzzFunctionsAreTotal(f *testing.F) {
	extremes := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, tat := range extremes {
		for _, now := range extremes {
			f.Add(int64(1), int64(100*year), int64(1), tat, now, int64(math.MaxInt64))
			f.Add(int64(10), int64(time.Minute), int64(10), tat, now, int64(3))
		}
	}
	f.Fuzz(func(t *testing.T, count, period, burst, tat, now, cost int64) {
		limit, err := gcra.New(count, time.Duration(period), burst)
		if err != nil || cost < 0 {
			t.Skip() // not a rate, or not a cost
		}
		within := func(name string, used int64) {
			if most := limit.Offset + int64(gcra.Lateness); used < 0 || used > most {
				t.Errorf("%s: %d, want 0 to %d", name, used, most)
			}
		}
		used := limit.Used(tat, now)
		within("Used", used)
		within("Charge", limit.Charge(used, cost))
		within("Refund", limit.Refund(used, cost))
		if left := limit.Remaining(used); left < 0 || left > burst {
			t.Errorf("Remaining: %d, want 0 to %d", left, burst)
		}
		if wait := limit.Wait(used, cost); wait < 0 {
			t.Errorf("Wait: %d, want at least 0", wait)
		}
		if back := limit.Refund(limit.Charge(used, cost), cost); cost <= limit.Remaining(used) && back != used {
			t.Errorf("charged and refunded: %d, want %d", back, used)
		}
		still := gcra.Limit{Offset: limit.Offset}
		if charged, refunded := still.Charge(used, cost), still.Refund(used, cost); charged != used || refunded != used {
			t.Errorf("an interval of 0 moved %d to %d and %d", used, charged, refunded)
		}
	})
}
