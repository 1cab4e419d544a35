package fallbackstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
)

const probeEvery = fallbackstore.DefaultProbeEvery

// subject is a store on a fake primary, and a limiter on it. It is used within a bubble,
// whose time stands still while anything can go on.
type subject struct {
	*testing.T
	primary *fakePrimary
	store   *fallbackstore.Store
	limiter *ratetier.Limiter
	events  []string
}

// outage runs the test in a bubble, with a primary that works.
func outage(t *testing.T, config fallbackstore.Config, test func(*subject)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &subject{T: t, primary: newFakePrimary()}
		config.OnOutage = func(o fallbackstore.Outage) {
			s.events = append(s.events, fmt.Sprintf("over %t, %v, lasted %v", o.Over, o.Err, o.Lasted))
		}
		s.store = fallbackstore.New(s.primary, config)
		var err error
		s.limiter, err = ratetier.New(ratetier.Config{
			Store: s.store,
			Tiers: ratetier.Tiers{
				"free": ratetier.PerHour(10),
				"pro":  ratetier.PerHour(100).And(ratetier.PerDay(200)),
			},
			OnStoreFailed: ratetier.Deny(503),
		})
		if err != nil {
			t.Fatal(err)
		}
		test(s)
	})
}

// down has the primary fail until there is an outage.
func (s *subject) down() {
	s.Helper()
	s.primary.failWith(errDown)
	for range fallbackstore.DefaultFailures {
		s.takes("free", "somebody", 0, "allowed, locally")
	}
	if !s.store.Stats().Down {
		s.Fatal("no outage")
	}
}

// takes takes the cost, and compares what came of it.
func (s *subject) takes(tier, user string, cost int64, want string) {
	s.Helper()
	d := s.limiter.Take(s.Context(), ratetier.Identity{User: user, Tier: tier}, cost)
	got := d.Outcome.String()
	if d.Degraded {
		got += ", locally"
	}
	if got != want {
		s.Errorf("%s takes %d: %s (error %v), want %s", user, cost, got, d.Err, want)
	}
}

// after lets the time pass, and then what it has brought about.
func (s *subject) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *subject) asked(want int64) {
	s.Helper()
	if got := s.primary.asked.Swap(0); got != want {
		s.Errorf("the primary was asked %d times, want %d", got, want)
	}
}

// An outage from beginning to end.
func TestLimitsGoOnLocallyWhileThePrimaryIsDown(t *testing.T) {
	outage(t, fallbackstore.Config{}, func(s *subject) {
		s.takes("free", "ana", 6, "allowed")
		s.down()
		s.asked(1 + fallbackstore.DefaultFailures)
		s.takes("free", "ana", 9, "allowed, locally")
		s.takes("free", "ana", 2, "limited, locally")
		s.asked(0)
		s.primary.failWith(nil)
		s.after(probeEvery + 1)
		s.takes("free", "ana", 1, "allowed, locally")
		synctest.Wait()
		s.asked(1)
		s.takes("free", "ana", 4, "allowed")
		s.takes("free", "ana", 1, "limited")
		want := fallbackstore.Stats{Outages: 1, Failures: 5, Local: 8}
		if got := s.store.Stats(); got != want {
			t.Errorf("stats %+v, want %+v", got, want)
		}
		wantEvents := "over false, the primary is down, lasted 0s; over true, <nil>, lasted 1.000000001s"
		if got := strings.Join(s.events, "; "); got != wantEvents {
			t.Errorf("told %s, want %s", got, wantEvents)
		}
	})
}

func TestFailuresInARowBeginAnOutage(t *testing.T) {
	outage(t, fallbackstore.Config{Failures: 3}, func(s *subject) {
		for range 10 {
			s.primary.failWith(errDown)
			s.takes("free", "ana", 0, "allowed, locally")
			s.takes("free", "ana", 0, "allowed, locally")
			s.primary.failWith(nil)
			s.takes("free", "ana", 0, "allowed")
		}
		if got := s.store.Stats(); got.Down || got.Outages != 0 || got.Failures != 20 {
			t.Errorf("two failures in a row: %+v, want no outage", got)
		}
	})
}

