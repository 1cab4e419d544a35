package ratetier_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
)

func check(id ratetier.Identity, cost int64) ratetier.Check {
	return ratetier.Check{Identity: id, Cost: cost, Route: "/chat"}
}

func TestTheContextCarriesTheAdmission(t *testing.T) {
	f, g := newFixture(t, ratetier.Config{}), newFixture(t, ratetier.Config{})
	if a, ok := ratetier.FromContext(context.Background()); ok || a != nil {
		t.Errorf("an empty context carries %v", a)
	}
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "kept")
	origin := new(int)
	ctx, outer := f.Admit(ctx, ratetier.Check{Identity: ana, Cost: 1, Origin: origin})
	ctx, inner := g.Admit(ctx, check(ana, 2))
	if a, ok := ratetier.FromContext(ctx); !ok || a != inner || a.Outer() != outer || outer.Outer() != nil {
		t.Errorf("carries %p within %p, want %p within %p", a, a.Outer(), inner, outer)
	}
	if outer.Origin() != origin || inner.Origin() != nil || ctx.Value(key{}) != "kept" {
		t.Error("the origin or another value is lost")
	}
	if d := inner.Decision(); d.Remaining != 8 || d.Cost != 2 || !d.Allowed {
		t.Errorf("the decision is %+v", d)
	}
}

func TestEnterChargesARequestToABucketOnce(t *testing.T) {
	f, other := newFixture(t, ratetier.Config{}), newFixture(t, ratetier.Config{})
	ctx, first := f.Enter(context.Background(), check(ana, 1))
	ctx, _ = other.Enter(ctx, check(ana, 1))
	for _, step := range []struct {
		id         ratetier.Identity
		cost, left int64
		same       bool
	}{{ana, 1, 9, true}, {ana, 4, 6, true}, {ana, 2, 6, true}, {ana, -1, 10, true}, {user("bea", "free"), 1, 9, false}, {user("ana", "pro"), 1, 99, false}, {ratetier.Unidentified("ana", nil), 1, 0, false}} {
		_, a := f.Enter(ctx, check(step.id, step.cost))
		if (a == first) != step.same || f.left(step.id) != step.left {
			t.Errorf("%v of %d: the same is %t, %d left, want %+v", step.id, step.cost, a == first, f.left(step.id), step)
		}
	}
}

func TestLeaveGivesBackWhatAllLimitersCharged(t *testing.T) {
	f, g := newFixture(t, ratetier.Config{}), newFixture(t, ratetier.Config{})
	ctx, _ := f.Admit(context.Background(), check(ana, 3))
	ctx, _ = g.Admit(ctx, check(ana, 4))
	ratetier.Leave(ctx)
	ratetier.Leave(ctx)
	if f.left(ana) != 10 || g.left(ana) != 10 {
		t.Errorf("%d and %d left, want 10 and 10", f.left(ana), g.left(ana))
	}
}

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

func TestSettle(t *testing.T) {
	for _, test := range []struct {
		name     string
		estimate int64
		after    time.Duration
		actual   int64
		left     int64
	}{
		{"as estimated", 4, 0, 4, 6},
		{"less", 4, 0, 1, 9},
		{"nothing", 4, 0, 0, 10},
		{"nothing reserved", 0, 0, 4, 6},
		{"more", 4, 0, 7, 3},
		{"more than there is", 4, 0, 1000, 0},
		{"far more than there is", 4, 0, math.MaxInt64, 0},
		{"less, when less than that has refilled", 10, 18 * time.Second, 5, 8},
		{"nothing, when half has refilled", 10, 30 * time.Second, 0, 10},
		{"less, when all has refilled", 4, time.Hour, 0, 10},
		{"more, when a part has refilled", 4, 12 * time.Second, 7, 5},
		{"more, when all has refilled", 2, time.Hour, 8, 4},
		{"less, when the clock was set back", 4, -time.Hour, 3, 1},
	} {
		f := newFixture(t, ratetier.Config{})
		_, a := f.Admit(context.Background(), check(ana, test.estimate))
		f.clock.Advance(test.after)
		if err := a.Settle(context.Background(), test.actual); err != nil || f.left(ana) != test.left {
			t.Errorf("%s: %v, %d left, want %d", test.name, err, f.left(ana), test.left)
		}
		if err := a.Settle(context.Background(), 0); !errors.Is(err, ratetier.ErrSettled) || f.left(ana) != test.left {
			t.Errorf("%s: settled twice: %v, %d left", test.name, err, f.left(ana))
		}
		if d := a.Revise(context.Background(), 9); f.left(ana) != test.left {
			t.Errorf("%s: revised after it was settled: %+v, %d left", test.name, d, f.left(ana))
		}
	}
}

