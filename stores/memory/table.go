package memorystore

import (
	"math"

	ratetier "github.com/ratetier/ratetier/core"
)

// header is how many words of a slot hold the hash; one per rate follow.
const header = 2

// table is a hash table of buckets with the same number of rates: open addressing,
// linear probing, all in one slice without pointers. A slot is the hash and the
// TATs; the first word of a hash is never zero, and marks an empty one.
//
// When it is seven eighths full, the buckets that have become full are dropped, and
// it is resized so that it is at most half as full: so cleaning up costs each
// insertion the same few nanoseconds, and a table whose users have left shrinks.
type table struct {
	stride int
	len    int
	mask   int
	words  []int64
}

// cap returns how many slots there are: 0, or a power of two.
func (t *table) cap() int {
	if t.words == nil {
		return 0
	}
	return t.mask + 1
}

// find returns the slot of the hash, and whether there is one.
func (t *table) find(h hash) (int, bool) {
	if t.len == 0 {
		return 0, false
	}
	for at := int(h.lo) & t.mask; ; at = (at + 1) & t.mask {
		slot := t.words[at*t.stride:][:header]
		if uint64(slot[0]) == h.hi && uint64(slot[1]) == h.lo {
			return at, true
		}
		if slot[0] == 0 {
			return 0, false
		}
	}
}

// slot returns the words of the slot.
func (t *table) slot(at int) []int64 { return t.words[at*t.stride:][:t.stride] }

func (t *table) used(at int) bool { return t.words[at*t.stride] != 0 }

// tats returns the TATs in the slot, to be read and written.
func (t *table) tats(at int) []int64 {
	return t.words[at*t.stride+header:][:t.stride-header]
}

// full returns when a bucket with those TATs is full.
func full(tats []int64) int64 {
	latest := tats[0]
	for _, tat := range tats[1:] {
		latest = max(latest, tat)
	}
	return latest
}

// insert adds a bucket that is not there yet.
func (t *table) insert(h hash, tats []int64, now int64) {
	if t.len >= t.cap()/8*7 {
		t.purge(now)
		t.resize()
	}
	slot := t.slot(t.free(int64(h.lo)))
	slot[0], slot[1] = int64(h.hi), int64(h.lo)
	copy(slot[header:], tats)
	t.len++
}

// free returns the slot in which a hash with that low half is to go.
func (t *table) free(lo int64) int {
	at := int(lo) & t.mask
	for t.used(at) {
		at = (at + 1) & t.mask
	}
	return at
}

// remove empties the slot, and moves those that were probed past it up, so that no
// probe stops early.
func (t *table) remove(at int) {
	t.len--
	for next := at; ; {
		next = (next + 1) & t.mask
		if !t.used(next) {
			break
		}
		home := int(t.slot(next)[1]) & t.mask
		if (next-home)&t.mask < (next-at)&t.mask {
			continue // its probe starts behind the hole
		}
		copy(t.slot(at), t.slot(next))
		at = next
	}
	clear(t.slot(at))
}

// purge drops the buckets that are full, and returns when the next one will be.
func (t *table) purge(now int64) (nextFull int64) {
	nextFull = math.MaxInt64
	before, origin := t.len, 0
	for at := range t.cap() {
		if !t.used(at) {
			origin = at
		} else if full := full(t.tats(at)); full > now {
			nextFull = min(nextFull, full)
		} else {
			clear(t.slot(at))
			t.len--
		}
	}
	if t.len == before {
		return nextFull
	}
	// What was probed past the dropped ones moves up. No probe leads past a slot that
	// was empty before, so that is where to begin.
	var moved [header + ratetier.MaxRates]int64
	for i := 1; i < t.cap(); i++ {
		at := (origin + i) & t.mask
		if t.used(at) {
			n := copy(moved[:], t.slot(at))
			clear(t.slot(at))
			copy(t.slot(t.free(moved[1])), moved[:n])
		}
	}
	return nextFull
}

// resize makes the table just so large that it is at most half as full as when it
// is resized next.
func (t *table) resize() {
	const smallest = 8
	slots := smallest
	for slots*7 < t.len*16 {
		slots *= 2
	}
	if slots == t.cap() {
		return
	}
	old := *t
	t.mask, t.words = slots-1, make([]int64, slots*t.stride)
	for at := range old.cap() {
		if old.used(at) {
			slot := old.slot(at)
			copy(t.slot(t.free(slot[1])), slot)
		}
	}
}
