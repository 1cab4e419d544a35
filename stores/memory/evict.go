package memorystore

import (
	"math"
	"time"
)

// sample is how many buckets are looked at to find one to evict. The chance that
// all of them are exhausted, when one in ten is, is one in 10^16.
const sample = 16

// makeRoom sees to it that one more bucket fits. If all are in use, it evicts the
// fullest of a sample, and returns how long until that one would have been full.
//
// The fullest goes because forgetting it grants least: so a flood of new users,
// each with a nearly full bucket, pushes out its own, and not an exhausted one.
func (s *shard) makeRoom(now int64) time.Duration {
	if s.buckets() < s.max {
		return 0
	}
	if now >= s.nextFull {
		s.sweep(now)
		if s.buckets() < s.max {
			return 0
		}
	}
	var fullest struct {
		table *table
		at    int
		full  int64
	}
	fullest.full = math.MaxInt64
	for looked, steps := 0, 0; looked < sample && steps < s.slots(); steps++ {
		t, at := s.next()
		array := t.array.Load()
		bucket, ok := array.load(at)
		if !ok {
			continue
		}
		looked++
		if full := bucket.full(); full < fullest.full {
			fullest.table, fullest.at, fullest.full = t, at, full
		}
	}
	fullest.table.remove(fullest.at)
	s.evictions++
	return time.Duration(fullest.full - now)
}

// sweep drops every bucket that is full, and notes when the next one will be. Since
// the cap may be reached before a table is full enough to be resized, it also has
// those shrink that few buckets are left in.
func (s *shard) sweep(now int64) {
	s.nextFull = math.MaxInt64
	for i := range s.tables {
		t := &s.tables[i]
		s.nextFull = min(s.nextFull, t.purge(now))
		if t.live < t.array.Load().slots()/8 {
			t.resize()
		}
	}
}

// slots is how many slots all tables have.
func (s *shard) slots() int {
	n := 0
	for i := range s.tables {
		n += s.tables[i].array.Load().slots()
	}
	return n
}

// next moves the hand one slot on, through all tables.
func (s *shard) next() (*table, int) {
	for {
		at := s.hand
		for i := range s.tables {
			t := &s.tables[i]
			slots := t.array.Load().slots()
			if at < slots {
				s.hand++
				return t, at
			}
			at -= slots
		}
		s.hand = 0
	}
}
