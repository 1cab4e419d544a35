package memorystore

import (
	"sync"
	"sync/atomic"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// shard is the part of the buckets that one lock guards.
type shard struct {
	mu     sync.Mutex
	tables [ratetier.MaxRates]table // by number of rates, less one

	max       int
	hand      int   // where to look next for a bucket to evict
	nextFull  int64 // no bucket is full before this
	evictions uint64

	_ [24]byte // makes it whole cache lines, none of which two shards share
}

func (s *shard) init(maxBuckets int) {
	s.max = maxBuckets
	for i := range s.tables {
		s.tables[i].rates = i + 1
	}
}

// take is apply without the lock, for what nearly every check is: a take from a bucket
// of one rate that is there. It returns ok false, with nothing done, for all others.
func (s *shard) take(h ratetier.Hash, limit gcra.Limit, cost, now int64) (used int64, allowed, ok bool) {
	array := s.tables[0].array.Load()
	at, ok := array.find(h)
	if !ok {
		return 0, false, false
	}
	stored := &array.slot(at)[header]
	for {
		was := atomic.LoadInt64(stored)
		if was == gone {
			return 0, false, false
		}
		is, used, allowed := limit.Take(was, now, cost)
		if is < was {
			return 0, false, false // a bucket that is full sooner is to be noticed
		}
		if is == was || atomic.CompareAndSwapInt64(stored, was, is) {
			return used, allowed, true
		}
	}
}

// apply decides one request. It returns for how long the bucket that had to make
// room for a new one would have been in use, 0 if none had to.
func (s *shard) apply(h ratetier.Hash, request *ratetier.Request, result *ratetier.Result) time.Duration {
	rates := len(request.Limits)
	t := &s.tables[rates-1]
	array := t.array.Load()
	if at, ok := array.find(h); ok {
		for {
			was, _ := array.load(at)
			is := was
			request.Apply(is[:rates], result)
			if is == was || array.replace(at, &was, &is) {
				s.nextFull = min(s.nextFull, is.full())
				return 0
			}
			*result = ratetier.Result{}
		}
	}
	bucket := s.carry(h, rates)
	request.Apply(bucket[:rates], result)
	full := bucket.full()
	if full <= request.Now {
		return 0
	}
	evicted := s.makeRoom(request.Now)
	t.insert(h, &bucket, request.Now)
	s.nextFull = min(s.nextFull, full)
	return evicted
}

// carry returns the TATs that the bucket starts with, and drops what there was of
// it under another number of rates.
func (s *shard) carry(h ratetier.Hash, rates int) (bucket tats) {
	for i := range s.tables {
		t := &s.tables[i]
		if i == rates-1 || t.live == 0 {
			continue
		}
		if at, ok := t.array.Load().find(h); ok {
			last := t.remove(at)
			return ratetier.Carry(last[:t.rates], rates)
		}
	}
	return bucket
}

// drop forgets the bucket.
func (s *shard) drop(h ratetier.Hash) {
	for i := range s.tables {
		t := &s.tables[i]
		if at, ok := t.array.Load().find(h); ok {
			t.remove(at)
		}
	}
}

func (s *shard) buckets() int {
	n := 0
	for i := range s.tables {
		n += s.tables[i].live
	}
	return n
}
