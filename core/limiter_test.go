package ratetier_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

var errDatabase = errors.New("database: connection refused")

// The acceptance of the algorithm: 10 per minute.
func TestTenPerMinute(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	for _, step := range []struct {
		wait  time.Duration
		times int
		want  string
	}{
		{0, 10, "allowed 9..0"}, {0, 1, "limited 0 retry 6s"},
		{6 * time.Second, 1, "allowed 0..0"}, {0, 1, "limited 0 retry 6s"},
		{30 * time.Second, 5, "allowed 4..0"}, {0, 1, "limited 0 retry 6s"},
	} {
		f.clock.Advance(step.wait)
		first, last := int64(0), int64(0)
		var d ratetier.Decision
		for i := range step.times {
			d = f.Take(context.Background(), ana, 1)
			if last = d.Remaining; i == 0 {
				first = last
			}
		}
		got := fmt.Sprintf("%v %d..%d", d.Outcome, first, last)
		if !d.Allowed {
			got = fmt.Sprintf("%v %d retry %v", d.Outcome, d.Remaining, d.RetryAfter)
		}
		if got != step.want {
			t.Errorf("after %v: %s, want %s", step.wait, got, step.want)
		}
	}
}

func TestDecisionFigures(t *testing.T) {
	f := newFixture(t, ratetier.Config{Tiers: ratetier.Tiers{
		"free": ratetier.PerMinute(10),
		"pro":  ratetier.PerSecond(20).Burst(100).And(ratetier.PerDay(50)),
	}})
	f.Take(context.Background(), ana, 8)
	d := f.Take(context.Background(), ana, 5)
	if d.Limit != 10 || d.Remaining != 2 || d.RetryAfter != 18*time.Second || d.ResetAfter != 48*time.Second ||
		d.Status != 429 || d.Tier != "free" || d.Cost != 5 || d.Allowed || !d.Measured() {
		t.Errorf("refused: %+v", d)
	}
	if got, want := d.ResetAt(), start.Add(48*time.Second); !got.Equal(want) {
		t.Errorf("ResetAt is %v, want %v", got, want)
	}
	if d.NextAfter() != 6*time.Second || d.Rate().String() != "10/min" || d.Quota().String() != "10/min" {
		t.Errorf("NextAfter %v, Rate %v, Quota %v", d.NextAfter(), d.Rate(), d.Quota())
	}
	f.clock.Advance(2 * time.Second)
	if d := f.Peek(context.Background(), ana); d.NextAfter() != 4*time.Second || d.Remaining != 2 || d.Outcome != ratetier.OutcomeAllowed {
		t.Errorf("peek: %+v, NextAfter %v", d, d.NextAfter())
	}
	f.clock.Advance(time.Hour)
	if d := f.Peek(context.Background(), ana); d.NextAfter() != 0 || d.Remaining != 10 || d.ResetAfter != 0 {
		t.Errorf("full: %+v, NextAfter %v", d, d.NextAfter())
	}

	bea := user("bea", "pro")
	if d := f.Take(context.Background(), bea, 30); d.Limit != 50 || d.Remaining != 20 || d.Rate().String() != "50/day" {
		t.Errorf("the rate with the least left: %+v %v", d, d.Rate())
	}
	if d := f.Take(context.Background(), bea, 50); d.Limit != 50 || d.Remaining != 20 || d.RetryAfter != 30*24*time.Hour/50 {
		t.Errorf("the longest wait: %+v", d)
	}
	var none ratetier.Decision
	if none.Measured() || none.NextAfter() != 0 || none.Rate() != (ratetier.Rate{}) || none.Quota().Validate() == nil || none.Outcome.String() != "none" {
		t.Errorf("the zero decision says something: %+v", none)
	}
}