// What has refilled by itself in the meantime belongs to later requests.
func TestALateRefundIsNotSpentTwice(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 10))
	f.clock.Advance(30 * time.Second)
	f.Take(context.Background(), ana, 5)
	if err := a.Settle(context.Background(), 0); err != nil || f.left(ana) != 5 {
		t.Errorf("%v, %d left, want 5: the bucket was full at the start, and 5 were taken since", err, f.left(ana))
	}
}

// Of two reservations side by side, the first to be given back is not counted as still
// there for the second.
func TestReservationsSideBySideMintNothing(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 5))
	_, b := f.Admit(context.Background(), check(ana, 5))
	if err := a.Settle(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(30 * time.Second) // the bucket is full
	f.Take(context.Background(), ana, 5)
	if err := b.Settle(context.Background(), 0); err != nil || f.left(ana) != 5 {
		t.Errorf("%v, %d left, want 5", err, f.left(ana))
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

func TestSettleNamesWhatItRefuses(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 4))
	if err := a.Settle(context.Background(), -2); err == nil || err.Error() != "ratetier: settle: cost -2: must be at least 0" {
		t.Errorf("got %v", err)
	}
	f.store.err = errStore
	if err := a.Settle(context.Background(), 2); !errors.Is(err, errStore) {
		t.Errorf("got %v, want the store's error", err)
	}
	f.store.err = nil
	if err := a.Settle(context.Background(), 2); !errors.Is(err, ratetier.ErrSettled) || f.left(ana) != 6 {
		t.Errorf("after an error: %v, %d left", err, f.left(ana))
	}
}

func TestSettleGoesThroughWhenTheClientHasGone(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	_, a := f.Admit(ctx, check(ana, 8))
	cancel()
	if err := a.Settle(ctx, 1); err != nil || f.left(ana) != 9 {
		t.Errorf("%v, %d left, want 9", err, f.left(ana))
	}
}

func TestWhatWasNotChargedHasNothingToSettle(t *testing.T) {
	f := newFixture(t, ratetier.Config{DefaultTier: "free", Tiers: ratetier.Tiers{
		"free": ratetier.PerMinute(10), "max": ratetier.Unlimited(), "trial": ratetier.PerMinute(10).Shadow(),
	}})
	f.Take(context.Background(), user("eva", "trial"), 8)
	for name, admit := range map[string]func() *ratetier.Admission{
		"unlimited": func() *ratetier.Admission {
			_, a := f.Admit(context.Background(), check(user("max", "max"), 5))
			return a
		},
		"refused": func() *ratetier.Admission {
			_, a := f.Admit(context.Background(), check(ana, 11))
			return a
		},
		"shadow": func() *ratetier.Admission {
			_, a := f.Admit(context.Background(), check(user("eva", "trial"), 5))
			return a
		},
		"failed open": func() *ratetier.Admission {
			f.store.err = errStore
			defer func() { f.store.err = nil }()
			_, a := f.Admit(context.Background(), check(ana, 5))
			return a
		},
	} {
		a := admit()
		asked := f.store.asked.Load()
		if err := a.Settle(context.Background(), 7); err != nil || f.store.asked.Load() != asked {
			t.Errorf("%s: %v, and the store was asked %d times", name, err, f.store.asked.Load()-asked)
		}
	}
	if f.left(ana) != 10 || f.left(user("eva", "trial")) != 2 {
		t.Errorf("%d and %d left", f.left(ana), f.left(user("eva", "trial")))
	}
}

