// Package gcra is the Generic Cell Rate Algorithm as pure functions over
// nanoseconds: no clock, no I/O, no allocation.
//
// GCRA keeps one number per bucket, the theoretical arrival time (TAT): the
// moment at which the bucket will be full again. A cell costs one emission
// interval T, and a full bucket holds a burst offset of T x burst. The
// algorithm is the virtual scheduling form of ITU-T I.371, with the bucket seen
// from its empty side: the package speaks of how much of it is used.
//
// All functions are total: they neither panic nor overflow for any TAT, any
// time and any cost >= 0, as long as the [Limit] came from [New]. All are safe
// for concurrent use.
package gcra

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// MaxOffset bounds the burst offset, and with it the time any bucket can take
// to fill: 100 years of 365 days. Unix time in nanoseconds plus one full bucket
// then stays inside an int64 until the year 2162.
const MaxOffset = 100 * 365 * 24 * time.Hour

// Limit is one rate in the terms of the algorithm, both in nanoseconds. [Limit.Used],
// [Limit.Charge] and [Limit.Refund] also work with an Interval of 0.
type Limit struct {
	Interval int64 // emission interval T: the time one cell takes to come back
	Offset   int64 // burst offset: the time a whole bucket takes to come back
}

// New returns the limit of count cells per period with room for burst cells.
//
// T is the period divided by the count, rounded up to the nanosecond, and the
// offset is T x burst: a full bucket is exactly burst cells, and a rate that does
// not divide evenly is at most 1 ns a cell slower, never faster. The error names
// the first value out of range: count, period and burst must be positive, the
// count at most one per nanosecond, and the offset at most [MaxOffset].
func New(count int64, period time.Duration, burst int64) (Limit, error) {
	switch {
	case count <= 0:
		return Limit{}, fmt.Errorf("count %d: must be at least 1", count)
	case period <= 0:
		return Limit{}, fmt.Errorf("period %v: must be positive", period)
	case burst <= 0:
		return Limit{}, fmt.Errorf("burst %d: must be at least 1", burst)
	case count > int64(period):
		return Limit{}, fmt.Errorf("%d in %v is faster than one per nanosecond: lower the count or lengthen the period", count, period)
	}
	interval := (int64(period)-1)/count + 1
	if interval > int64(MaxOffset) {
		return Limit{}, fmt.Errorf("period %v: a single cell would take over 100 years to come back; raise the count or shorten the period", period)
	}
	if hi, offset := bits.Mul64(uint64(interval), uint64(burst)); hi == 0 && offset <= uint64(MaxOffset) {
		return Limit{Interval: interval, Offset: int64(offset)}, nil
	}
	return Limit{}, fmt.Errorf("burst %d: at %v a cell the bucket would take over 100 years to fill; lower the burst to at most %d",
		burst, time.Duration(interval), int64(MaxOffset)/interval)
}

// Burst returns how many cells a full bucket holds.
func (l Limit) Burst() int64 { return l.Offset / l.Interval }

// Lateness is by how much a time may be behind that of an earlier request for the same
// bucket without being taken for a clock set back: a goroutine was held up after it had
// read the clock, or another machine goes by another clock.
const Lateness = time.Second

// Used returns how much of the bucket with that TAT is used at now: the
// nanoseconds until it is full again, from 0 (full) over Offset (empty) to
// Offset + [Lateness].
//
// A TAT in the past is a full bucket. A TAT more than one offset ahead can only
// come from a time that is behind, or from a quota that was lowered. If it were cut
// to one offset, a request that comes late would give away what has refilled since;
// if it were left, a clock set back by a year would lock everybody out for that
// long. So nobody waits longer than one refill and the Lateness.
func (l Limit) Used(tat, now int64) int64 {
	if tat <= now {
		return 0
	}
	most := l.Offset + int64(Lateness)
	if now < 0 && tat > now+most { // tat-now may not fit an int64
		return most
	}
	return min(tat-now, most)
}

// left returns how much of a bucket used that far can be taken.
func (l Limit) left(used int64) int64 { return max(0, l.Offset-used) }

// Remaining returns how many whole cells a bucket used that far still holds.
func (l Limit) Remaining(used int64) int64 {
	return l.left(used) / l.Interval
}

// Wait returns how long, in nanoseconds, until cost cells fit into a bucket used
// that far: 0 if they fit now. No wait is long enough for a cost above the burst,
// which is [math.MaxInt64].
func (l Limit) Wait(used, cost int64) int64 {
	if cost > l.Burst() {
		return math.MaxInt64
	}
	more := cost * l.Interval
	if more <= l.left(used) {
		return 0
	}
	return used + more - l.Offset
}

// Take is the whole decision for a bucket of one rate: the TAT and the use after the
// cost was charged, and true, if the bucket holds it; else those it has, and false. The
// cost is at most the burst.
func (l Limit) Take(tat, now, cost int64) (next, used int64, ok bool) {
	used = l.Used(tat, now)
	if used > l.Offset {
		tat = now + used // lets time pass for a TAT from a clock set back
	}
	more := cost * l.Interval
	if more > l.left(used) {
		return tat, used, false
	}
	if more > 0 {
		used += more
		tat = now + used
	}
	return tat, used, true
}

// Charge returns the use after cost more cells, which leave an empty bucket at most:
// what a bucket does not hold is forgiven, not owed.
func (l Limit) Charge(used, cost int64) int64 {
	if cost > 0 && l.Interval > l.left(used)/cost {
		return max(used, l.Offset)
	}
	return used + cost*l.Interval
}

// Refund returns the use after cost cells were given back, at least 0: a bucket
// is never more than full.
func (l Limit) Refund(used, cost int64) int64 {
	if cost > 0 && l.Interval > used/cost {
		return 0
	}
	return used - cost*l.Interval
}