// What is not decided by a bucket follows a policy: this is the whole table.
func TestPolicies(t *testing.T) {
	missing, failed := ratetier.Unidentified("192.0.2.1", nil), ratetier.Unidentified("192.0.2.1", errDatabase)
	gold := user("eva", "gold")
	for _, test := range []struct {
		name      string
		config    ratetier.Config
		identity  ratetier.Identity
		storeFail bool
		want      string // outcome, defaulted, tier, status if refused
	}{
		{"missing, no default tier", ratetier.Config{}, missing, false, "missing_identity none  403"},
		{"missing, default tier", ratetier.Config{DefaultTier: "free"}, missing, false, "allowed missing_identity free"},
		{"missing, deny", ratetier.Config{DefaultTier: "free", OnMissing: ratetier.Deny(401)}, missing, false, "missing_identity none  401"},
		{"missing, allow", ratetier.Config{OnMissing: ratetier.Allow()}, missing, false, "missing_identity none "},
		{"missing, use default", ratetier.Config{DefaultTier: "pro", OnMissing: ratetier.UseDefaultTier()}, missing, false, "allowed missing_identity pro"},
		{"no user", ratetier.Config{DefaultTier: "free"}, user("", "pro"), false, "allowed missing_identity free"},
		{"a wrapped ErrNoIdentity", ratetier.Config{}, ratetier.Unidentified("", fmt.Errorf("no key: %w", ratetier.ErrNoIdentity)), false, "missing_identity none  403"},

		{"unknown tier, no default tier", ratetier.Config{}, gold, false, "unknown_tier none  403"},
		{"unknown tier, default tier", ratetier.Config{DefaultTier: "free"}, gold, false, "allowed unknown_tier free"},
		{"unknown tier, deny", ratetier.Config{DefaultTier: "free", OnUnknownTier: ratetier.Deny(402)}, gold, false, "unknown_tier none  402"},
		{"unknown tier, allow", ratetier.Config{OnUnknownTier: ratetier.Allow()}, gold, false, "unknown_tier none "},
		{"no tier", ratetier.Config{DefaultTier: "free"}, user("eva", ""), false, "allowed unknown_tier free"},
		{"the default tier is blocked", ratetier.Config{DefaultTier: "closed"}, gold, false, "blocked unknown_tier closed 403"},

		{"identify failed", ratetier.Config{DefaultTier: "free"}, failed, false, "identify_failed none  503"},
		{"identify failed, allow", ratetier.Config{OnIdentifyFailed: ratetier.Allow()}, failed, false, "identify_failed none "},
		{"identify failed, deny", ratetier.Config{OnIdentifyFailed: ratetier.Deny(500)}, failed, false, "identify_failed none  500"},
		{"identify failed, use default", ratetier.Config{DefaultTier: "free", OnIdentifyFailed: ratetier.UseDefaultTier()}, failed, false, "allowed identify_failed free"},

		{"store failed", ratetier.Config{}, ana, true, "store_failed none free"},
		{"store failed, allow", ratetier.Config{OnStoreFailed: ratetier.Allow()}, ana, true, "store_failed none free"},
		{"store failed, deny", ratetier.Config{OnStoreFailed: ratetier.Deny(503)}, ana, true, "store_failed none free 503"},

		{"unlimited", ratetier.Config{}, user("max", "enterprise"), true, "unlimited none enterprise"},
		{"blocked", ratetier.Config{}, user("bad", "closed"), true, "blocked none closed 403"},
	} {
		f := newFixture(t, test.config)
		if test.storeFail {
			f.store.err = errStore
		}
		d := f.Take(context.Background(), test.identity, 1)
		got := fmt.Sprintf("%v %v %s", d.Outcome, d.Defaulted, d.Tier)
		if !d.Allowed {
			got += fmt.Sprintf(" %d", d.Status)
		} else if d.Status != 0 {
			t.Errorf("%s: allowed with the status %d", test.name, d.Status)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		switch d.Outcome {
		case ratetier.OutcomeStoreFailed:
			if !errors.Is(d.Err, errStore) || d.Measured() || d.Limit != 0 {
				t.Errorf("%s: Err is %v, limit %d", test.name, d.Err, d.Limit)
			}
		case ratetier.OutcomeIdentifyFailed:
			if !errors.Is(d.Err, errDatabase) {
				t.Errorf("%s: Err is %v", test.name, d.Err)
			}
		default:
		}
		if len(f.events) != 1 || f.events[0].Outcome != d.Outcome || f.events[0].Defaulted != d.Defaulted {
			t.Errorf("%s: events %v", test.name, f.events)
		}
	}
}

func TestCallersWithoutIdentityHaveBucketsThatNoUserReaches(t *testing.T) {
	f := newFixture(t, ratetier.Config{DefaultTier: "free", OnIdentifyFailed: ratetier.UseDefaultTier()})
	callers := map[string]ratetier.Identity{
		"an address":         ratetier.Unidentified("192.0.2.1", nil),
		"another address":    ratetier.Unidentified("192.0.2.2", nil),
		"no address":         ratetier.Unidentified("", nil),
		"a user of the name": user("192.0.2.1", "free"),
		"an unknown tier":    user("192.0.2.9", "gold"),
	}
	for name, id := range callers {
		if d := f.Take(context.Background(), id, 4); d.Remaining != 6 {
			t.Errorf("%s has %d left, want 6", name, d.Remaining)
		}
	}
	if d := f.Take(context.Background(), ratetier.Unidentified("192.0.2.1", errDatabase), 1); d.Remaining != 5 {
		t.Errorf("the same address, identified by nobody, has %d left, want 5", d.Remaining)
	}
	if d := f.Take(context.Background(), user("192.0.2.9", "free"), 1); d.Remaining != 5 {
		t.Errorf("the same user in its default tier has %d left, want 5", d.Remaining)
	}
}

func TestWhatNeedsNoStoreDoesNotAskIt(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, d := range map[string]ratetier.Decision{
		"unlimited":       f.Take(context.Background(), user("max", "enterprise"), math.MaxInt64),
		"blocked":         f.Take(context.Background(), user("bad", "closed"), 1),
		"too costly":      f.Take(context.Background(), ana, 11),
		"far too costly":  f.Take(context.Background(), ana, math.MaxInt64),
		"negative":        f.Take(context.Background(), ana, -1),
		"negative charge": f.Charge(context.Background(), ana, -1),
		"negative refund": f.Refund(context.Background(), ana, math.MinInt64),
		"unknown tier":    f.Take(context.Background(), user("eva", "gold"), 1),
		"nobody":          f.Take(context.Background(), ratetier.Identity{}, 1),
		"canceled":        f.Take(canceled, ana, 1),
	} {
		if d.Measured() || d.Remaining != 0 || d.RetryAfter != 0 {
			t.Errorf("%s: %+v has figures", name, d)
		}
	}
	if n := f.store.asked.Load(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
	if left := f.left(ana); left != 10 {
		t.Errorf("%d left, want 10", left)
	}
}

func TestACostThatCannotBe(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	if d := f.Take(context.Background(), ana, 11); d.Outcome != ratetier.OutcomeCostTooHigh || d.Status != 403 || d.Limit != 10 || d.Allowed {
		t.Errorf("above the burst: %+v", d)
	}
	d := f.Take(context.Background(), ana, -5)
	if d.Outcome != ratetier.OutcomeInvalidCost || d.Status != 500 || d.Allowed {
		t.Errorf("negative: %+v", d)
	}
	if d.Err == nil || d.Err.Error() != "ratetier: cost -5: must be at least 0; to give back, use Refund" {
		t.Errorf("negative: the error is %v", d.Err)
	}
}

// A canceled context is not a failure of the store, whose policy would let it pass.
func TestACanceledContextIsNotAStoreFailure(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	f.store.during = cancel
	for range 2 { // during the call, and before it
		d := f.Take(ctx, ana, 1)
		if d.Outcome != ratetier.OutcomeCanceled || d.Allowed || !errors.Is(d.Err, context.Canceled) {
			t.Errorf("%+v", d)
		}
	}
	ctx, cancel = context.WithCancel(context.Background())
	f.store.during, f.store.err = cancel, errStore
	if d := f.Take(ctx, ana, 1); d.Outcome != ratetier.OutcomeCanceled || !errors.Is(d.Err, context.Canceled) || !errors.Is(d.Err, errStore) {
		t.Errorf("a store that failed as well: %+v", d)
	}
	f.store.during, f.store.err = nil, nil
	for _, failure := range []error{fmt.Errorf("database: %w", ctx.Err()), errors.New("database: connection closed")} {
		d := f.Take(ctx, ratetier.Unidentified("192.0.2.1", failure), 1)
		if d.Outcome != ratetier.OutcomeCanceled || !errors.Is(d.Err, context.Canceled) || !errors.Is(d.Err, failure) {
			t.Errorf("a look-up that failed with %v: %+v", failure, d)
		}
	}
	if left := f.left(ana); left != 10 {
		t.Errorf("%d left, want 10", left)
	}
}

func TestARequestThatOneRateRefusesIsChargedToNone(t *testing.T) {
	f := newFixture(t, ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerSecond(10).And(ratetier.PerDay(1000))}})
	for range 31 {
		f.Take(context.Background(), ana, 1)
	}
	f.clock.Advance(time.Second)
	if d := f.Charge(context.Background(), ana, 10); d.Remaining != 0 {
		t.Errorf("the second holds %d", d.Remaining)
	}
	if err := f.SetTiers(ratetier.Tiers{"free": ratetier.PerDay(1000)}); err != nil {
		t.Fatal(err)
	}
	if left := f.left(ana); left != 980 {
		t.Errorf("%d of the day left, want 980", left)
	}
}

