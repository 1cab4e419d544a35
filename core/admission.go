package ratetier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ratetier/ratetier/core/gcra"
)

// ErrSettled is returned by [Admission.Settle] when it was called before.
var ErrSettled = errors.New("ratetier: the admission is settled already")

// Admission is one request that a limiter has decided, for as long as the request
// is worked on. With it, the handler reads the decision, charges more as it goes,
// and settles in the end for what the work really cost. It holds nothing of a
// framework, and is safe for concurrent use, also after the request has ended.
type Admission struct {
	limiter *Limiter
	outer   *Admission

	mu       sync.Mutex
	check    Check
	decision Decision
	charged  int64 // cells in the bucket on account of this request
	since    int64 // when the first of them were charged, in the limiter's time
	settled  bool
}

// Admit is [Limiter.Take] for adapters and for work that is settled later: it also
// returns the admission, and a context that carries it for [FromContext]. Admit
// returns an admission for a refused request too, with nothing charged.
func (l *Limiter) Admit(ctx context.Context, request Check) (context.Context, *Admission) {
	outer, _ := FromContext(ctx)
	return l.admit(ctx, outer, &request, new(Carrier))
}

func (l *Limiter) admit(ctx context.Context, outer *Admission, request *Check, carrier *Carrier) (context.Context, *Admission) {
	// One by one, as a copy of the whole costs more than the rest of this.
	carrier.inner.Context = ctx //nolint:fatcontext // once: a carrier is for a single request
	a := &carrier.inner.admission
	a.limiter, a.outer, a.check = l, outer, *request
	a.take(ctx)
	return &carrier.inner, a
}

// Enter is [Limiter.Admit] for adapters, which may be mounted more than once: where the
// request has passed this limiter before, for the same caller, that admission is
// revised to the higher of the two costs. A request is charged to a bucket once.
//
// A new admission lies in the carrier.
func (l *Limiter) Enter(ctx context.Context, request Check, carrier *Carrier) (context.Context, *Admission) {
	outer, _ := FromContext(ctx)
	for a := outer; a != nil; a = a.outer {
		if a.is(l, request.Identity) {
			if request.Cost < 0 || request.Cost > a.Decision().Cost {
				a.Revise(ctx, request.Cost)
			}
			return ctx, a
		}
	}
	return l.admit(ctx, outer, &request, carrier)
}

// Leave gives back what all limiters that the request has passed charged for it: a
// request that one of them refuses is charged by none.
func Leave(ctx context.Context) {
	for a, _ := FromContext(ctx); a != nil; a = a.outer {
		_ = a.Settle(ctx, 0) // an error of the store has been told as an event
	}
}

// FromContext returns the admission of the innermost limiter that the request has
// passed, if it has passed one.
func FromContext(ctx context.Context) (*Admission, bool) {
	a, ok := ctx.Value(admissionKey{}).(*Admission)
	return a, ok
}

// admissionContext is the admission and the context that carries it.
type admissionContext struct {
	context.Context
	admission Admission
}

// Carrier is the room for an admission and for the context that carries it. An adapter
// has one in what it allocates for a request anyway, as each allocation is felt by every
// request. It is ready to use as it is, for a single [Limiter.Enter].
type Carrier struct{ inner admissionContext }

// Format keeps the user out of every verb of fmt.
func (c *Carrier) Format(f fmt.State, verb rune) { c.inner.admission.Format(f, verb) }

type admissionKey struct{}

func (c *admissionContext) Value(key any) any {
	if key == (admissionKey{}) {
		return &c.admission
	}
	return c.Context.Value(key)
}

// Format keeps the user out of every verb of fmt.
func (c *admissionContext) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "%v.WithAdmission", c.Context)
}

// Format keeps the user out of every verb of fmt.
func (a *Admission) Format(f fmt.State, _ rune) { redacted(f, "Admission", a.Decision().Tier) }

// Outer returns the admission of the limiter that the request passed before this
// one, nil if this is the first.
func (a *Admission) Outer() *Admission { return a.outer }

// is tells whether the admission is for that limiter and that caller.
func (a *Admission) is(limiter *Limiter, identity Identity) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	is := &a.check.Identity
	return a.limiter == limiter && is.User == identity.User && is.Tier == identity.Tier &&
		(is.unidentified == nil) == (identity.unidentified == nil)
}

// Origin returns the Origin of the [Check].
func (a *Admission) Origin() any {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.check.Origin
}

// Decision returns the decision as it stands, with the cost as last revised.
func (a *Admission) Decision() Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decision
}

// Take charges the cost to the same bucket, on top of what the request has cost
// so far: for the messages of a connection or the parts of a stream. It does not
// count towards [Admission.Settle].
func (a *Admission) Take(ctx context.Context, cost int64) (d Decision) {
	a.mu.Lock()
	check := a.check
	a.mu.Unlock()
	check.Cost = cost
	a.limiter.decide(ctx, ModeTake, &check, &d)
	return d
}

// Revise makes the request cost that much in all, whatever it was charged before.
// If that does not fit, the request is charged nothing at all and the decision is a
// refusal. It is what a cost declared behind the limiter goes through. A settled
// admission cannot be revised.
func (a *Admission) Revise(ctx context.Context, cost int64) Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.settled || cost == a.check.Cost {
		return a.decision
	}
	a.check.Cost = cost
	if a.charged == 0 || cost < a.charged || cost > a.decision.tier.burst || a.reloaded() {
		_ = a.move(ctx, 0, nil) // an error leaves the request charged for more, never for less
		a.decision = Decision{}
		a.take(ctx)
	} else {
		a.takeMore(ctx, cost-a.charged)
	}
	return a.decision
}

