package ratetier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Config is all there is to say about a [Limiter]. Store and Tiers are required;
// every zero value is the safe choice.
type Config struct {
	// Store keeps the buckets. Required.
	Store Store

	// Tiers are the plans and their quotas. Required, and changed later with
	// [Limiter.SetTiers].
	Tiers Tiers

	// DefaultTier names the tier for callers without one of their own, as the
	// policies below say. It must be among Tiers and not be unlimited. Without it
	// such callers are refused.
	DefaultTier string

	// OnMissing is for requests without an identity. By default, the default tier's
	// quota for each client address; 403 where there is no default tier.
	OnMissing Policy

	// OnUnknownTier is for identities whose tier is not configured. By default, the
	// default tier's quota for each user; 403 where there is no default tier.
	OnUnknownTier Policy

	// OnIdentifyFailed is for requests whose identity could not be looked up, such
	// as when the database is down. By default, 503.
	OnIdentifyFailed Policy

	// OnStoreFailed is for requests that the store did not decide. By default they
	// are let through; the other choice is Deny, usually with 503.
	OnStoreFailed Policy

	// Shadow puts the whole limiter in shadow mode: everything is decided, charged
	// and reported as usual, and every request is let through. See also
	// [Quota.Shadow].
	Shadow bool

	// Observer is told each decision. By default nobody is.
	Observer Observer

	// Clock is where the time comes from. By default it is the system's.
	Clock Clock
}

// Limiter decides which requests may go on. Over any span of time t, a user of a
// tier of n cells per period p with burst b is admitted at most b + n x t / p cells,
// of all limiters that share the store; a refused request is charged nothing.
//
// Build one with [New]. It is safe for concurrent use, starts no goroutine and
// needs no closing.
type Limiter struct {
	store    Store
	quick    QuickStore // the store, nil if it is not one
	time     *timeline
	observer Observer
	shadow   bool

	table       atomic.Pointer[table]
	replacing   sync.Mutex
	defaultTier string

	onMissing, onUnknownTier, onIdentifyFailed, onStoreFailed Policy
}

// New returns a limiter, or an error that lists everything that is wrong with the
// config, each with the value and what to write instead.
func New(config Config) (*Limiter, error) {
	byDefault := Deny(outcomes[OutcomeUnknownTier].status)
	if config.DefaultTier != "" {
		byDefault = UseDefaultTier()
	}
	l := &Limiter{
		store:            config.Store,
		time:             newTimeline(config.Clock),
		observer:         config.Observer,
		shadow:           config.Shadow,
		defaultTier:      config.DefaultTier,
		onMissing:        config.OnMissing.or(byDefault),
		onUnknownTier:    config.OnUnknownTier.or(byDefault),
		onIdentifyFailed: config.OnIdentifyFailed.or(Deny(outcomes[OutcomeIdentifyFailed].status)),
		onStoreFailed:    config.OnStoreFailed.or(Allow()),
	}
	if quick, ok := config.Store.(QuickStore); ok && quick.Itself() == config.Store {
		l.quick = quick
	}
	var storeErr error
	if config.Store == nil {
		storeErr = errors.New("no Store: use for example memorystore.New() for one instance, redisstore.New(...) for several")
	}
	var fallbackErr error
	if config.OnStoreFailed.action == policyUseDefaultTier {
		fallbackErr = errors.New("OnStoreFailed: UseDefaultTier() needs the store that failed; use Allow() or Deny(503)")
	}
	table, tiersErr := newTable(config.Tiers, config.DefaultTier, l.quick)
	err := errors.Join(
		storeErr,
		tiersErr,
		config.OnMissing.validate("OnMissing", &config),
		config.OnUnknownTier.validate("OnUnknownTier", &config),
		config.OnIdentifyFailed.validate("OnIdentifyFailed", &config),
		config.OnStoreFailed.validate("OnStoreFailed", &config),
		fallbackErr,
	)
	if err != nil {
		return nil, fmt.Errorf("ratetier: %w", err)
	}
	l.table.Store(table)
	return l, nil
}

// Must returns the limiter, or panics with the error: for package variables and
// the first lines of main.
//
//	var limiter = ratetier.Must(ratetier.New(config))
func Must(limiter *Limiter, err error) *Limiter {
	if err != nil {
		panic(err)
	}
	return limiter
}

// Take charges the cost to the identity's bucket if it fits, and tells whether the
// request may go on. A request that is refused is charged nothing. The cost is 1
// for an ordinary request and more for heavier ones; 0 is a [Limiter.Peek]; a
// negative one is refused.
//
// Take does not wait for the bucket to fill. It waits for the store, no longer than
// ctx and the store's own time limit allow.
func (l *Limiter) Take(ctx context.Context, identity Identity, cost int64) (d Decision) {
	l.decide(ctx, ModeTake, &Check{Identity: identity, Cost: cost}, &d)
	return d
}