// The context of a caller ends for reasons of the caller.
func TestACallerWhoGoesIsNoFailure(t *testing.T) {
	outage(t, fallbackstore.Config{Failures: 1}, func(s *subject) {
		s.primary.hang.Store(true)
		for _, end := range []func() (context.Context, context.CancelFunc){
			func() (context.Context, context.CancelFunc) { return context.WithTimeout(s.Context(), time.Second) },
			func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(s.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := end()
			d := s.limiter.Take(ctx, ratetier.Identity{User: "ana", Tier: "free"}, 1)
			if d.Outcome != ratetier.OutcomeCanceled || !errors.Is(d.Err, ctx.Err()) {
				t.Errorf("outcome %v, error %v, want that of the context", d.Outcome, d.Err)
			}
			cancel()
		}
		if got := s.store.Stats(); got != (fallbackstore.Stats{}) {
			t.Errorf("stats %+v, want none", got)
		}
	})
}

// A probe is sent once an interval however many requests there are, and none of them
// waits for it, though it never ends by itself.
func TestOneProbeAtATimeAndNobodyWaits(t *testing.T) {
	outage(t, fallbackstore.Config{}, func(s *subject) {
		s.down()
		s.primary.hang.Store(true)
		s.after(probeEvery + 1)
		s.asked(fallbackstore.DefaultFailures)
		for round := range 3 {
			began := time.Now()
			for range 100 {
				s.takes("free", "bea", 0, "allowed, locally")
			}
			if waited := time.Since(began); waited != 0 { // fake time passes for those who wait
				t.Errorf("round %d: requests waited %v for the probe", round, waited)
			}
			s.after(probeEvery) // the probe fails
			s.asked(1)
			s.takes("free", "bea", 0, "allowed, locally")
			s.after(probeEvery + 1) // until the next
			s.asked(0)
		}
		if got := s.store.Stats().Outages; got != 1 || len(s.events) != 1 {
			t.Errorf("%d outages, of which %q was told, want one that began", got, s.events)
		}
	})
}

// A request that starts a probe is charged in one store only.
func TestAProbeChargesNobody(t *testing.T) {
	for _, mode := range []ratetier.Mode{ratetier.ModeTake, ratetier.ModeCharge, ratetier.ModeRefund} {
		outage(t, fallbackstore.Config{}, func(s *subject) {
			s.takes("free", "ana", 5, "allowed")
			s.down()
			s.takes("free", "ana", 5, "allowed, locally")
			s.primary.failWith(nil)
			s.after(probeEvery + 1)
			ana := ratetier.Identity{User: "ana", Tier: "free"}
			switch mode {
			case ratetier.ModeTake:
				s.limiter.Take(s.Context(), ana, 2)
			case ratetier.ModeCharge:
				s.limiter.Charge(s.Context(), ana, 2)
			case ratetier.ModeRefund:
				s.limiter.Refund(s.Context(), ana, 2)
			}
			synctest.Wait()
			if d := s.limiter.Peek(s.Context(), ana); d.Remaining != 5 || d.Degraded {
				t.Errorf("%v: %d left, degraded %t, want 5 left of the shared bucket", mode, d.Remaining, d.Degraded)
			}
		})
	}
}

// A primary that can be read and not written to is still down, however soon a probe comes
// after the last.
func TestAProbeWrites(t *testing.T) {
	outage(t, fallbackstore.Config{ProbeEvery: time.Microsecond}, func(s *subject) {
		for range 2 {
			s.down()
			s.primary.readOnly.Store(true)
			s.primary.failWith(nil)
			s.after(2 * time.Microsecond)
			s.takes("free", "ana", 0, "allowed, locally")
			synctest.Wait()
			s.takes("free", "ana", 0, "allowed, locally")
			s.primary.readOnly.Store(false)
			s.after(2 * time.Microsecond)
			s.takes("free", "ana", 0, "allowed, locally")
			synctest.Wait()
			s.takes("free", "ana", 0, "allowed")
		}
	})
}

// A primary that comes and goes gives nobody a fresh local bucket.
func TestLocalBucketsOutliveTheOutage(t *testing.T) {
	outage(t, fallbackstore.Config{}, func(s *subject) {
		s.down()
		s.takes("free", "ana", 10, "allowed, locally")
		for range 5 {
			s.primary.failWith(nil)
			s.after(probeEvery + 1)
			s.takes("free", "bea", 0, "allowed, locally")
			synctest.Wait()
			s.takes("free", "bea", 0, "allowed")
			s.down()
			s.takes("free", "ana", 1, "limited, locally")
		}
		if got := s.store.Stats().Outages; got != 6 {
			t.Errorf("%d outages, want 6", got)
		}
	})
}

func TestAResetIsOfBothStores(t *testing.T) {
	outage(t, fallbackstore.Config{}, func(s *subject) {
		ana := ratetier.Identity{User: "ana", Tier: "free"}
		s.takes("free", "ana", 10, "allowed")
		s.down()
		s.takes("free", "ana", 10, "allowed, locally")
		if err := s.limiter.Reset(s.Context(), ana); !errors.Is(err, errDown) {
			t.Errorf("error %v, want that of the primary", err)
		}
		s.takes("free", "ana", 10, "allowed, locally")
		s.primary.failWith(nil)
		if err := s.limiter.Reset(s.Context(), ana); err != nil {
			t.Error(err)
		}
		s.takes("free", "ana", 10, "allowed, locally")
		s.after(probeEvery + 1)
		s.takes("free", "bea", 0, "allowed, locally")
		synctest.Wait()
		s.takes("free", "ana", 10, "allowed")
	})
}

// A primary that panics has failed. The caller hears of it as if there were no fallback;
// a probe, which has no caller, ends nothing.
func TestAPrimaryThatPanicsHasFailed(t *testing.T) {
	outage(t, fallbackstore.Config{Failures: 1}, func(s *subject) {
		s.primary.panics.Store(true)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			s.takes("free", "ana", 1, "nothing")
		}()
		for range 2 {
			s.takes("free", "ana", 0, "allowed, locally")
			s.after(probeEvery + 1)
		}
		if got := s.store.Stats(); !got.Down || got.Failures != 2 {
			t.Errorf("%+v, want an outage and a probe that failed", got)
		}
		s.primary.panics.Store(false)
		s.takes("free", "ana", 0, "allowed, locally")
		synctest.Wait()
		s.takes("free", "ana", 0, "allowed")
	})
}

