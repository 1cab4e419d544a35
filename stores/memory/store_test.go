package memorystore_test

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"
	"weak"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/gcra"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// town is a store with users, on a clock.
type town struct {
	*testing.T
	store   *memorystore.Store
	limiter *ratetier.Limiter
	clock   *clocktest.Clock
}

func newTown(t *testing.T, config memorystore.Config) *town {
	t.Helper()
	store, err := memorystore.NewWith(config)
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktest.New(time.Unix(1_800_000_000, 0))
	return &town{t, store, ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{
			"minute": ratetier.PerMinute(10),
			"hour":   ratetier.PerHour(10),
			"two":    ratetier.PerMinute(10).And(ratetier.PerDay(100)),
			"four":   ratetier.PerSecond(1).Burst(10).And(ratetier.PerMinute(10)).And(ratetier.PerHour(10)).And(ratetier.PerDay(10)),
		},
		Clock: clock,
	})), clock}
}

// arrive has new users take 1 each.
func (t *town) arrive(tier, name string, users int) {
	t.Helper()
	for i := range users {
		if d := t.take(tier, name+strconv.Itoa(i), 1); !d.Allowed {
			t.Fatalf("new user %d: %v", i, d.Outcome)
		}
	}
}

func (t *town) take(tier, user string, cost int64) ratetier.Decision {
	return t.limiter.Take(t.Context(), ratetier.Identity{User: user, Tier: tier}, cost)
}

func TestNewWithSaysWhatIsWrong(t *testing.T) {
	_, err := memorystore.NewWith(memorystore.Config{MaxBuckets: -1})
	const want = "memorystore: MaxBuckets -1: must be positive, or 0 for 1048576"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestAnyPositiveCapWorks(t *testing.T) {
	for _, maxBuckets := range []int{1, 255, 257, 1_000_000, 50_000_000, math.MaxInt32, math.MaxInt} {
		town := newTown(t, memorystore.Config{MaxBuckets: maxBuckets})
		town.take("minute", "ana", 10)
		if town.take("minute", "ana", 1).Allowed {
			t.Errorf("a cap of %d: an empty bucket was forgotten", maxBuckets)
		}
	}
}

func TestAUserHasOneBucketWhateverTheRates(t *testing.T) {
	store := memorystore.New()
	limits := []gcra.Limit{
		{Interval: int64(6 * time.Second), Offset: int64(time.Minute)},
		{Interval: int64(6 * time.Minute), Offset: int64(time.Hour)},
		{Interval: int64(time.Hour), Offset: int64(10 * time.Hour)},
		{Interval: int64(time.Hour), Offset: int64(24 * time.Hour)},
	}
	for _, rates := range []int{1, 2, 3, 4, 2, 1, 4, 3} {
		request := ratetier.Request{Key: ratetier.Key{Tier: "a", User: "ana"}, Mode: ratetier.ModeCharge, Limits: limits[:rates], Cost: 1, Now: 1}
		if err := store.Apply(t.Context(), &request, new(ratetier.Result)); err != nil {
			t.Fatal(err)
		}
		if stats := store.Stats(); stats.Buckets != 1 {
			t.Errorf("with %d rates: %d buckets, want 1", rates, stats.Buckets)
		}
	}
}

func TestBucketsOfSeveralRates(t *testing.T) {
	town := newTown(t, memorystore.Config{})
	for _, tier := range []string{"two", "four"} {
		town.take(tier, "ana", 10)
		if d := town.take(tier, "ana", 1); d.Outcome != ratetier.OutcomeLimited {
			t.Errorf("%s: %v, want limited", tier, d.Outcome)
		}
		town.arrive(tier, "user-", 5000) // makes its tables grow
		if d := town.take(tier, "ana", 1); d.Outcome != ratetier.OutcomeLimited {
			t.Errorf("%s, among many: %v, want limited", tier, d.Outcome)
		}
	}
	if stats, want := town.store.Stats(), (memorystore.Stats{Buckets: 10_002}); stats != want {
		t.Errorf("stats %+v, want %+v", stats, want)
	}
}

func TestAUserIsNotKeptByName(t *testing.T) {
	town := newTown(t, memorystore.Config{})
	name := make([]byte, 100)
	kept := weak.Make(&name[0])
	town.take("minute", unsafe.String(&name[0], len(name)), 10)
	name = nil
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the user's string is still in memory")
	}
	if stats := town.store.Stats(); stats.Buckets != 1 {
		t.Errorf("%d buckets, want 1", stats.Buckets)
	}
}

func TestThereAreNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	town := newTown(t, memorystore.Config{MaxBuckets: 1000})
	town.arrive("minute", "user-", 5000)
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

func TestACheckAllocatesNothing(t *testing.T) {
	store := memorystore.New()
	minute, day := gcra.Limit{Interval: 1, Offset: int64(time.Minute)}, gcra.Limit{Interval: 1, Offset: int64(24 * time.Hour)}
	for _, limits := range [][]gcra.Limit{{minute}, {minute, day}, {minute, minute, minute, day}} {
		for _, cost := range []int64{0, 1, minute.Offset} { // the last is refused
			request := ratetier.Request{
				Key: ratetier.Key{Tier: strconv.Itoa(len(limits)), User: "ana"}, Limits: limits, Cost: cost, Now: 1_800_000_000e9,
			}
			var result ratetier.Result
			allocs := testing.AllocsPerRun(100, func() {
				result = ratetier.Result{}
				if err := store.Apply(context.Background(), &request, &result); err != nil {
					t.Error(err)
				}
			})
			if allocs != 0 {
				t.Errorf("%d rates, cost %d: %v allocations, want 0", len(limits), cost, allocs)
			}
		}
	}
}

// All methods at once, in a store so small that users push each other out.
func TestConcurrentUseAtTheCap(t *testing.T) {
	var told struct {
		sync.Mutex
		evictions uint64
	}
	town := newTown(t, memorystore.Config{MaxBuckets: 512, OnEvict: func(memorystore.Eviction) {
		told.Lock()
		defer told.Unlock()
		told.evictions++
	}})
	tiers := []string{"minute", "hour", "two", "four"}
	var goroutines sync.WaitGroup
	for g := range 8 {
		goroutines.Go(func() {
			for i := range 2000 {
				id := ratetier.Identity{User: strconv.Itoa(i * (1 + g%2)), Tier: tiers[(i+g)%len(tiers)]}
				town.limiter.Take(t.Context(), id, 1)
				switch i % 100 {
				case 10:
					town.clock.Advance(time.Second)
				case 20:
					if err := town.limiter.Reset(t.Context(), id); err != nil {
						t.Error(err)
					}
				case 30:
					if stats := town.store.Stats(); stats.Buckets > 512 {
						t.Errorf("%d buckets, want at most 512", stats.Buckets)
					}
				}
			}
		})
	}
	goroutines.Wait()
	if stats := town.store.Stats(); stats.Evictions != told.evictions || told.evictions == 0 {
		t.Errorf("%d evictions, %d told, want the same, and some", stats.Evictions, told.evictions)
	}
}

// A request whose goroutine was held up after it had read the clock gives nothing back.
func TestALateRequestGivesNothingBack(t *testing.T) {
	const late = int64(200 * time.Millisecond)
	for _, limits := range [][]gcra.Limit{
		{{Interval: 2e8, Offset: 2e9}},
		{{Interval: 2e8, Offset: 2e9}, {Interval: 1e9, Offset: 60e9}},
	} {
		for _, mode := range []ratetier.Mode{ratetier.ModeTake, ratetier.ModeCharge} {
			store, now, admitted := memorystore.New(), int64(1_800_000_000e9), 0
			ask := func(mode ratetier.Mode, now int64) {
				request := ratetier.Request{Mode: mode, Key: ratetier.Key{Tier: "free", User: "ana"}, Limits: limits, Cost: 1, Now: now}
				var result ratetier.Result
				if err := store.Apply(t.Context(), &request, &result); err != nil {
					t.Fatal(err)
				}
				if mode == ratetier.ModeTake && result.Allowed {
					admitted++
				}
			}
			for range 20 {
				ask(ratetier.ModeTake, now)
			}
			for range 20 {
				ask(mode, now-late)
				ask(ratetier.ModeTake, now)
			}
			if admitted != 10 {
				t.Errorf("%d rates, %v: %d of 10 admitted at one instant", len(limits), mode, admitted)
			}
		}
	}
}