func TestChargeAndRefund(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	for _, step := range []struct {
		does string
		d    ratetier.Decision
		left int64
	}{
		{"charge 4", f.Charge(context.Background(), ana, 4), 6},
		{"charge 100", f.Charge(context.Background(), ana, 100), 0},
		{"refund 3", f.Refund(context.Background(), ana, 3), 3},
		{"refund 100", f.Refund(context.Background(), ana, 100), 10},
		{"charge 0", f.Charge(context.Background(), ana, 0), 10},
	} {
		if !step.d.Allowed || step.d.Remaining != step.left {
			t.Errorf("%s: %+v, want %d left", step.does, step.d, step.left)
		}
	}
}

func TestReset(t *testing.T) {
	f := newFixture(t, ratetier.Config{DefaultTier: "free"})
	eva := user("eva", "gold")
	for _, id := range []ratetier.Identity{ana, eva} {
		f.Take(context.Background(), id, 10)
		if err := f.Reset(context.Background(), id); err != nil || f.left(id) != 10 {
			t.Errorf("%v: %v, %d left", id, err, f.left(id))
		}
	}
	for _, id := range []ratetier.Identity{user("max", "enterprise"), user("bad", "closed")} {
		if err := f.Reset(context.Background(), id); err == nil || !strings.Contains(err.Error(), id.Tier) || strings.Contains(err.Error(), id.User) {
			t.Errorf("%v: %v", id, err)
		}
	}
}

