package memorystore

import (
	"sync"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// shard is the part of the buckets that one lock guards.
type shard struct {
	mu     sync.Mutex
	tables [ratetier.MaxRates]table // by number of rates, less one; the first shares the lock's cache line

	max       int
	hand      int   // where to look next for a bucket to evict
	nextFull  int64 // no bucket is full before this
	evictions uint64

	_ [24]byte // makes it whole cache lines, none of which two shards share
}

func (s *shard) init(maxBuckets int) {
	s.max = maxBuckets
	for i := range s.tables {
		s.tables[i].stride = header + i + 1
	}
}

// lock takes the lock, which is held so briefly that trying again a few times is
// quicker than going to sleep.
func (s *shard) lock() {
	for range 32 {
		if s.mu.TryLock() {
			return
		}
	}
	s.mu.Lock()
}

// apply decides one request. It returns for how long the bucket that had to make
// room for a new one would have been in use, 0 if none had to.
func (s *shard) apply(h hash, request *ratetier.Request, result *ratetier.Result) time.Duration {
	rates := len(request.Limits)
	t := &s.tables[rates-1]
	if at, ok := t.find(h); ok {
		tats := t.tats(at)
		before := full(tats)
		request.Apply(tats, result)
		if after := full(tats); after < before { // a refund, or more than a full bucket
			s.nextFull = min(s.nextFull, after)
		}
		return 0
	}
	stored := s.carry(h, rates)
	tats := stored[:rates]
	request.Apply(tats, result)
	full := full(tats)
	if full <= request.Now {
		return 0
	}
	evicted := s.makeRoom(request.Now)
	t.insert(h, tats, request.Now)
	s.nextFull = min(s.nextFull, full)
	return evicted
}

// carry returns the TATs that the bucket starts with, and drops what there was of
// it under another number of rates.
func (s *shard) carry(h hash, rates int) (tats [ratetier.MaxRates]int64) {
	for i := range s.tables {
		t := &s.tables[i]
		if i == rates-1 || t.len == 0 {
			continue
		}
		if at, ok := t.find(h); ok {
			tats = ratetier.Carry(t.tats(at), rates)
			t.remove(at)
			return tats
		}
	}
	return tats
}

// drop forgets the bucket.
func (s *shard) drop(h hash) {
	for i := range s.tables {
		t := &s.tables[i]
		if at, ok := t.find(h); ok {
			t.remove(at)
		}
	}
}

func (s *shard) buckets() int {
	n := 0
	for i := range s.tables {
		n += s.tables[i].len
	}
	return n
}