// Peek tells what is left of the identity's bucket, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, identity Identity) Decision {
	return l.Take(ctx, identity, 0)
}

// Charge charges the cost whether it fits or not, down to an empty bucket: for work
// whose cost is known only when it is done. What the bucket does not hold is
// forgiven, not owed. The decision is allowed if it was charged.
func (l *Limiter) Charge(ctx context.Context, identity Identity, cost int64) (d Decision) {
	l.decide(ctx, ModeCharge, &Check{Identity: identity, Cost: cost}, &d)
	return d
}

// Refund gives the cost back, up to a full bucket. To give back what one request
// was charged, [Admission.Settle] is better: it does not give back what has
// refilled in the meantime.
func (l *Limiter) Refund(ctx context.Context, identity Identity, cost int64) (d Decision) {
	l.decide(ctx, ModeRefund, &Check{Identity: identity, Cost: cost}, &d)
	return d
}

// Reset makes the identity's bucket full. It is an error if the identity has none:
// its tier is unlimited or blocked, or policy does not give it one.
func (l *Limiter) Reset(ctx context.Context, identity Identity) error {
	var d Decision
	if !l.resolve(ctx, &Check{Identity: identity}, &d) {
		return fmt.Errorf("ratetier: reset: no bucket for tier %q: %v", identity.Tier, d.Outcome)
	}
	return l.store.Reset(ctx, identity.key(d.Tier))
}

// SetTiers replaces the table of tiers, for all checks that start from now on. It
// validates everything first: on an error nothing has changed. The default tier
// and the policies stay.
//
// A bucket keeps the time until it is full again, at most one refill of the new
// quota and [gcra.Lateness]. Where both take as long to refill, that is a share of the whole: of 100 per
// hour, 95 used become 95 % of 10 per hour. So such a reload grants nobody a fresh
// bucket, and none makes anybody wait longer than that. A user moved to another tier has
// another bucket there.
func (l *Limiter) SetTiers(tiers Tiers) error {
	table, err := newTable(tiers, l.defaultTier, l.quick)
	if err != nil {
		return fmt.Errorf("ratetier: tiers unchanged: %w", err)
	}
	l.replacing.Lock()
	defer l.replacing.Unlock()
	l.table.Load().replace(table)
	l.table.Store(table)
	return nil
}

// Check is one request to decide, as an adapter knows it.
type Check struct {
	// Identity is who asks.
	Identity Identity

	// Cost is the number of cells, at least 0.
	Cost int64

	// Route is the pattern of the route, for events.
	Route string

	// Origin is whatever the adapter wants to find again with [Admission.Origin].
	Origin any
}

// operation is what goes to the store and what comes back.
type operation struct {
	request Request
	result  Result
}

// operations has cleared ones to use again: handing one to the store makes it
// escape, and a check is not to allocate.
var operations = sync.Pool{New: func() any { return new(operation) }}

// decide is what every check goes through, whatever it asks for. The decision is zero
// before. It returns when it was made, in the limiter's time.
func (l *Limiter) decide(ctx context.Context, mode Mode, check *Check, d *Decision) (now int64) {
	switch {
	case !l.resolve(ctx, check, d):
		now = l.time.now()
	case mode == ModeTake && l.quick != nil && len(d.tier.limits) == 1:
		hash := l.quick.Hash(d.tier.hash, check.Identity.User, check.Identity.anonymous())
		now = l.time.now()
		if !l.take(ctx, hash, now, d) {
			l.ask(ctx, mode, now, check, d)
		}
	default:
		now = l.time.now()
		l.ask(ctx, mode, now, check, d)
	}
	l.finish(mode, now, check, d)
	return now
}

// take asks a quick store. It returns false if the store is to be asked in the usual way.
func (l *Limiter) take(ctx context.Context, hash Hash, now int64, d *Decision) bool {
	if d.Cost > d.tier.burst || ctx.Err() != nil {
		return false
	}
	limit := d.tier.limits[0]
	used, allowed, ok := l.quick.Take(hash, limit, d.Cost, now)
	if !ok {
		return false
	}
	d.wall = l.time.wall(now)
	d.Limit, d.Remaining, d.ResetAfter = d.tier.burst, limit.Remaining(used), time.Duration(used)
	if allowed {
		d.Outcome, d.Allowed = OutcomeAllowed, true
		return true
	}
	d.refuse(OutcomeLimited)
	d.RetryAfter = time.Duration(limit.Wait(used, d.Cost))
	return true
}