func TestSettleWithSeveralRates(t *testing.T) {
	f := newFixture(t, ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerSecond(20).And(ratetier.PerDay(1000))}})
	_, a := f.Admit(context.Background(), check(ana, 20))
	f.clock.Advance(10 * time.Second) // the second has refilled, the day has not
	f.Take(context.Background(), ana, 15)
	if err := a.Settle(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if left := f.left(ana); left != 5 {
		t.Errorf("the second has %d left, want 5", left)
	}
	if err := f.SetTiers(ratetier.Tiers{"free": ratetier.PerDay(1000)}); err != nil {
		t.Fatal(err)
	}
	if left := f.left(ana); left != 985 {
		t.Errorf("the day has %d left, want 985", left)
	}
}

// A settlement after the quota changed keeps the time it stood for, and never makes
// room that was not there.
func TestSettleAfterTheQuotaChanged(t *testing.T) {
	for _, test := range []struct {
		name   string
		after  ratetier.Quota
		others int64 // taken after the change
		actual int64
		left   int64
	}{
		{"raised, refunded", ratetier.PerMinute(100), 40, 5, 10},
		{"raised, charged", ratetier.PerMinute(100), 10, 8, 10},
		{"lowered, refunded", ratetier.PerMinute(5), 1, 2, 3},
		{"a longer window", ratetier.PerHour(10), 9, 0, 1},
		{"another number of rates", ratetier.PerMinute(10).And(ratetier.PerHour(60)), 1, 0, 4},
		{"a shorter window", ratetier.PerSecond(10), 0, 0, 0},
		{"unlimited", ratetier.Unlimited(), 0, 9, 0},
	} {
		f := newFixture(t, ratetier.Config{})
		_, a := f.Admit(context.Background(), check(ana, 5))
		if err := f.SetTiers(ratetier.Tiers{"free": test.after}); err != nil {
			t.Fatal(err)
		}
		f.Take(context.Background(), ana, test.others)
		if err := a.Settle(context.Background(), test.actual); err != nil || f.left(ana) != test.left {
			t.Errorf("%s: %v, %d left, want %d", test.name, err, f.left(ana), test.left)
		}
	}
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 5))
	if err := f.SetTiers(ratetier.Tiers{"pro": ratetier.PerMinute(1)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Settle(context.Background(), 0); err != nil {
		t.Errorf("the tier has gone: %v", err)
	}
}

// What a quota has forgiven that was there in between is not given back.
func TestSettleAfterTheQuotaChangedAndChangedBack(t *testing.T) {
	perMinute := ratetier.PerMinute(10)
	for _, test := range []struct {
		name  string
		tiers ratetier.Tiers // in between
		left  int64
	}{
		{"it forgave all but 1 s", ratetier.Tiers{"free": ratetier.PerSecond(10)}, 1},
		{"it had another number of rates", ratetier.Tiers{"free": perMinute.And(ratetier.PerHour(600))}, 1},
		{"it was unlimited", ratetier.Tiers{"free": ratetier.Unlimited()}, 1},
		{"it was gone", ratetier.Tiers{"pro": perMinute}, 1},
		{"it was the same", ratetier.Tiers{"free": perMinute}, 6},
	} {
		f := newFixture(t, ratetier.Config{})
		_, a := f.Admit(context.Background(), check(ana, 5))
		for _, tiers := range []ratetier.Tiers{test.tiers, {"free": perMinute}} {
			if err := f.SetTiers(tiers); err != nil {
				t.Fatal(err)
			}
			f.left(ana)
		}
		f.Take(context.Background(), ana, f.left(ana)-1)
		if err := a.Settle(context.Background(), 0); err != nil || f.left(ana) != test.left {
			t.Errorf("%s: %v, %d left, want %d", test.name, err, f.left(ana), test.left)
		}
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

// Against a twin that is charged the actual cost from the start, a client that reserves,
// revises and settles is never ahead: whatever it does, whenever it settles, and however
// often the tiers change.
func FuzzSettlingGainsNothing(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		table := func() ratetier.Tiers {
			period := time.Duration(1+random.IntN(60)) * time.Second
			quota := ratetier.Per(1+random.Int64N(20), period).Burst(1 + random.Int64N(30))
			if random.IntN(3) == 0 {
				quota = quota.And(ratetier.PerHour(1 + random.Int64N(200)))
			}
			return ratetier.Tiers{[]string{"free", "free", "free", "free", "pro"}[random.IntN(5)]: quota}
		}
		tiers := table()
		settler, twin := newFixture(t, ratetier.Config{Tiers: tiers}), newFixture(t, ratetier.Config{Tiers: tiers})
		type work struct {
			admission *ratetier.Admission
			actual    int64
		}
		var open []work
		for range 80 {
			wait := time.Duration(random.Int64N(int64(10 * time.Second)))
			settler.clock.Advance(wait)
			twin.clock.Advance(wait)
			switch random.IntN(8) {
			case 0:
				tiers := table()
				if err := errors.Join(settler.SetTiers(tiers), twin.SetTiers(tiers)); err != nil {
					t.Fatal(err)
				}
			case 1, 2, 3:
				if len(open) == 0 {
					continue
				}
				i := random.IntN(len(open))
				if err := open[i].admission.Settle(context.Background(), open[i].actual); err != nil {
					t.Fatal(err)
				}
				open = append(open[:i], open[i+1:]...)
			case 4:
				if len(open) > 0 && open[0].actual == 0 {
					open[0].admission.Revise(context.Background(), random.Int64N(9))
				}
			default:
				_, a := settler.Admit(context.Background(), check(ana, random.Int64N(6)))
				if !a.Decision().Allowed {
					continue
				}
				actual := max(0, random.Int64N(2*a.Decision().Cost+2)-a.Decision().Cost-1)
				open = append(open, work{a, actual})
				if d := twin.Take(context.Background(), ana, actual); !d.Allowed {
					t.Fatalf("the settler was admitted %d, of which %d did not fit its twin", a.Decision().Cost, actual)
				}
			}
			if ahead, honest := settler.left(ana), twin.left(ana); ahead > honest {
				t.Fatalf("the settler has %d left, its twin %d", ahead, honest)
			}
		}
	})
}

func TestTakeOnAnAdmission(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	_, a := f.Admit(context.Background(), check(ana, 1))
	for left := int64(8); left >= 0; left-- {
		if d := a.Take(context.Background(), 1); !d.Allowed || d.Remaining != left {
			t.Errorf("%+v, want %d left", d, left)
		}
	}
	if d := a.Take(context.Background(), 1); d.Allowed || d.RetryAfter != 6*time.Second {
		t.Errorf("on an empty bucket: %+v", d)
	}
	if d := a.Decision(); d.Remaining != 9 || d.Cost != 1 {
		t.Errorf("the admission itself became %+v", d)
	}
	if err := a.Settle(context.Background(), 0); err != nil || f.left(ana) != 1 {
		t.Errorf("%v, %d left, want 1: what was taken later stays", err, f.left(ana))
	}
}

func TestAnAdmissionIsSafeForConcurrentUse(t *testing.T) {
	f := newFixture(t, ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1000)}})
	_, a := f.Admit(context.Background(), check(ana, 1))
	var callers sync.WaitGroup
	settled := make(chan error, 8)
	for i := range 8 {
		callers.Go(func() {
			for n := range 50 {
				a.Take(context.Background(), 1)
				a.Revise(context.Background(), int64(1+n%5))
				_ = fmt.Sprint(a.Decision(), a.Outer(), a.Origin())
			}
			settled <- a.Settle(context.Background(), int64(i))
		})
	}
	callers.Wait()
	close(settled)
	first := 0
	for err := range settled {
		if err == nil {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d of 8 settled, want 1", first)
	}
}
