package ratetier_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

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
		{"less, when the clock was set back", 4, -time.Hour, 2, 1}, // of what is a second more than a full bucket
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

// Against a twin that is charged the actual cost from the start, a client that reserves,
// revises and settles is never ahead: whatever it does, whenever it settles, and however
// often the tiers change.
func FuzzSettlingGainsNothing(f *testing.F) {
	for seed := range uint64(400) {
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