// ask asks the store about the check, whose tier is resolved.
func (l *Limiter) ask(ctx context.Context, mode Mode, now int64, check *Check, d *Decision) {
	op, _ := operations.Get().(*operation)
	r := &op.request
	r.Mode, r.Limits, r.Cost, r.Now = mode, d.tier.limits, check.Cost, now
	r.Key.Tier, r.Key.User, r.Key.Anonymous = d.Tier, check.Identity.User, check.Identity.anonymous()
	l.apply(ctx, op, d)
	*op = operation{}
	operations.Put(op)
}

// resolve finds the tier that the check is about. It returns false if that already
// decides it.
func (l *Limiter) resolve(ctx context.Context, check *Check, d *Decision) bool {
	table := l.table.Load()
	d.Cost = check.Cost
	if check.Cost < 0 {
		d.refuse(OutcomeInvalidCost)
		d.Err = fmt.Errorf("ratetier: cost %d: must be at least 0; to give back, use Refund", check.Cost)
		return false
	}
	why, policy := Outcome(0), Policy{}
	switch unidentified := check.Identity.unidentified; {
	case unidentified == nil && check.Identity.User != "":
		if d.tier = table.find(check.Identity.Tier); d.tier == nil {
			why, policy = OutcomeUnknownTier, l.onUnknownTier
		}
	case unidentified == nil || errors.Is(unidentified, ErrNoIdentity):
		why, policy = OutcomeMissingIdentity, l.onMissing
	case ctx.Err() != nil: // the look-up failed because the client has gone
		d.cancel(ctx, unidentified)
		return false
	default:
		d.Err = unidentified
		why, policy = OutcomeIdentifyFailed, l.onIdentifyFailed
	}
	if why != 0 {
		if policy.action != policyUseDefaultTier {
			d.follow(policy, why)
			return false
		}
		d.tier, d.Defaulted = table.byDefault, why
	}
	d.Tier = d.tier.name
	switch d.tier.quota.kind {
	case quotaUnlimited:
		d.Outcome, d.Allowed = OutcomeUnlimited, true
		return false
	case quotaBlocked:
		d.refuse(OutcomeBlocked)
		return false
	default:
		return true
	}
}

// apply asks the store about the cost, and fills in the decision.
func (l *Limiter) apply(ctx context.Context, op *operation, d *Decision) {
	if op.request.Mode == ModeTake && op.request.Cost > d.tier.burst {
		d.refuse(OutcomeCostTooHigh)
		d.Limit = d.tier.burst
		return
	}
	err := ctx.Err()
	if err == nil {
		err = l.store.Apply(ctx, &op.request, &op.result)
	}
	if err != nil {
		if ctx.Err() != nil {
			d.cancel(ctx, err)
		} else {
			d.Err = err
			d.follow(l.onStoreFailed, OutcomeStoreFailed)
		}
		return
	}
	d.Degraded = op.result.Degraded
	d.wall = l.time.wall(op.request.Now)
	d.measure(&op.result.Used)
	if op.result.Allowed {
		d.Outcome, d.Allowed = OutcomeAllowed, true
		return
	}
	d.refuse(OutcomeLimited)
	d.wait(&op.result.Used)
}

// finish lets shadow mode have its say, and tells the observer.
func (l *Limiter) finish(mode Mode, now int64, check *Check, d *Decision) {
	if !d.Allowed && (l.shadow || d.tier != nil && d.tier.quota.shadow) {
		d.Allowed, d.Shadow, d.Status = true, true, 0
	}
	if l.observer != nil {
		at := l.time.now()
		l.observer.tell(Event{
			Decision: *d,
			Mode:     mode,
			Identity: check.Identity,
			Route:    check.Route,
			Elapsed:  time.Duration(at - now),
			at:       at,
		})
	}
}

// refuse refuses with the outcome's own status.
func (d *Decision) refuse(outcome Outcome) {
	d.Outcome, d.Allowed, d.Status = outcome, false, outcomes[outcome].status
}

// cancel refuses because the context is done. The error is that of the context, with
// what came of it.
func (d *Decision) cancel(ctx context.Context, err error) {
	d.refuse(OutcomeCanceled)
	d.Err = err
	if !errors.Is(err, ctx.Err()) { // as from a connection that was closed
		d.Err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
}

// follow lets the policy decide.
func (d *Decision) follow(policy Policy, outcome Outcome) {
	d.refuse(outcome)
	switch policy.action {
	case policyAllow:
		d.Allowed, d.Status = true, 0
	case policyDeny:
		d.Status = policy.status
	default:
	}
}
