package memorystore_test

import (
	"strconv"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// A store so small that collecting floods it keeps its promises to those whom the
// flood must not touch.
func TestConformance(t *testing.T) {
	const buckets = 256 * 8
	var store *memorystore.Store
	storetest.Run(t, storetest.Subject{
		New: func() (_ ratetier.Store, err error) {
			store, err = memorystore.NewWith(memorystore.Config{MaxBuckets: buckets})
			return store, err
		},
		Collect: func(now time.Time) { floodAndEbb(t, store, now, 2*buckets) },
		Buckets: func() (int, error) { return store.Stats().Buckets, nil },
	})
}

func BenchmarkApply(b *testing.B) {
	storetest.Bench(b, storetest.Subject{New: func() (ratetier.Store, error) { return memorystore.New(), nil }})
}

// floodAndEbb has users come who each use a nanosecond of a bucket, and go.
func floodAndEbb(t *testing.T, store *memorystore.Store, now time.Time, users int) {
	t.Helper()
	request := ratetier.Request{Limits: []gcra.Limit{{Interval: 1, Offset: int64(time.Minute)}}, Cost: 1, Now: now.UnixNano()}
	key := func(i int) ratetier.Key { return ratetier.Key{Tier: "flood", User: strconv.Itoa(i)} }
	for i := range users {
		request.Key = key(i)
		var result ratetier.Result
		if err := store.Apply(t.Context(), &request, &result); err != nil || !result.Allowed {
			t.Errorf("user %d of the flood: %v, error %v", i, result, err)
		}
	}
	for i := range users {
		if err := store.Reset(t.Context(), key(i)); err != nil {
			t.Error(err)
		}
	}
}
