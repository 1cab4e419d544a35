package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
)

// mutants are broken stores, by the promise that each must be seen to break.
var mutants = map[string]map[string]subject{
	"ModeTake charges the cost if it fits all rates, else nothing": {
		"forgets the second rate": deciding(func(r *request, tats []int64, got *result) {
			one := *r
			one.Limits = r.Limits[:1]
			one.Apply(tats, got)
		}),
		"allows what does not fit": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			if !got.Allowed {
				got.Allowed = true
				chargeAll(r, r.Limits, tats, got)
			}
		}),
	},
	"ModeCharge charges the cost whether it fits or not, down to an empty bucket": {
		"refuses a charge that does not fit": deciding(func(r *request, tats []int64, got *result) {
			as := *r
			if r.Mode == ratetier.ModeCharge && r.Cost <= r.Limits[0].Offset/max(1, r.Limits[0].Interval) {
				as.Mode = ratetier.ModeTake
			}
			as.Apply(tats, got)
		}),
		"remembers a debt": deciding(func(r *request, tats []int64, got *result) {
			limit := r.Limits[0]
			used := limit.Used(tats[0], r.Now)
			r.Apply(tats, got)
			if r.Mode == ratetier.ModeCharge && r.Cost < 100 {
				got.Used[0] = used + r.Cost*limit.Interval
				tats[0] = r.Now + got.Used[0]
			}
		}),
		"overflows": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			if hour := int64(time.Hour); r.Mode == ratetier.ModeCharge && r.Cost > hour {
				got.Used[0] = r.Cost * r.Limits[0].Interval
				tats[0] = r.Now + got.Used[0]
			}
		}),
	},
	"ModeRefund gives the cost back, up to a full bucket": {
		"saves up refunds": around(func(next store) store {
			var mu sync.Mutex
			saved := map[ratetier.Key]int64{}
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				mu.Lock()
				defer mu.Unlock()
				mine := *r
				switch {
				case r.Mode == ratetier.ModeRefund:
					saved[clone(r.Key)] = r.Cost
				case r.Cost <= saved[r.Key]:
					mine.Cost = 0
				}
				return next.Apply(ctx, &mine, got)
			}}
		}),
		"ignores refunds": deciding(func(r *request, tats []int64, got *result) {
			peek := *r
			if r.Mode == ratetier.ModeRefund {
				peek.Cost = 0
			}
			peek.Apply(tats, got)
		}),
	},
	"In ModeCharge and ModeRefund, an Interval may be 0": {
		"divides by the interval": deciding(func(r *request, tats []int64, got *result) {
			for _, limit := range r.Limits {
				_ = limit.Burst()
			}
			r.Apply(tats, got)
		}),
	},
	"A request that is refused changes nothing, for any number of rates": {
		"charges what it refuses": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			if !got.Allowed {
				chargeAll(r, r.Limits, tats, got)
			}
		}),
		"charges the first rates of what a later one refuses": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			for i, limit := range r.Limits {
				if got.Allowed || r.Cost*limit.Interval > limit.Offset-got.Used[i] {
					return
				}
				chargeAll(r, r.Limits[:i+1], tats, got)
			}
		}),
		"begins its ban anew at each refusal": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			if !got.Allowed {
				tats[0] = r.Now + r.Limits[0].Offset
			}
		}),
	},
	"A peek, which is a take of cost 0, is always allowed, and creates nothing": {
		"creates what was peeked at": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			for i := range tats {
				tats[i] = max(tats[i], r.Now)
			}
		}),
		"counts what was peeked at": counted(),
		"refuses a peek at an empty bucket": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			got.Allowed = got.Allowed && (r.Mode != ratetier.ModeTake || r.Cost > 0 || got.Used[0] < r.Limits[0].Offset)
		}),
	},
	"Used is the use of each of the request's limits after it, in nanoseconds": {
		"counts in microseconds": writing(func(tats []int64) []int64 {
			for i := range tats {
				tats[i] -= tats[i] % int64(time.Microsecond)
			}
			return tats
		}),
		"counts in floating point": writing(func(tats []int64) []int64 {
			for i := range tats {
				tats[i] = int64(float64(tats[i]))
			}
			return tats
		}),
		"rounds the interval up to microseconds": deciding(func(r *request, tats []int64, got *result) {
			rounded := *r
			rounded.Limits = slices.Clone(r.Limits)
			for i := range rounded.Limits {
				limit := &rounded.Limits[i]
				limit.Interval = (limit.Interval + 999) / 1000 * 1000
			}
			rounded.Apply(tats, got)
		}),
	},
	"A bucket never asked for, or reset, is full": {
		"does not reset": resetting(func(*bent, ratetier.Key) {}),
		"resets too many": resetting(func(s *bent, key ratetier.Key) {
			for other := range s.buckets {
				if other.User == key.User {
					delete(s.buckets, other)
				}
			}
		}),
		"resets the first rate only": resetting(func(s *bent, key ratetier.Key) {
			if tats := s.buckets[key]; tats != nil {
				tats[0] = 0
			}
		}),
		"blocks what was reset": resetting(func(s *bent, key ratetier.Key) {
			s.buckets[key] = []int64{1 << 62}
		}),
	},
	"A bucket is kept until it is full again": {
		"expires early":               expiring(func(used []int64) int64 { return slices.Max(used) / 2 }, true),
		"expires with its first rate": expiring(func(used []int64) int64 { return used[0] }, true),
		"rounds its expiry down to milliseconds": expiring(func(used []int64) int64 {
			return slices.Max(used) / int64(time.Millisecond) * int64(time.Millisecond)
		}, true),
		"keeps the expiry of the first request": expiring(slices.Max[[]int64], false),
		"collects what is in use":               collecting(),
	},
	"What it is kept under is all three fields of the Key, never confused": {
		"joins the fields with a colon": keyed(func(key ratetier.Key) ratetier.Key {
			return ratetier.Key{User: key.Tier + ":" + key.User, Anonymous: key.Anonymous}
		}),
		"ignores the tier":         keyed(func(key ratetier.Key) ratetier.Key { key.Tier = ""; return key }),
		"ignores who is anonymous": keyed(func(key ratetier.Key) ratetier.Key { key.Anonymous = false; return key }),
		"marks who is anonymous with a tier": keyed(func(key ratetier.Key) ratetier.Key {
			if key.Anonymous {
				key.Tier, key.Anonymous = "ip", false
			}
			return key
		}),
		"folds case":                    keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.ToLower(key.User); return key }),
		"trims space":                   keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.TrimSpace(key.User); return key }),
		"cuts long users":               keyed(func(key ratetier.Key) ratetier.Key { key.User = key.User[:min(len(key.User), 255)]; return key }),
		"mends invalid text":            keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.ToValidUTF8(key.User, "?"); return key }),
		"hashes what is between braces": keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.Trim(key.User, "{}"); return key }),
	},
	"A use above a full bucket counts as an empty one": {
		"does not clamp": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(slices.Clone(tats), got)
			for i, limit := range r.Limits {
				if used := tats[i] - r.Now; r.Mode == ratetier.ModeTake && used > limit.Offset {
					got.Allowed = r.Cost == 0
					return
				}
			}
			r.Apply(tats, got)
		}),
		"is full after a change of quota": deciding(func(r *request, tats []int64, got *result) {
			for i, limit := range r.Limits {
				if tats[i]-r.Now > limit.Offset {
					tats[i] = 0
				}
			}
			r.Apply(tats, got)
		}),
	},
	"So a request that comes late gives nothing back": {
		"takes it for a clock set back": deciding(func(r *request, tats []int64, got *result) {
			for i, limit := range r.Limits {
				tats[i] = min(tats[i], r.Now+limit.Offset)
			}
			r.Apply(tats, got)
		}),
	},
	"a clock set back or a lowered quota costs nobody more than one refill and that": {
		"clamps without writing it down": deciding(func(r *request, tats []int64, got *result) {
			read := slices.Clone(tats)
			if r.Apply(read, got); got.Allowed && r.Cost > 0 {
				copy(tats, read)
			}
		}),
	},
	"A request with a different number of rates than the bucket was last used with finds the highest use of them in each": {
		"starts anew with other rates": carrying(func(tats []int64, rates int) []int64 {
			if len(tats) != rates {
				return make([]int64, rates)
			}
			return tats
		}),
		"has a further rate start full": carrying(func(tats []int64, rates int) []int64 {
			return slices.Concat(tats, make([]int64, ratetier.MaxRates))[:rates]
		}),
		"carries over the lowest use": carrying(func(tats []int64, rates int) []int64 {
			if len(tats) != rates {
				return slices.Repeat([]int64{slices.Min(tats)}, rates)
			}
			return tats
		}),
	},
	"However many callers share a key, in one process or many, the outcome is that of some order of their requests, one after the other": {
		"checks, then acts": applying(func(s *bent, r *request, got *result) {
			look := *r
			look.Cost = 0
			s.mu.Lock()
			s.whole(&look, got)
			s.mu.Unlock()
			if r.Mode == ratetier.ModeTake {
				for i, limit := range r.Limits {
					got.Allowed = got.Allowed && r.Cost*limit.Interval <= limit.Offset-got.Used[i]
				}
			}
			runtime.Gosched()
			if act := *r; got.Allowed {
				if act.Mode == ratetier.ModeTake {
					act.Mode = ratetier.ModeCharge
				}
				s.mu.Lock()
				s.whole(&act, got)
				s.mu.Unlock()
			}
		}),
		"reads, then writes": applying(func(s *bent, r *request, got *result) {
			own := bent{buckets: map[ratetier.Key][]int64{}}
			key := clone(r.Key)
			s.mu.Lock()
			if tats, ok := s.buckets[key]; ok {
				own.buckets[key] = tats
			}
			s.mu.Unlock()
			own.whole(r, got)
			runtime.Gosched()
			s.mu.Lock()
			defer s.mu.Unlock()
			if tats, ok := own.buckets[key]; ok {
				s.buckets[key] = tats
			}
		}),
		"shares nothing with its peer": subject{
			New:  func() (store, error) { return storetest.Reference(), nil },
			Peer: func() (store, error) { return storetest.Reference(), nil },
		},
	},
	"All methods are safe for concurrent use": {
		"has one result for all": around(func(next store) store {
			var mu sync.Mutex
			var last result
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				var mine result
				err := next.Apply(ctx, r, &mine)
				mu.Lock()
				last = mine
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				*got = last
				mu.Unlock()
				return err
			}}
		}),
	},
	"Nothing of the request or the result is kept after Apply returns": {
		"keeps the caller's strings": keyed(func(key ratetier.Key) ratetier.Key { return key }),
		"keeps the caller's limits": around(func(next store) store {
			var mu sync.Mutex
			kept := map[ratetier.Key][]gcra.Limit{}
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				mu.Lock()
				defer mu.Unlock()
				mine := *r
				if limits := kept[r.Key]; len(limits) == len(r.Limits) && r.Mode == ratetier.ModeTake {
					mine.Limits = limits
				} else {
					kept[clone(r.Key)] = r.Limits
				}
				return next.Apply(ctx, &mine, got)
			}}
		}),
		"writes to the result before": around(func(next store) store {
			var mu sync.Mutex
			var before *result
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				mu.Lock()
				defer mu.Unlock()
				err := next.Apply(ctx, r, got)
				if r.Key.User != "ana" { // whose requests come one by one
					return err
				}
				if before != nil && r.Mode == ratetier.ModeRefund {
					*before = *got
				}
				before = got
				return err
			}}
		}),
	},
	"A context that is done charges nothing, and its error is returned": {
		"charges although the context is done": around(func(next store) store {
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				return errors.Join(next.Apply(ctx, r, got), ctx.Err())
			}}
		}),
		"has an error of its own for a context that is done": around(func(next store) store {
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				if ctx.Err() != nil {
					return errors.New("gave up")
				}
				return next.Apply(ctx, r, got)
			}}
		}),
		"lets everybody pass once the context is done": around(func(next store) store {
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				if ctx.Err() != nil {
					got.Allowed = true
					return nil
				}
				return next.Apply(ctx, r, got)
			}}
		}),
	},
	"Errors name neither keys nor users": {
		"names the user in its error": failing(func(r *request, _ *result) error {
			return fmt.Errorf("GET trt:%s: refused", r.Key.User)
		}),
		"names the tier in its error": failing(func(r *request, _ *result) error {
			return fmt.Errorf("GET trt:%s: refused", r.Key.Tier)
		}),
	},
	"Degraded tells that the store could not reach what instances share": {
		"makes up an answer when it fails": failing(func(_ *request, got *result) error {
			got.Allowed = true
			return nil
		}),
	},
	"Apply is the whole decision": {
		"is always degraded": deciding(func(r *request, tats []int64, got *result) {
			r.Apply(tats, got)
			got.Degraded = true
		}),
		"grants one more after an hour": deciding(func(r *request, tats []int64, got *result) {
			if tats[0] > 0 && r.Now-tats[0] > int64(time.Hour) && r.Mode == ratetier.ModeTake && r.Cost > 0 {
				peek := *r
				peek.Cost = 0
				peek.Apply(tats, got)
				return
			}
			r.Apply(tats, got)
		}),
	},
}

func TestAStoreWithPartsToBreakKeepsItsPromises(t *testing.T) {
	t.Run("writes always", func(t *testing.T) { storetest.Run(t, bend{}.subject()) })
	t.Run("writes what changed", func(t *testing.T) { storetest.Run(t, bend{lazy: true}.subject()) })
}

func TestBrokenStoresAreCaught(t *testing.T) {
	for promise, stores := range mutants {
		for name, subject := range stores {
			t.Run(name, func(t *testing.T) {
				if err := storetest.Check(t.Context(), subject); err == nil {
					t.Errorf("keeps %q", promise)
				} else if !slices.Contains(broken(err), promise) {
					t.Errorf("breaks other promises than %q:\n%v", promise, err)
				}
			})
		}
	}
}

func TestEveryCaseCatchesABrokenStore(t *testing.T) {
	for _, promise := range all(t) {
		if len(mutants[promise]) == 0 {
			t.Errorf("no store breaks %q", promise)
		}
	}
}
