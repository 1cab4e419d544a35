package ratetier

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ratetier/ratetier/core/gcra"
)

// MaxRates is how many rates one [Quota] can have.
const MaxRates = 4

// Rate is one rate of a [Quota]: Count cells per Period, refilled evenly, with
// room for Burst cells at once. A request of cost 1 takes one cell.
//
// Over any span of time t a rate admits at most Burst + Count x t / Period cells.
// Where Burst equals Count, that is up to twice the Count in one Period: the full
// bucket at its start, and what refills during it.
type Rate struct {
	Count  int64         // cells per Period, at least 1
	Period time.Duration // at least Count nanoseconds
	Burst  int64         // cells in a full bucket, at least 1
}

// Quota is what a tier allows: one to four rates that must all agree, no limit at
// all, or nothing. Build one with [PerSecond], [PerMinute], [PerHour], [PerDay],
// [Per], [Unlimited] or [Blocked], or read it from text with [ParseQuota].
//
// The zero Quota is not a quota: it is neither unlimited nor blocked, and [New]
// refuses it. So does it refuse any value out of range; the constructors accept
// what they are given, so that a table of tiers reads like a declaration. A Quota
// is immutable and safe for concurrent use.
type Quota struct {
	kind   quotaKind
	shadow bool
	rates  []Rate // by ascending Period
	misuse string // what was asked of the constructors that no quota can mean
}

type quotaKind uint8

const (
	quotaUnset quotaKind = iota
	quotaRated
	quotaUnlimited
	quotaBlocked
)

// PerSecond returns a quota of count cells per second, with a burst of count.
func PerSecond(count int64) Quota { return Per(count, time.Second) }

// PerMinute returns a quota of count cells per minute, with a burst of count.
func PerMinute(count int64) Quota { return Per(count, time.Minute) }

// PerHour returns a quota of count cells per hour, with a burst of count.
func PerHour(count int64) Quota { return Per(count, time.Hour) }

// PerDay returns a quota of count cells per 24 hours, with a burst of count. The
// window rolls: it has nothing to do with midnight in any time zone.
func PerDay(count int64) Quota { return Per(count, 24*time.Hour) }

// Per returns a quota of count cells per period, with a burst of count.
func Per(count int64, period time.Duration) Quota {
	return Quota{kind: quotaRated, rates: []Rate{{Count: count, Period: period, Burst: count}}}
}

// Unlimited returns the quota that admits everything, without asking the store.
// It is the only way to have no limit: no number means it.
func Unlimited() Quota { return Quota{kind: quotaUnlimited} }

// Blocked returns the quota that admits nothing, without asking the store.
func Blocked() Quota { return Quota{kind: quotaBlocked} }

// Burst returns the quota with room for cells at once instead of its count. It
// belongs to one rate, so it is called before [Quota.And].
func (q Quota) Burst(cells int64) Quota {
	if q.kind != quotaRated || len(q.rates) != 1 {
		return q.misused("Burst belongs to one rate: call it on PerSecond, PerMinute, ... before And")
	}
	q.rates = slices.Clone(q.rates)
	q.rates[0].Burst = cells
	return q
}

// And returns the quota that admits a request only if both do. A request that
// any rate refuses is charged to none. The rates must have different periods:
// two of the same period would say the same thing twice.
func (q Quota) And(other Quota) Quota {
	if q.kind != quotaRated || other.kind != quotaRated {
		return q.misused("And joins rates: Unlimited and Blocked have none")
	}
	if q.shadow || other.shadow {
		return q.misused("Shadow is for the whole tier: call it after And")
	}
	if other.misuse != "" {
		return other
	}
	q.rates = slices.Concat(q.rates, other.rates)
	slices.SortStableFunc(q.rates, func(a, b Rate) int { return int(max(-1, min(1, a.Period-b.Period))) })
	return q
}

// Shadow returns the quota in shadow mode: everything is decided, charged and
// reported as usual, and let through. It is how a new limit is tried on real
// traffic. See also [Config.Shadow].
func (q Quota) Shadow() Quota {
	q.shadow = true
	return q
}

// Rates returns a copy of the quota's rates, shortest period first; none for
// [Unlimited] and [Blocked].
func (q Quota) Rates() []Rate { return slices.Clone(q.rates) }

// IsUnlimited tells whether the quota is [Unlimited].
func (q Quota) IsUnlimited() bool { return q.kind == quotaUnlimited }

// IsBlocked tells whether the quota is [Blocked].
func (q Quota) IsBlocked() bool { return q.kind == quotaBlocked }

// IsShadow tells whether the quota is in [Quota.Shadow] mode.
func (q Quota) IsShadow() bool { return q.shadow }

// Validate returns nil if a limiter can use the quota, else an error that names
// the first value that is wrong and what to write instead.
func (q Quota) Validate() error {
	_, err := q.limits()
	return err
}

func (q Quota) misused(how string) Quota {
	if q.misuse == "" {
		q.misuse = how
	}
	return q
}

// limits validates the quota and returns its rates in the algorithm's terms.
func (q Quota) limits() ([]gcra.Limit, error) {
	switch {
	case q.misuse != "":
		return nil, errors.New(q.misuse)
	case q.kind == quotaUnset:
		return nil, errors.New(`no quota: write for example "10/min", "unlimited" or "blocked"`)
	case len(q.rates) > MaxRates:
		return nil, fmt.Errorf("%d rates: a quota has at most %d", len(q.rates), MaxRates)
	}
	limits := make([]gcra.Limit, len(q.rates))
	for i, rate := range q.rates {
		if i > 0 && rate.Period == q.rates[i-1].Period {
			return nil, fmt.Errorf("two rates per %v: keep the stricter one", rate.Period)
		}
		limit, err := gcra.New(rate.Count, rate.Period, rate.Burst)
		if err != nil {
			return nil, err
		}
		limits[i] = limit
	}
	return limits, nil
}
