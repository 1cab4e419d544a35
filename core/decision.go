package ratetier

import "time"

// Decision is the answer to one check. Its figures, from Limit to RetryAfter, are
// set where [Decision.Measured] is true; elsewhere nothing was measured, and they
// are 0.
//
// With several rates, Limit, Remaining and ResetAfter describe the rate that has
// the least left, and RetryAfter is the longest wait of those that refused.
//
// As a worked example, 10 per minute, after 8 requests of cost 1 at one moment: a
// request of cost 5 is refused with Limit 10, Remaining 2, RetryAfter 18s (three
// more cells of 6 s each) and ResetAfter 48s (eight cells).
type Decision struct {
	// Outcome is what was found.
	Outcome Outcome

	// Defaulted is why the default tier's quota was used: OutcomeUnknownTier,
	// OutcomeMissingIdentity or OutcomeIdentifyFailed. It is 0 if the caller was
	// limited by a tier of its own.
	Defaulted Outcome

	// Allowed tells whether the request may go on.
	Allowed bool

	// Shadow tells that the request may go on only because of shadow mode.
	Shadow bool

	// Degraded tells that the store decided by what it knew locally.
	Degraded bool

	rate uint8 // the index in tier.limits of the rate described

	// Status is the HTTP status of a refusal, 400 to 599; 0 if Allowed.
	Status int

	// Tier names the tier whose quota was used, "" if it did not come to that.
	Tier string

	// Cost is the number of cells asked for. It was charged if the outcome is
	// OutcomeAllowed.
	Cost int64

	// Limit is the burst: how many cells a full bucket holds. It is also set where
	// the outcome is OutcomeCostTooHigh.
	Limit int64

	// Remaining is how many whole cells are left, 0 to Limit.
	Remaining int64

	// ResetAfter is how long until the bucket is full again if nothing more is
	// taken. It is 0 for a full bucket.
	ResetAfter time.Duration

	// RetryAfter is how long until the same cost fits, if nothing else is taken
	// in between. It is 0 if it fitted, and exact to the nanosecond: round it up.
	RetryAfter time.Duration

	// Err is what went wrong, for the outcomes that say so.
	Err error

	tier *tier
	wall int64 // when, in nanoseconds since the Unix epoch, as people read it
}

// Measured tells whether the decision has figures: the bucket was asked.
func (d *Decision) Measured() bool {
	return d.Outcome == OutcomeAllowed || d.Outcome == OutcomeLimited
}

// ResetAt returns the time at which the bucket is full again, which is the time of
// the check plus ResetAfter.
func (d *Decision) ResetAt() time.Time {
	return time.Unix(0, d.wall+int64(d.ResetAfter))
}

// NextAfter returns how long until Remaining is one more, if nothing is taken in
// between: 0 for a full bucket, and where nothing was measured.
func (d *Decision) NextAfter() time.Duration {
	if !d.Measured() || d.Remaining == d.Limit {
		return 0
	}
	return time.Duration(d.tier.limits[d.rate].Wait(int64(d.ResetAfter), d.Remaining+1))
}

// Tighter tells whether the decision has less left than the other, as where a request
// passed two limiters and is to be told of one. Figures are tighter than none.
func (d *Decision) Tighter(than *Decision) bool {
	return d.Measured() && (!than.Measured() || d.Remaining < than.Remaining)
}

// Rate returns the rate that Limit, Remaining and ResetAfter describe, the zero
// Rate where nothing was measured.
func (d *Decision) Rate() Rate {
	if !d.Measured() {
		return Rate{}
	}
	return d.tier.quota.rates[d.rate]
}

// Quota returns the quota of Tier at the time of the check, the zero Quota if it
// did not come to that.
func (d *Decision) Quota() Quota {
	if d.tier == nil {
		return Quota{}
	}
	return d.tier.quota
}

// measure fills in the figures from what the store says is used.
func (d *Decision) measure(used *[MaxRates]int64) {
	for i, limit := range d.tier.limits {
		remaining, reset := limit.Remaining(used[i]), time.Duration(used[i])
		if i == 0 || remaining < d.Remaining || remaining == d.Remaining && reset > d.ResetAfter {
			d.Limit, d.Remaining, d.ResetAfter, d.rate = d.tier.quota.rates[i].Burst, remaining, reset, uint8(i)
		}
	}
}

// wait fills in how long a refused cost has to wait, from what is used.
func (d *Decision) wait(used *[MaxRates]int64) {
	d.RetryAfter = 0
	for i, limit := range d.tier.limits {
		d.RetryAfter = max(d.RetryAfter, time.Duration(limit.Wait(used[i], d.Cost)))
	}
}
