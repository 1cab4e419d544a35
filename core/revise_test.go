package ratetier_test

import (
	"context"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
)

func TestRevise(t *testing.T) {
	for _, test := range []struct {
		name        string
		used        int64 // by others
		first, then int64
		want        ratetier.Outcome
		left, shown int64
		retry       time.Duration
	}{
		{"the same", 0, 3, 3, ratetier.OutcomeAllowed, 7, 7, 0},
		{"more", 0, 1, 4, ratetier.OutcomeAllowed, 6, 6, 0},
		{"all there is", 0, 1, 10, ratetier.OutcomeAllowed, 0, 0, 0},
		{"less", 0, 5, 2, ratetier.OutcomeAllowed, 8, 8, 0},
		{"nothing", 0, 5, 0, ratetier.OutcomeAllowed, 10, 10, 0},
		{"from nothing", 0, 0, 4, ratetier.OutcomeAllowed, 6, 6, 0},
		{"more than fits", 5, 1, 6, ratetier.OutcomeLimited, 5, 5, 6 * time.Second},
		{"after a refusal", 9, 2, 1, ratetier.OutcomeAllowed, 0, 0, 0},
		{"more than ever fits", 5, 1, 11, ratetier.OutcomeCostTooHigh, 5, 0, 0},
		{"a negative cost", 5, 1, -1, ratetier.OutcomeInvalidCost, 5, 0, 0},
	} {
		f := newFixture(t, ratetier.Config{})
		f.Take(context.Background(), ana, test.used)
		_, a := f.Admit(context.Background(), check(ana, test.first))
		d := a.Revise(context.Background(), test.then)
		if d.Outcome != test.want || d.Remaining != test.shown || d.RetryAfter != test.retry || d.Cost != test.then || f.left(ana) != test.left {
			t.Errorf("%s: %+v, and %d left, want %+v", test.name, d, f.left(ana), test)
		}
		if got := a.Decision(); got.Outcome != d.Outcome || got.Remaining != d.Remaining {
			t.Errorf("%s: the admission says %+v, Revise said %+v", test.name, got, d)
		}
	}
}

// What was charged in two steps has the age of the first.
func TestARevisedReservationIsAsOldAsItsFirstCharge(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 4))
	f.clock.Advance(24 * time.Second)
	a.Revise(context.Background(), 5)
	f.Take(context.Background(), ana, 5)
	if err := a.Settle(context.Background(), 0); err != nil || f.left(ana) != 5 {
		t.Errorf("%v, %d left, want 5", err, f.left(ana))
	}
}

// What a tier charged that is gone is not given back to the tier that takes its place.
func TestReviseAfterTheTierHasGone(t *testing.T) {
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	bea := user("bea", "pro")
	f.Take(context.Background(), user("bea", "gold"), 6) // by default, of free
	_, a := f.Admit(context.Background(), check(bea, 3))
	if err := f.SetTiers(ratetier.Tiers{"free": ratetier.PerMinute(10)}); err != nil {
		t.Fatal(err)
	}
	if d := a.Revise(context.Background(), 4); d.Tier != "free" || d.Remaining != 0 || !d.Allowed {
		t.Errorf("%+v, want all 4 of free charged", d)
	}
	if err := a.Settle(context.Background(), 0); err != nil || f.left(bea) != 4 {
		t.Errorf("%v, %d left, want 4", err, f.left(bea))
	}
}

// A refused revision has given back what it could, and waits for its whole cost.
func TestALateRevisionWaitsForItsWholeCost(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 5))
	f.clock.Advance(30 * time.Second) // the 5 have refilled
	f.Take(context.Background(), ana, 10)
	d := a.Revise(context.Background(), 6)
	if d.Outcome != ratetier.OutcomeLimited || d.Remaining != 0 || d.RetryAfter != 36*time.Second {
		t.Errorf("%+v, want to wait 36s", d)
	}
	f.clock.Advance(d.RetryAfter)
	if d := f.Take(context.Background(), ana, 6); !d.Allowed {
		t.Errorf("after the wait: %+v", d)
	}
}

// hooked is a clock that does something of its own when it is asked next.
type hooked struct {
	*clocktest.Clock
	once func()
}

func (c *hooked) Now() time.Time {
	if once := c.once; once != nil {
		c.once = nil
		once()
	}
	return c.Clock.Now()
}

// A request that is revised at the moment of a reload stays charged to the bucket that it
// was charged to, and gives back no more than that.
func TestReviseWhileTheQuotaChanges(t *testing.T) {
	clock := &hooked{Clock: clocktest.New(start)}
	l := ratetier.Must(ratetier.New(ratetier.Config{
		Store: newStore(), Clock: clock, Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
	}))
	l.Take(context.Background(), ana, 5)
	_, a := l.Admit(context.Background(), check(ana, 1))
	clock.once = func() {
		if err := l.SetTiers(ratetier.Tiers{"free": ratetier.PerHour(10)}); err != nil {
			t.Error(err)
		}
	}
	if d := a.Revise(context.Background(), 3); !d.Allowed || d.Remaining != 2 {
		t.Fatalf("allowed %t, %d left, want it to be of the quota that it began with", d.Allowed, d.Remaining)
	}
	before := l.Peek(context.Background(), ana).ResetAfter
	if err := a.Settle(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if back := before - l.Peek(context.Background(), ana).ResetAfter; back != 18*time.Second {
		t.Errorf("%v given back, want the 18s that 3 of 10 per minute stand for", back)
	}
}
