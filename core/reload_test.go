package ratetier_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

func TestSetTiers(t *testing.T) {
	hours := func(n int64) ratetier.Tiers { return ratetier.Tiers{"free": ratetier.PerHour(n)} }
	for _, test := range []struct {
		name          string
		before, after ratetier.Tiers
		take          int64
		wait          time.Duration
		left          int64
		retry         time.Duration // for one more
	}{
		{"exhausted stays exhausted, and refills at the new rate", hours(10), hours(100), 10, 0, 0, 36 * time.Second},
		{"95 % used stays 95 % used", hours(100), hours(10), 95, 0, 0, 180 * time.Second},
		{"half used stays half used", hours(100), hours(10), 50, 0, 5, 0},
		{"a burst lowered is at most one refill away, and a second", ratetier.Tiers{"free": ratetier.PerHour(1).Burst(10)}, ratetier.Tiers{"free": ratetier.PerHour(3600).Burst(10)}, 10, 30 * time.Minute, 0, 2 * time.Second},
	} {
		f := newFixture(t, ratetier.Config{Tiers: test.before})
		f.Take(context.Background(), ana, test.take)
		f.clock.Advance(test.wait)
		if err := f.SetTiers(test.after); err != nil {
			t.Fatal(err)
		}
		if left := f.left(ana); left != test.left {
			t.Errorf("%s: %d left, want %d", test.name, left, test.left)
		}
		if d := f.Take(context.Background(), ana, 1); d.RetryAfter != test.retry {
			t.Errorf("%s: retry after %v, want %v", test.name, d.RetryAfter, test.retry)
		}
		f.clock.Advance(test.retry)
		if d := f.Take(context.Background(), ana, 1); !d.Allowed {
			t.Errorf("%s: refused after waiting as told", test.name)
		}
	}
}

func TestABadTableChangesNothing(t *testing.T) {
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	for want, tiers := range map[string]ratetier.Tiers{
		"no tiers: name at least one plan and its quota":     nil,
		`default tier "free" is not among the tiers ["pro"]`: {"pro": ratetier.PerMinute(1)},
		`default tier "free" is unlimited`:                   {"free": ratetier.Unlimited()},
		`tier "pro": period 0s: must be positive`:            {"free": ratetier.PerMinute(1), "pro": ratetier.Per(1, 0)},
		`tier "pro": period -1s: must be positive`:           {"free": ratetier.PerMinute(1), "pro": ratetier.Per(1, -time.Second)},
	} {
		err := f.SetTiers(tiers)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ratetier: tiers unchanged: ") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if d := f.Peek(context.Background(), user("bea", "pro")); d.Limit != 100 {
		t.Errorf("pro is now %d", d.Limit)
	}
}

func TestMovingBetweenTiersYieldsAtMostTheSum(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	admitted := 0
	for i := range 40 {
		id := user("ana", []string{"free", "pro"}[i%2])
		for range 20 {
			if f.Take(context.Background(), id, 1).Allowed {
				admitted++
			}
		}
	}
	if admitted != 110 {
		t.Errorf("%d were admitted, want 10 + 100", admitted)
	}
}

// Reloads under load: every decision is by one table or the other, never by a mixture.
func TestReloadUnderLoad(t *testing.T) {
	tables := [2]ratetier.Tiers{
		{"free": ratetier.PerMinute(10), "pro": ratetier.PerMinute(100)},
		{"free": ratetier.PerMinute(20), "pro": ratetier.PerMinute(200).And(ratetier.PerDay(5000))},
	}
	f := newFixture(t, ratetier.Config{Tiers: tables[0]})
	var done atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !done.Load() {
				switch d := f.Peek(context.Background(), ana); d.Limit {
				case 10, 20:
				default:
					t.Errorf("the limit of free is %d", d.Limit)
				}
				switch d := f.Peek(context.Background(), user("bea", "pro")); d.Limit {
				case 100, 200:
				default:
					t.Errorf("the limit of pro is %d", d.Limit)
				}
			}
		})
	}
	for i := range 1000 {
		if err := f.SetTiers(tables[(i+1)%2]); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	callers.Wait()
}
