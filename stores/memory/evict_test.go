package memorystore_test

import (
	"strconv"
	"testing"
	"time"

	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func TestTheCapIsNeverExceeded(t *testing.T) {
	const (
		users  = 100_000
		bounds = 256 * 40 // 10 000, rounded up to a multiple of 256
	)
	town := newTown(t, memorystore.Config{MaxBuckets: 10_000})
	for i := range 100 {
		town.arrive([]string{"minute", "two", "four"}[i%3], strconv.Itoa(i)+"/", users/100)
		if stats := town.store.Stats(); stats.Buckets > bounds {
			t.Fatalf("%d buckets, want at most %d", stats.Buckets, bounds)
		}
	}
	stats := town.store.Stats()
	if stats.Buckets != bounds {
		t.Errorf("%d buckets in the end, want %d", stats.Buckets, bounds)
	}
	if gone := uint64(users - stats.Buckets); stats.Evictions != gone {
		t.Errorf("%d evictions, want %d, which is everybody else", stats.Evictions, gone)
	}
}

// One in twenty buckets is exhausted. That a sample has nothing else, so that one of
// them goes, happens once in 10^20 times.
func TestAFloodOfNewUsersFreesNobody(t *testing.T) {
	const buckets, exhausted = 10_240, 512
	for _, tier := range []string{"minute", "two", "four"} {
		town := newTown(t, memorystore.Config{MaxBuckets: buckets})
		for i := range exhausted {
			town.take(tier, "exhausted-"+strconv.Itoa(i), 10)
		}
		town.arrive(tier, "flood-", 4*buckets)
		for i := range exhausted {
			if d := town.take(tier, "exhausted-"+strconv.Itoa(i), 1); d.Allowed {
				t.Errorf("tier %s: exhausted user %d was let through", tier, i)
			}
		}
	}
}

// The users of each round are as many as a quarter of the cap, so that no shard is
// full of them.
func TestFullBucketsGoFirst(t *testing.T) {
	const buckets = 256 * 40 // which is reached before a table is to grow, and purged for that
	town := newTown(t, memorystore.Config{
		MaxBuckets: buckets,
		OnEvict:    func(e memorystore.Eviction) { t.Errorf("evicted one that would be full in %v", e.FullIn) },
	})
	town.take("hour", "ana", 10)
	for i := range 20 {
		town.arrive("minute", strconv.Itoa(i)+"/", buckets/4)
		town.clock.Advance(6 * time.Second)
	}
	if d := town.take("hour", "ana", 1); d.Allowed {
		t.Error("a bucket in use was forgotten")
	}
	if stats := town.store.Stats(); stats.Evictions != 0 {
		t.Errorf("%d evictions, want 0", stats.Evictions)
	}
}

func TestEvictionsAreTold(t *testing.T) {
	const users = 2000
	var town *town
	told := 0
	town = newTown(t, memorystore.Config{MaxBuckets: 1, OnEvict: func(e memorystore.Eviction) {
		told++
		if e.FullIn != 6*time.Second {
			t.Errorf("one that would be full in %v, want 6s", e.FullIn)
		}
		if stats := town.store.Stats(); stats.Evictions != uint64(told) { // as outside any lock
			t.Errorf("%d evictions, want %d", stats.Evictions, told)
		}
	}})
	town.arrive("minute", "user-", users)
	if stats := town.store.Stats(); told == 0 || told != users-stats.Buckets {
		t.Errorf("%d told, %d of %d left", told, stats.Buckets, users)
	}
}
