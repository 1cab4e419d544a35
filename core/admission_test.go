package ratetier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
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
	ctx, first := f.Enter(context.Background(), check(ana, 1), new(ratetier.Carrier))
	ctx, _ = other.Enter(ctx, check(ana, 1), new(ratetier.Carrier))
	for _, step := range []struct {
		id         ratetier.Identity
		cost, left int64
		same       bool
	}{{ana, 1, 9, true}, {ana, 4, 6, true}, {ana, 2, 6, true}, {ana, -1, 10, true}, {user("bea", "free"), 1, 9, false}, {user("ana", "pro"), 1, 99, false}, {ratetier.Unidentified("ana", nil), 1, 0, false}} {
		_, a := f.Enter(ctx, check(step.id, step.cost), new(ratetier.Carrier))
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
