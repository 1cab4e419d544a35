package memorystore

import (
	"math"
	"sync/atomic"

	ratetier "github.com/ratetier/ratetier/core"
)

// table is a hash table of buckets with the same number of rates: open addressing,
// linear probing, in an array without pointers. All but [array.find] and the TATs of
// single rates need the shard's lock.
//
// A slot belongs to one bucket for as long as its array lives. So a check can find its
// slot, and move the TAT in it, without a lock: whoever takes a bucket away swaps its
// TAT for gone first, and a check that finds that turns to the lock. When an array is
// seven eighths full, the buckets in use move to a new one, at most three quarters
// full: cleaning up costs each insertion the same few nanoseconds, and a table whose
// users have left shrinks.
type table struct {
	array atomic.Pointer[array]
	rates int
	taken int // slots that belong to a bucket, gone or not
	live  int // buckets
}

// tats are the TATs of a bucket; those beyond its rates are 0.
type tats [ratetier.MaxRates]int64

// full returns when the bucket is full.
func (t *tats) full() int64 { return max(t[0], t[1], t[2], t[3]) }

// gone is the TAT of a bucket that is kept no more.
const gone = math.MinInt64

// header is how many words of a slot tell whose it is: the half of the hash by which it is
// found in its shard, the other half having told the shard. One word per rate follows.
const header = 1

// array is the slots of a table: a power of two. The header of a slot is written last,
// and not zero. Where checks without the lock may look at the same time, the words are
// read and written atomically.
type array struct {
	stride int
	mask   int
	words  []int64
}

func newArray(slots, rates int) *array {
	stride := header + rates
	return &array{stride: stride, mask: slots - 1, words: make([]int64, slots*stride)}
}

// slots returns how many there are.
func (a *array) slots() int {
	if a == nil {
		return 0
	}
	return a.mask + 1
}

// slot returns the words of the slot.
func (a *array) slot(at int) []int64 { return a.words[at*a.stride:][:a.stride] }

// find returns the slot of the hash, and whether there is one with a bucket.
func (a *array) find(h ratetier.Hash) (int, bool) {
	if a == nil {
		return 0, false
	}
	for at := int(h.Lo) & a.mask; ; at = (at + 1) & a.mask {
		slot := a.words[at*a.stride:][:header+1]
		switch owner := uint64(atomic.LoadInt64(&slot[0])); {
		case owner == h.Lo && atomic.LoadInt64(&slot[header]) != gone:
			return at, true
		case owner == 0:
			return 0, false
		}
	}
}

// free returns the first free slot for the owner.
func (a *array) free(owner uint64) []int64 {
	for at := int(owner) & a.mask; ; at = (at + 1) & a.mask {
		if slot := a.slot(at); slot[0] == 0 {
			return slot
		}
	}
}

// put writes a bucket into a free slot.
func (a *array) put(owner uint64, t *tats) {
	slot := a.free(owner)
	copy(slot[header:], t[:])
	atomic.StoreInt64(&slot[0], int64(owner))
}

// load returns the TATs in the slot, and whether there are any.
func (a *array) load(at int) (t tats, ok bool) {
	slot := a.slot(at)
	if slot[0] == 0 {
		return t, false
	}
	copy(t[1:], slot[header+1:])
	t[0] = atomic.LoadInt64(&slot[header])
	return t, t[0] != gone
}

// replace puts new TATs in the place of old ones. It returns false if a check without
// the lock was faster, which only happens to a single rate.
func (a *array) replace(at int, was, is *tats) bool {
	slot := a.slot(at)
	if !atomic.CompareAndSwapInt64(&slot[header], was[0], is[0]) {
		return false
	}
	copy(slot[header+1:], is[1:])
	return true
}

// take takes the bucket out of the slot, and returns its last TATs.
func (a *array) take(at int) (last tats) {
	slot := a.slot(at)
	copy(last[1:], slot[header+1:])
	last[0] = atomic.SwapInt64(&slot[header], gone)
	return last
}

// moveTo moves all buckets to an array that nobody knows yet.
func (a *array) moveTo(fresh *array) {
	for at := range a.slots() {
		slot := a.slot(at)
		if slot[0] == 0 || atomic.LoadInt64(&slot[header]) == gone {
			continue
		}
		moved := fresh.free(uint64(slot[0]))
		moved[0], moved[header] = slot[0], atomic.SwapInt64(&slot[header], gone)
		copy(moved[header+1:], slot[header+1:])
	}
}

// insert adds a bucket that is not there yet.
func (t *table) insert(h ratetier.Hash, bucket *tats, now int64) {
	if t.taken >= t.array.Load().slots()/8*7 {
		t.purge(now)
		t.resize()
	}
	t.array.Load().put(h.Lo, bucket)
	t.taken++
	t.live++
}

// remove drops the bucket in the slot, and returns its last TATs.
func (t *table) remove(at int) tats {
	t.live--
	return t.array.Load().take(at)
}

// purge drops the buckets that are full, and returns when the next one will be.
func (t *table) purge(now int64) (nextFull int64) {
	nextFull = math.MaxInt64
	array := t.array.Load()
	for at := range array.slots() {
		slot := array.slot(at)
		tat := atomic.LoadInt64(&slot[header])
		full := tat
		for _, other := range slot[header+1:] {
			full = max(full, other)
		}
		switch {
		case full > now && tat != gone: // asked first, as a free slot is full at 0
			nextFull = min(nextFull, full)
		case slot[0] == 0 || tat == gone:
		case atomic.CompareAndSwapInt64(&slot[header], tat, gone):
			t.live--
		default:
			nextFull = now // it was charged just now
		}
	}
	return nextFull
}

// resize moves the buckets to an array that is just so large that a quarter of it is free.
func (t *table) resize() {
	const smallest = 8
	slots := smallest
	for slots*3 < t.live*4 {
		slots *= 2
	}
	fresh := newArray(slots, t.rates)
	t.array.Load().moveTo(fresh)
	t.taken = t.live
	t.array.Store(fresh)
}
