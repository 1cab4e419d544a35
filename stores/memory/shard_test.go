package memorystore

import (
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// What makes a bucket full sooner than it was to be is noticed, or else one in use
// would go while full ones stay.
func TestBucketsThatAreFullSoonerGoFirst(t *testing.T) {
	const (
		room = 4
		now  = int64(1_800_000_000e9)
		soon = int64(10 * time.Second)
		day  = int64(24 * time.Hour)
	)
	long, short := gcra.Limit{Interval: 1, Offset: day}, gcra.Limit{Interval: 1, Offset: soon}
	for _, test := range []struct {
		name    string
		request ratetier.Request
	}{
		{"refunded", ratetier.Request{Mode: ratetier.ModeRefund, Limits: []gcra.Limit{long}, Cost: day - soon, Now: now}},
		{"quota lowered", ratetier.Request{Limits: []gcra.Limit{short}, Now: now}},
		{"clock set back", ratetier.Request{Limits: []gcra.Limit{long}, Now: now + soon - day}},
	} {
		var s shard
		s.init(room)
		apply := func(user int, request ratetier.Request) {
			s.apply(ratetier.Hash{Lo: uint64(user + 1)}, &request, new(ratetier.Result))
		}
		empty := ratetier.Request{Mode: ratetier.ModeCharge, Limits: []gcra.Limit{long}, Cost: day, Now: now}
		for user := range room + 1 {
			apply(user, empty)
		}
		if s.evictions != 1 { // it looked for full ones, and found none
			t.Errorf("%s: %d evictions for one too many", test.name, s.evictions)
		}
		for user := range room + 1 {
			if _, ok := s.tables[0].array.Load().find(ratetier.Hash{Lo: uint64(user + 1)}); ok {
				apply(user, test.request)
			}
		}
		empty.Now += soon + int64(gcra.Lateness)
		for user := range room {
			apply(100+user, empty)
		}
		if s.evictions != 1 {
			t.Errorf("%s: %d evictions while others were full", test.name, s.evictions-1)
		}
	}
}

func TestTablesShrinkWhenUsersHaveLeft(t *testing.T) {
	const most, left = 100_000, 100
	now := int64(1_800_000_000e9)
	limits := []gcra.Limit{{Interval: 1, Offset: int64(time.Second)}}
	var s shard
	s.init(most)
	users := uint64(0)
	arrive := func(n int) {
		for range n {
			users++
			request := ratetier.Request{Limits: limits, Cost: 1, Now: now}
			s.apply(ratetier.Hash{Lo: users * 0x9e3779b97f4a7c15}, &request, new(ratetier.Result))
		}
	}
	arrive(most)
	if slots := s.slots(); slots > most*16/7 {
		t.Errorf("%d slots for %d users", slots, most)
	}
	for range 2 * most / left {
		now += int64(time.Second)
		arrive(left)
	}
	if slots := s.slots(); slots > 1024 {
		t.Errorf("%d slots for %d users at a time, want few", slots, left)
	}
}

// A check moves a TAT without the lock, while others with it move the bucket into a new
// array, again and again. No charge is lost, and none lands in another bucket.
func TestNoChargeIsLostWhileATableIsRebuilt(t *testing.T) {
	const charges = 20_000
	now, limits := int64(1_800_000_000e9), []gcra.Limit{{Interval: 1, Offset: int64(time.Hour)}}
	var s shard
	s.init(1 << 20)
	apply := func(h ratetier.Hash, request ratetier.Request) (result ratetier.Result) {
		if used, allowed, ok := s.take(h, limits[0], request.Cost, request.Now); ok {
			return ratetier.Result{Allowed: allowed, Used: [ratetier.MaxRates]int64{used}}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.apply(h, &request, &result)
		return result
	}
	var callers sync.WaitGroup
	for caller := range 4 {
		callers.Go(func() {
			for i := range charges {
				apply(ratetier.Hash{Lo: uint64(1 + caller%2)}, ratetier.Request{Limits: limits, Cost: 1, Now: now})
				if caller == 0 { // users who are gone by the next purge
					apply(ratetier.Hash{Lo: uint64(3 + i)}, ratetier.Request{Limits: limits, Cost: 1, Now: now - 10})
				}
			}
		})
	}
	callers.Wait()
	for user := range uint64(2) {
		used := apply(ratetier.Hash{Lo: 1 + user}, ratetier.Request{Limits: limits, Now: now}).Used[0]
		if used != 2*charges {
			t.Errorf("user %d was charged %d, want %d", user, used, 2*charges)
		}
	}
}

// The documentation of MaxBuckets has these numbers.
func TestBucketsTakeAsMuchMemoryAsTheDocumentationSays(t *testing.T) {
	for rates := 1; rates <= ratetier.MaxRates; rates++ {
		tbl := table{rates: rates}
		least, most := 18.0+9*float64(rates-1), 43+21.4*float64(rates-1)
		for user := range uint64(20_000) {
			bucket := tats{2, 2, 2, 2}
			tbl.insert(ratetier.Hash{Lo: (1 + user) * 0x9e3779b97f4a7c15}, &bucket, 1)
			if tbl.live < 100 {
				continue // the smallest tables are emptier
			}
			if bytes := float64(8*len(tbl.array.Load().words)) / float64(tbl.live); bytes < least || bytes > most {
				t.Fatalf("%d rates, %d buckets: %.1f bytes each, want %v to %v", rates, tbl.live, bytes, least, most)
			}
		}
	}
}