// Whoever is told of an outage may use the store, and may even panic.
func TestWhoIsToldMayUseTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := newFakePrimary()
		primary.failWith(errDown)
		var store *fallbackstore.Store
		told := 0
		apply := func() {
			request := ratetier.Request{Key: ratetier.Key{User: "ana"}, Limits: limits(ratetier.PerMinute(1))}
			if err := store.Apply(t.Context(), &request, new(ratetier.Result)); err != nil {
				t.Error(err)
			}
		}
		store = fallbackstore.New(primary, fallbackstore.Config{Failures: 1, OnOutage: func(o fallbackstore.Outage) {
			told++
			if store.Stats().Down == o.Over {
				t.Errorf("over %t, while the store says %+v", o.Over, store.Stats())
			}
			apply()
			panic("told")
		}})
		apply()
		primary.failWith(nil)
		<-time.After(probeEvery + 1)
		apply()
		synctest.Wait()
		if told != 2 {
			t.Errorf("told %d times, want 2", told)
		}
	})
}

// Who is slow to hear that an outage has begun hears only then that it is over.
func TestOutagesAreToldInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primary := newFakePrimary()
		primary.failWith(errDown)
		var store *fallbackstore.Store
		apply := func() {
			request := ratetier.Request{Key: ratetier.Key{User: "ana"}, Limits: limits(ratetier.PerMinute(1))}
			if err := store.Apply(t.Context(), &request, new(ratetier.Result)); err != nil {
				t.Error(err)
			}
		}
		var told []bool
		store = fallbackstore.New(primary, fallbackstore.Config{Failures: 1, OnOutage: func(o fallbackstore.Outage) {
			if !o.Over {
				primary.failWith(nil)
				<-time.After(probeEvery + 1)
				apply()
				synctest.Wait() // the outage is over
			}
			told = append(told, o.Over)
		}})
		apply()
		synctest.Wait()
		if !slices.Equal(told, []bool{false, true}) {
			t.Errorf("told that it was over: %v, want first false, then true", told)
		}
	})
}

func TestAStoreIsPrintedWithoutKeys(t *testing.T) {
	store := fallbackstore.New(newFakePrimary(), fallbackstore.Config{})
	if got := fmt.Sprintf("%v %+v %#v", store, store, store); got != strings.Repeat("fallbackstore.Store ", 3)[:59] {
		t.Errorf("printed %s", got)
	}
}