func TestShadowLetsThroughWhatItFinds(t *testing.T) {
	for name, f := range map[string]*fixture{
		"limiter": newFixture(t, ratetier.Config{Shadow: true, OnStoreFailed: ratetier.Deny(503), OnMissing: ratetier.Deny(401)}),
		"tier": newFixture(t, ratetier.Config{OnStoreFailed: ratetier.Deny(503), Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10).Shadow(), "closed": ratetier.Blocked().Shadow(), "pro": ratetier.PerMinute(100),
		}}),
	} {
		f.Take(context.Background(), ana, 8)
		is := func(d ratetier.Decision, outcome ratetier.Outcome) {
			t.Helper()
			if d.Outcome != outcome || !d.Allowed || !d.Shadow || d.Status != 0 {
				t.Errorf("%s: %+v, want %v in shadow", name, d, outcome)
			}
		}
		is(f.Take(context.Background(), ana, 5), ratetier.OutcomeLimited)
		is(f.Take(context.Background(), ana, 11), ratetier.OutcomeCostTooHigh)
		is(f.Take(context.Background(), user("bad", "closed"), 1), ratetier.OutcomeBlocked)
		if d := f.Take(context.Background(), ana, 2); d.Outcome != ratetier.OutcomeAllowed || d.Shadow || d.Remaining != 0 {
			t.Errorf("%s: what fits is %+v", name, d)
		}
		f.store.err = errStore
		is(f.Take(context.Background(), ana, 1), ratetier.OutcomeStoreFailed)
		if d := f.Take(context.Background(), user("bea", "pro"), 101); d.Allowed != (name == "limiter") {
			t.Errorf("%s: another tier: %+v", name, d)
		}
		if d := f.Take(context.Background(), ratetier.Identity{}, 1); d.Allowed != (name == "limiter") {
			t.Errorf("%s: nobody: %+v", name, d)
		}
		if got := len(f.events); got != 8 {
			t.Errorf("%s: %d events, want 8", name, got)
		}
	}
}

func TestOfHundredsAtOnceTenAreAdmitted(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	var admitted atomic.Int64
	var callers sync.WaitGroup
	for range 400 {
		callers.Go(func() {
			if f.Take(context.Background(), ana, 1).Allowed {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	if n := admitted.Load(); n != 10 {
		t.Errorf("%d were admitted, want 10", n)
	}
}

func TestATierIsFoundAmongFewAndMany(t *testing.T) {
	for _, count := range []int{1, 8, 9, 100} {
		tiers := ratetier.Tiers{}
		for i := range count {
			tiers["tier-"+strconv.Itoa(i)] = ratetier.PerMinute(10 + int64(i))
		}
		f := newFixture(t, ratetier.Config{Tiers: tiers})
		for i := range count {
			if d := f.Take(t.Context(), user("ana", "tier-"+strconv.Itoa(i)), 1); d.Limit != int64(10+i) {
				t.Errorf("tier-%d of %d: limit %d, want %d", i, count, d.Limit, 10+i)
			}
		}
		for _, unknown := range []string{"", "tier-", "tier-" + strconv.Itoa(count)} {
			if d := f.Take(t.Context(), user("ana", unknown), 1); d.Outcome != ratetier.OutcomeUnknownTier {
				t.Errorf("%q of %d: %v, want %v", unknown, count, d.Outcome, ratetier.OutcomeUnknownTier)
			}
		}
	}
}
