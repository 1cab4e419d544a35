package fallbackstore_test

import (
	"context"
	"math"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/storetest"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
)

// admitted counts how often the cost is let through during an outage, of one moment.
func admitted(t *testing.T, instances int, quota ratetier.Quota, cost int64) (n int) {
	t.Helper()
	outage(t, fallbackstore.Config{Instances: instances}, func(s *subject) {
		if err := s.limiter.SetTiers(ratetier.Tiers{"free": quota}); err != nil {
			t.Fatal(err)
		}
		s.down()
		for range 1000 {
			d := s.limiter.Take(s.Context(), ratetier.Identity{User: "ana", Tier: "free"}, cost)
			switch d.Outcome {
			case ratetier.OutcomeAllowed:
				n++
			case ratetier.OutcomeLimited:
				if d.RetryAfter <= 0 || d.Remaining < 0 {
					t.Fatalf("refused with %d left, to try again after %v", d.Remaining, d.RetryAfter)
				}
			default:
				t.Fatalf("outcome %v, error %v", d.Outcome, d.Err)
			}
		}
	})
	return n
}

func TestAnInstanceAdmitsItsShare(t *testing.T) {
	minute, day := ratetier.PerMinute, ratetier.PerDay
	for _, test := range []struct {
		instances int
		quota     ratetier.Quota
		cost      int64
		want      int
	}{
		{0, minute(100), 1, 100},
		{1, minute(100), 1, 100},
		{4, minute(100), 1, 25},
		{3, minute(100), 1, 33},
		{3, minute(100), 10, 3},
		{4, minute(100), 25, 1},
		{4, minute(100), 26, 0}, // more than the share holds
		{4, minute(100), 100, 0},
		{100, minute(100), 1, 1},
		{1000, minute(100), 1, 1}, // a cell at least
		{math.MaxInt, minute(100), 1, 1},
		{4, ratetier.PerSecond(1).Burst(40), 1, 10},
		{4, minute(100).And(day(120)), 1, 25},
		{4, minute(100).And(day(80)), 1, 20},
		{4, ratetier.Per(3, 50*365*24*time.Hour), 1, 1},
		{4, ratetier.Per(3, 50*365*24*time.Hour), 3, 0},
	} {
		if got := admitted(t, test.instances, test.quota, test.cost); got != test.want {
			t.Errorf("one of %d instances admitted %d of cost %d at %v, want %d", test.instances, got, test.cost, test.quota, test.want)
		}
	}
}

// A share refills as the whole does, at its part of the rate.
func TestAShareRefillsAtItsPartOfTheRate(t *testing.T) {
	outage(t, fallbackstore.Config{Instances: 4}, func(s *subject) {
		if err := s.limiter.SetTiers(ratetier.Tiers{"free": ratetier.PerMinute(60)}); err != nil {
			t.Fatal(err)
		}
		s.down()
		s.takes("free", "ana", 15, "allowed, locally")
		for range 5 {
			s.takes("free", "ana", 1, "limited, locally")
			s.after(3999 * time.Millisecond)
			s.waits(1, time.Millisecond)
		}
		s.takes("free", "ana", 1, "limited, locally")
		s.waits(1, 4*time.Second)
		s.waits(15, time.Minute)
	})
}

// waits sees that ana is told to wait that long for the cost, and admitted after that.
func (s *subject) waits(cost int64, want time.Duration) {
	s.Helper()
	d := s.limiter.Take(s.Context(), ratetier.Identity{User: "ana", Tier: "free"}, cost)
	if d.Outcome != ratetier.OutcomeLimited || d.RetryAfter != want {
		s.Errorf("%v, to try again after %v, want limited and %v", d.Outcome, d.RetryAfter, want)
	}
	s.after(d.RetryAfter)
	s.takes("free", "ana", cost, "allowed, locally")
}

// strict is a local store that insists on what it is promised.
type strict struct {
	ratetier.Store
	t *testing.T
}

func (s strict) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	for _, limit := range request.Limits {
		if request.Mode == ratetier.ModeTake && request.Cost > limit.Burst() {
			s.t.Errorf("take of %d from a bucket of %d", request.Cost, limit.Burst())
		}
	}
	if *result != (ratetier.Result{}) {
		s.t.Errorf("the result is not zero before: %v", *result)
	}
	return s.Store.Apply(ctx, request, result)
}

func TestTheLocalStoreIsGivenWhatItIsPromised(t *testing.T) {
	primary := newFakePrimary()
	primary.failWith(errDown)
	store := fallbackstore.New(primary, fallbackstore.Config{Local: strict{storetest.Reference(), t}, Instances: 7})
	for _, mode := range []ratetier.Mode{ratetier.ModeTake, ratetier.ModeCharge, ratetier.ModeRefund} {
		for cost := range int64(11) {
			request := ratetier.Request{Mode: mode, Key: ratetier.Key{User: "ana"}, Limits: limits(ratetier.PerMinute(10)), Cost: cost}
			before, result := request.Limits[0], ratetier.Result{}
			if err := store.Apply(t.Context(), &request, &result); err != nil {
				t.Error(err)
			}
			if request.Limits[0] != before || request.Cost != cost {
				t.Errorf("the request was changed to %v", request)
			}
			if used := result.Used[0]; used < 0 || used > 2*before.Offset {
				t.Errorf("%v of %d: used %d, want 0 to twice %d", mode, cost, used, before.Offset)
			}
		}
	}
}
