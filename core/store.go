package ratetier

import (
	"context"
	"slices"

	"github.com/ratetier/ratetier/core/gcra"
)

// Store keeps the buckets. Package memorystore keeps them in this process, redisstore in
// Redis; package storetest checks a store of your own against these promises, which are
// all that a [Limiter] relies on:
//
//  1. Apply is atomic. However many callers share a key, in one process or many,
//     the outcome is that of some order of their requests, one after the other.
//  2. A request that is refused changes nothing, for any number of rates.
//  3. A bucket never asked for, or reset, is full.
//  4. A bucket is kept until it is full again, and may be forgotten from then on.
//     What it is kept under is all three fields of the [Key], never confused.
//  5. A peek, which is a take of cost 0, is always allowed, and creates nothing.
//  6. A use above a full bucket counts as an empty one, which begins to refill later
//     by what is above, [gcra.Lateness] at most (see [gcra.Limit.Used]).
//     So a request that comes late gives nothing back, and a clock set back or a
//     lowered quota costs nobody more than one refill and that.
//  7. A request with a different number of rates than the bucket was last used
//     with finds the highest use of them in each (see [Carry]).
//  8. Nothing of the request or the result is kept after Apply returns: they are
//     used again, and so may be the memory of the strings.
//  9. A context that is done charges nothing, and its error is returned. A store
//     need not look at the context if it does not wait.
//  10. An error means that the request may or may not have been charged, once at
//     most: a store never tries again what may have been done. Errors name neither
//     keys nor users.
//  11. All methods are safe for concurrent use.
type Store interface {
	// Apply decides and charges one request. It fills in the result, which is the
	// zero Result before, unless it returns an error.
	Apply(ctx context.Context, request *Request, result *Result) error

	// Reset makes the bucket full.
	Reset(ctx context.Context, key Key) error
}

// QuickStore is what a [Store] in this process may be as well. A limiter then asks Take
// first about what nearly every check is, a take of one rate: in registers, where a
// [Request] has to be in memory that is pooled. It asks for the hash before it reads the
// clock, so that a user's name, if it is far away in memory, is not waited for after it.
//
// All promises of a store hold for Take. [storetest] tests such a store both ways.
//
// [storetest]: https://pkg.go.dev/github.com/ratetier/ratetier/core/storetest
type QuickStore interface {
	Store

	// Itself returns the store. A store that embeds this one, to decide otherwise, has
	// its methods too; but it is not the store that they return, and not asked by them.
	Itself() Store

	// HashTier returns what Hash is given for the tier: a limiter asks once for each.
	HashTier(tier string) Hash

	// Hash returns what Take finds the bucket of that [Key] by.
	Hash(tier Hash, user string, anonymous bool) Hash

	// Take does what Apply would in ModeTake with that one limit, and returns the
	// Used and Allowed of the result. Where it would not be quick, it does nothing and
	// returns ok false: Apply is asked instead. The cost is 0 to the limit's burst.
	Take(hash Hash, limit gcra.Limit, cost, now int64) (used int64, allowed, ok bool)
}

// Hash is what a [QuickStore] finds a bucket by. Its value means nothing to others.
type Hash struct {
	Hi, Lo uint64 // the halves of its 128 bits
}

// Mode is what a [Request] does to a bucket.
type Mode uint8

const (
	// ModeTake charges the cost if it fits all rates, else nothing.
	ModeTake Mode = iota
	// ModeCharge charges the cost whether it fits or not, down to an empty bucket.
	ModeCharge
	// ModeRefund gives the cost back, up to a full bucket.
	ModeRefund
)

// String returns "take", "charge" or "refund".
func (m Mode) String() string {
	switch m {
	case ModeTake:
		return "take"
	case ModeCharge:
		return "charge"
	case ModeRefund:
		return "refund"
	default:
		return "unknown"
	}
}

// Request is one thing to do to one bucket. The limiter has validated it.
type Request struct {
	Mode Mode // what to do
	Key  Key  // to which bucket

	// Limits has one to [MaxRates] rates. The slice is shared: it must not be
	// changed or kept. In ModeCharge and
	// ModeRefund, an Interval may be 0.
	Limits []gcra.Limit

	// Cost is the number of cells, at least 0. In ModeTake it is at most the
	// smallest burst of Limits.
	Cost int64

	// Now is the limiter's time, in nanoseconds since the Unix epoch. A store
	// that many instances share uses its own clock instead, so that theirs need
	// not agree.
	Now int64
}

// Result is what a store did.
type Result struct {
	// Allowed tells whether the cost fitted. It is true for ModeCharge and
	// ModeRefund.
	Allowed bool

	// Degraded tells that the store could not reach what instances share, and
	// decided by what it knows locally.
	Degraded bool

	// Used is the use of each of the request's limits after it, in nanoseconds:
	// 0 is a full bucket, Limit.Offset an empty one, and more an empty one that begins to
	// refill only later (see [gcra.Limit.Used]).
	Used [MaxRates]int64
}

// Apply is the whole decision, for a store that can hold the bucket's TATs in
// hand: it reads one TAT per limit from tats, and writes the new ones there if
// the request changes them. A bucket that does not exist has TATs of 0; one whose
// TATs are all at or before Now need not be kept.
func (r *Request) Apply(tats []int64, result *Result) {
	result.Allowed = true
	for i, limit := range r.Limits {
		used := limit.Used(tats[i], r.Now)
		result.Used[i] = used
		if used > limit.Offset {
			tats[i] = r.Now + used // lets time pass for a TAT from a clock set back
		}
		if r.Mode == ModeTake && r.Cost*limit.Interval > max(0, limit.Offset-used) {
			result.Allowed = false
		}
	}
	if !result.Allowed || r.Cost == 0 {
		return
	}
	for i, limit := range r.Limits {
		if r.Mode == ModeRefund {
			result.Used[i] = limit.Refund(result.Used[i], r.Cost)
		} else {
			result.Used[i] = limit.Charge(result.Used[i], r.Cost)
		}
		tats[i] = r.Now + result.Used[i]
	}
}

// Carry returns the TATs that a bucket stored with other rates starts from: the
// latest of them for each rate. A changed quota thus never finds a fuller bucket
// than the one it replaces, and [gcra.Limit.Used] sees to it that nobody waits
// much longer than one refill.
func Carry(stored []int64, rates int) (tats [MaxRates]int64) {
	latest := slices.Max(stored)
	for i := range rates {
		tats[i] = latest
	}
	return tats
}
