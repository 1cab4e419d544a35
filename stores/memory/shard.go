package memorystore

import (
	"sync"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
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
// of one rate that is there. It returns false, with nothing done, for all others.
func (s *shard) take(h hash, request *ratetier.Request, result *ratetier.Result) bool {
	if len(request.Limits) != 1 || request.Mode != ratetier.ModeTake {
		return false
	}
	array := s.tables[0].array.Load()
	at, ok := array.find(h)
	if !ok {
		return false
	}
	stored := &array.slot(at)[header]
	for {
		was := stored.Load()
		if was == gone {
			return false
		}
		tats := [1]int64{was}
		request.Apply(tats[:], result)
		if is := tats[0]; is == was || is > was && stored.CompareAndSwap(was, is) {
			return true
		} else if is < was {
			*result = ratetier.Result{}
			return false // a bucket that is full sooner is to be noticed
		}
		*result = ratetier.Result{}
	}
}

// apply decides one request. It returns for how long the bucket that had to make
// room for a new one would have been in use, 0 if none had to.
func (s *shard) apply(h hash, request *ratetier.Request, result *ratetier.Result) time.Duration {
	rates := len(request.Limits)
	t := &s.tables[rates-1]
	array := t.array.Load()
	if at, ok := array.find(h); ok {
		for {
			was := array.load(at)
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
func (s *shard) carry(h hash, rates int) (bucket tats) {
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
func (s *shard) drop(h hash) {
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