// reloaded tells whether the tiers have changed since the check was decided: it may
// belong to another bucket now, and two are not to be charged for one request.
func (a *Admission) reloaded() bool {
	return a.decision.tier.next.Load() != nil
}

// take decides the check, with nothing decided or charged so far.
func (a *Admission) take(ctx context.Context) {
	a.since = a.limiter.decide(ctx, ModeTake, &a.check, &a.decision)
	if a.decision.Outcome == OutcomeAllowed {
		a.charged = a.check.Cost
	}
}

// takeMore charges more to the bucket that the request has been charged to before, whatever
// becomes of its tier meanwhile.
func (a *Admission) takeMore(ctx context.Context, more int64) {
	l, check, now := a.limiter, a.check, a.limiter.time.now()
	check.Cost = more
	d := Decision{Cost: more, Tier: a.decision.Tier, Defaulted: a.decision.Defaulted, tier: a.decision.tier}
	l.ask(ctx, ModeTake, now, &check, &d)
	l.finish(ModeTake, now, &check, &d)
	d.Cost = a.check.Cost
	if d.Outcome == OutcomeAllowed {
		a.charged += more
	} else {
		_ = a.move(ctx, 0, &d) // as above
	}
	a.decision = d
}

// Settle makes the request cost what the work turned out to cost: in one atomic step,
// it charges the difference to what was charged on admission, or gives it back. More
// than the bucket holds is forgiven. After a change of the quota the difference keeps
// the time it stood for, less what a bucket that now refills sooner has forgiven.
//
// What is given back is what the bucket, had nobody else used it, would still lack: not
// what has refilled by itself in the meantime, which may be spent already. So a
// client that reserves too much, however often and however late it settles, never gets
// more than one that was charged the actual costs from the start. Of a reservation held
// for longer than it takes to refill, nothing is given back.
//
// It also goes through when ctx is canceled, as it is when the client has gone. What
// was admitted at cost 0 is charged all of the actual cost; what has no bucket or was
// not admitted to it (unlimited, let through by policy, refused) has nothing to settle.
// A second call returns [ErrSettled] and a negative cost an error
// that names it; neither changes anything. An error of the store is not to be
// retried: the difference may have been charged.
func (a *Admission) Settle(ctx context.Context, actual int64) error {
	if actual < 0 {
		return fmt.Errorf("ratetier: settle: cost %d: must be at least 0", actual)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.settled {
		return ErrSettled
	}
	a.settled = true
	if a.decision.Outcome != OutcomeAllowed {
		return nil
	}
	return a.move(ctx, actual, nil)
}

// move charges or gives back the difference between what was charged and the cost. The
// refusal, if there is one, is told what is left then, and how long its cost has to wait.
func (a *Admission) move(ctx context.Context, cost int64, told *Decision) error {
	charged := a.charged
	a.charged = cost
	if charged == cost {
		return nil
	}
	l, was := a.limiter, a.decision.tier
	now, smallest := was.since()
	if now == nil {
		return nil // the bucket it was charged to is no more
	}
	check := a.check
	check.Cost = max(cost, charged) - min(cost, charged)
	d := Decision{Cost: check.Cost, Tier: was.name, tier: now}

	// How much time the difference stands for is another number for each rate, so it is
	// spelled as the interval of a single cell.
	var op operation
	op.request = Request{Mode: ModeCharge, Key: check.Identity.key(was.name), Cost: 1, Now: l.time.now()}
	if cost < charged {
		op.request.Mode = ModeRefund
	}
	due := false
	for i, limit := range was.limits {
		interval := difference(limit, smallest[i], charged, cost, op.request.Now-a.since)
		op.request.Limits = append(op.request.Limits, gcra.Limit{Interval: interval, Offset: now.limits[i].Offset})
		due = due || interval > 0
	}
	if !due && told == nil {
		return nil
	}
	l.apply(context.WithoutCancel(ctx), &op, &d)
	l.finish(op.request.Mode, op.request.Now, &check, &d)
	if d.Outcome != OutcomeAllowed {
		return d.Err
	}
	if told != nil && told.Measured() {
		told.measure(&op.result.Used)
		told.wait(&op.result.Used)
	}
	return nil
}

// difference returns how many nanoseconds of a bucket's use to charge, or to give back,
// so that one cost takes the place of another that was charged some time ago, under what
// the limit was then. The smallest offset is the one that the bucket has had since.
func difference(limit gcra.Limit, smallest, charged, cost, ago int64) int64 {
	if cost > charged {
		return limit.Charge(0, cost-charged)
	}
	before := max(0, limit.Charge(0, charged)-ago)
	after := max(0, limit.Charge(0, cost)-ago)
	// What a bucket that refilled sooner has forgiven may be what is given back here.
	forgiven := limit.Offset - smallest
	// A part of a microsecond is left out: what is shared through Redis is whole ones,
	// as long as the intervals are.
	const microsecond = int64(time.Microsecond)
	return max(0, before-after-forgiven) / microsecond * microsecond
}
