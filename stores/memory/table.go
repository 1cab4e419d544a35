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
// and not zero.
type array struct {
	stride int
	mask   int
	words  []atomic.Int64
}

func newArray(slots, rates int) *array {
	stride := header + rates
	return &array{stride: stride, mask: slots - 1, words: make([]atomic.Int64, slots*stride)}
}

// slots returns how many there are.
func (a *array) slots() int {
	if a == nil {
		return 0
	}
	return a.mask + 1
}

// find returns the slot of the hash, and whether there is one with a bucket.
func (a *array) find(h ratetier.Hash) (int, bool) {
	if a == nil {
		return 0, false
	}
	for at := int(h.Lo) & a.mask; ; at = (at + 1) & a.mask {
		slot := a.words[at*a.stride:][:header+1]
		switch owner := uint64(slot[0].Load()); {
		case owner == h.Lo && slot[header].Load() != gone:
			return at, true
		case owner == 0:
			return 0, false
		}
	}
}

// slot returns the words of the slot.
func (a *array) slot(at int) []atomic.Int64 { return a.words[at*a.stride:][:a.stride] }

// holds tells whether the slot belongs to a bucket that is not gone.
func (a *array) holds(at int) bool {
	slot := a.slot(at)
	return slot[0].Load() != 0 && slot[header].Load() != gone
}

// load returns the TATs in the slot.
func (a *array) load(at int) (t tats) {
	for i, slot := 0, a.slot(at); i < len(slot)-header; i++ {
		t[i] = slot[header+i].Load()
	}
	return t
}

// replace puts new TATs in the place of old ones. It returns false if a check without
// the lock was faster, which only happens to a single rate.
func (a *array) replace(at int, was, is *tats) bool {
	slot := a.slot(at)
	if !slot[header].CompareAndSwap(was[0], is[0]) {
		return false
	}
	for i := 1; i < len(slot)-header; i++ {
		slot[header+i].Store(is[i])
	}
	return true
}

// take takes the bucket out of the slot, and returns its last TATs.
func (a *array) take(at int) tats {
	last := a.load(at)
	last[0] = a.slot(at)[header].Swap(gone)
	return last
}

// put writes a bucket into the first free slot for its hash.
func (a *array) put(h ratetier.Hash, t *tats) {
	at := int(h.Lo) & a.mask
	for a.slot(at)[0].Load() != 0 {
		at = (at + 1) & a.mask
	}
	slot := a.slot(at)
	for i := range len(slot) - header {
		slot[header+i].Store(t[i])
	}
	slot[0].Store(int64(h.Lo))
}

// insert adds a bucket that is not there yet.
func (t *table) insert(h ratetier.Hash, bucket *tats, now int64) {
	if t.taken >= t.array.Load().slots()/8*7 {
		t.rebuild(now)
	}
	t.array.Load().put(h, bucket)
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
		if !array.holds(at) {
			continue
		}
		bucket := array.load(at)
		if full := bucket.full(); full > now {
			nextFull = min(nextFull, full)
		} else if array.replace(at, &bucket, &tats{gone}) {
			t.live--
		} else {
			nextFull = now // it was charged just now
		}
	}
	return nextFull
}

// rebuild moves the buckets that are not full into a new array, which is just so large
// that a quarter of it is free.
func (t *table) rebuild(now int64) {
	type moved struct {
		owner ratetier.Hash
		tats  tats
	}
	var buckets []moved
	old := t.array.Load()
	for at := range old.slots() {
		if !old.holds(at) {
			continue
		}
		if bucket := old.take(at); bucket.full() > now {
			owner := ratetier.Hash{Lo: uint64(old.slot(at)[0].Load())}
			buckets = append(buckets, moved{owner, bucket})
		}
	}
	const smallest = 8
	slots := smallest
	for slots*3 < len(buckets)*4 {
		slots *= 2
	}
	array := newArray(slots, t.rates)
	for i := range buckets {
		array.put(buckets[i].owner, &buckets[i].tats)
	}
	t.taken, t.live = len(buckets), len(buckets)
	t.array.Store(array)
}
