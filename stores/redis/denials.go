package redisstore

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

const (
	// maxDenials bounds the denials remembered, at some 250 bytes each. It is a power
	// of two.
	maxDenials = 1 << 14
	// denialAge is for how long a denial is remembered: a refund elsewhere is seen then.
	denialAge = time.Second
)

// denials remembers of buckets that refused a take how far they were used, so that Redis
// need not be asked while it would refuse as well. A bucket is filled by nothing but time
// and what clears the memory of it here, or is seen late when it is done elsewhere.
//
// The server read its clock after the check was sent, so by reckoning from when it was
// sent no more than Redis would let through is refused. And its answer came after that,
// so by reckoning from when it came nobody is told to wait too short a time.
//
// There is one slot for a hash; a denial takes the place of another. No method waits.
type denials struct {
	seeds [2]maphash.Seed
	now   func() time.Duration // monotonic
	slots []slot
	hits  atomic.Uint64
}

// slot holds one denial. It counts how often it was cleared: a denial of before does not
// hold any more, nor does one that was on its way meanwhile.
type slot struct {
	epoch  atomic.Uint64
	denial atomic.Pointer[denial]
}

// denial is an answer, and never changes.
type denial struct {
	bucket         bucketHash
	epoch          uint64 // of the slot when the check was sent
	limits         [ratetier.MaxRates]gcra.Limit
	rates          int
	used           [ratetier.MaxRates]int64
	sent, received time.Duration
}

// bucketHash stands for a bucket.
type bucketHash struct{ hi, lo uint64 }

func newDenials() *denials {
	start := time.Now()
	return &denials{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		now:   func() time.Duration { return time.Since(start) },
		slots: make([]slot, maxDenials),
	}
}

// hash returns what stands for the bucket. The parts are hashed one by one, so that
// moving characters from one to the other makes another hash.
func (d *denials) hash(key *ratetier.Key) bucketHash {
	h := bucketHash{
		hi: maphash.String(d.seeds[0], key.User) ^ bits.RotateLeft64(maphash.String(d.seeds[0], key.Tier), 1),
		lo: maphash.String(d.seeds[1], key.User) ^ bits.RotateLeft64(maphash.String(d.seeds[1], key.Tier), 1),
	}
	if key.Anonymous {
		h.lo = ^h.lo
	}
	return h
}

func (d *denials) slot(h bucketHash) *slot { return &d.slots[h.hi%maxDenials] }

// repeat gives the answer if a remembered denial is one to the request, at that time.
func (d *denials) repeat(h bucketHash, now time.Duration, request *ratetier.Request, result *ratetier.Result) bool {
	slot := d.slot(h)
	known := slot.denial.Load()
	if known == nil || known.bucket != h || known.epoch != slot.epoch.Load() || !slices.Equal(known.limits[:known.rates], request.Limits) {
		return false
	}
	if now < known.received || now-known.sent >= denialAge || known.fits(now, request.Cost) {
		return false
	}
	for i := range known.rates {
		result.Used[i] = max(0, known.used[i]-int64(now-known.received))
	}
	d.hits.Add(1)
	return true
}

// fits tells whether the cost may fit all rates at that time.
func (d *denial) fits(now time.Duration, cost int64) bool {
	for i, limit := range d.limits[:d.rates] {
		if limit.Wait(max(0, d.used[i]-int64(now-d.sent)), cost) > 0 {
			return false
		}
	}
	return true
}

// remember keeps an answer to a take that was sent when the slot was at that epoch.
func (d *denials) remember(h bucketHash, epoch uint64, sent time.Duration, request *ratetier.Request, result *ratetier.Result) {
	known := &denial{
		bucket: h, epoch: epoch, rates: len(request.Limits), used: result.Used,
		sent: sent, received: d.now(),
	}
	copy(known.limits[:], request.Limits)
	d.slot(h).denial.Store(known)
}

// clear forgets what is remembered of the bucket.
func (d *denials) clear(h bucketHash) { d.slot(h).epoch.Add(1) }
