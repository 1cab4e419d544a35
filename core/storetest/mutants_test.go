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

func TestAStoreWithPartsToBreakKeepsItsPromises(t *testing.T) {
	storetest.Run(t, bend{}.subject())
}

func TestBrokenStoresAreCaught(t *testing.T) {
	const (
		takes      = "ModeTake charges the cost if it fits all rates, else nothing"
		charges    = "ModeCharge charges the cost whether it fits or not, down to an empty bucket"
		refunds    = "ModeRefund gives the cost back, up to a full bucket"
		zero       = "In ModeCharge and ModeRefund, an Interval may be 0"
		refusals   = "A request that is refused changes nothing, for any number of rates"
		peeks      = "A peek, which is a take of cost 0, is always allowed, and creates nothing"
		precision  = "Used is the use of each of the request's limits after it, in nanoseconds"
		full       = "A bucket never asked for, or reset, is full"
		kept       = "A bucket is kept until it is full again"
		keys       = "What it is kept under is all three fields of the Key, never confused"
		above      = "A use above a full bucket counts as an empty one"
		clock      = "So a clock set back or a lowered quota costs nobody more than one refill"
		carried    = "A request with a different number of rates than the bucket was last used with finds the highest use of them in each"
		atomic     = "However many callers share a key, in one process or many, the outcome is that of some order of their requests, one after the other"
		concurrent = "All methods are safe for concurrent use"
		memory     = "Nothing of the request or the result is kept after Apply returns"
		contexts   = "A context that is done charges nothing, and its error is returned"
		secrets    = "Errors name neither keys nor users"
		local      = "Degraded tells that the store could not reach what instances share"
		whole      = "Apply is the whole decision"
	)
	for _, mutant := range []struct {
		name    string
		promise string
		subject storetest.Subject
	}{
		{"charges what it refuses", refusals, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			if !got.Allowed {
				chargeAll(r, r.Limits, tats, got)
			}
		}}.subject()},
		{"charges the first rates of what a later one refuses", refusals, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			for i, limit := range r.Limits {
				if got.Allowed || r.Cost*limit.Interval > limit.Offset-got.Used[i] {
					return
				}
				chargeAll(r, r.Limits[:i+1], tats, got)
			}
		}}.subject()},
		{"begins its ban anew at each refusal", refusals, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			if !got.Allowed {
				tats[0] = r.Now + r.Limits[0].Offset
			}
		}}.subject()},
		{"forgets the second rate", takes, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			one := *r
			one.Limits = r.Limits[:1]
			one.Apply(tats, got)
		}}.subject()},
		{"allows what does not fit", takes, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			if !got.Allowed {
				got.Allowed = true
				chargeAll(r, r.Limits, tats, got)
			}
		}}.subject()},
		{"refuses a charge that does not fit", charges, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			as := *r
			if r.Mode == ratetier.ModeCharge && r.Cost <= r.Limits[0].Offset/max(1, r.Limits[0].Interval) {
				as.Mode = ratetier.ModeTake
			}
			as.Apply(tats, got)
		}}.subject()},
		{"remembers a debt", charges, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			limit := r.Limits[0]
			used := limit.Used(tats[0], r.Now)
			r.Apply(tats, got)
			if r.Mode == ratetier.ModeCharge && r.Cost < 100 {
				got.Used[0] = used + r.Cost*limit.Interval
				tats[0] = r.Now + got.Used[0]
			}
		}}.subject()},
		{"overflows", charges, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			if hour := int64(time.Hour); r.Mode == ratetier.ModeCharge && r.Cost > hour {
				got.Used[0] = r.Cost * r.Limits[0].Interval
				tats[0] = r.Now + got.Used[0]
			}
		}}.subject()},
		{"saves up refunds", refunds, around(func(store ratetier.Store) ratetier.Store {
			var mu sync.Mutex
			saved := map[ratetier.Key]int64{}
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				mu.Lock()
				defer mu.Unlock()
				mine := *r
				switch {
				case r.Mode == ratetier.ModeRefund:
					saved[clone(r.Key)] = r.Cost
				case r.Cost <= saved[r.Key]:
					mine.Cost = 0
				}
				return store.Apply(ctx, &mine, got)
			}}
		})},
		{"ignores refunds", refunds, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			peek := *r
			if r.Mode == ratetier.ModeRefund {
				peek.Cost = 0
			}
			peek.Apply(tats, got)
		}}.subject()},
		{"divides by the interval", zero, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			for _, limit := range r.Limits {
				_ = limit.Burst()
			}
			r.Apply(tats, got)
		}}.subject()},
		{"creates what was peeked at", peeks, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			for i := range tats {
				tats[i] = max(tats[i], r.Now)
			}
		}}.subject()},
		{"counts what was peeked at", peeks, counted(bend{}.subject())},
		{"refuses a peek at an empty bucket", peeks, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(tats, got)
			got.Allowed = got.Allowed && (r.Mode != ratetier.ModeTake || r.Cost > 0 || got.Used[0] < r.Limits[0].Offset)
		}}.subject()},
		{"counts in microseconds", precision, bend{keep: func(tats []int64) []int64 {
			for i := range tats {
				tats[i] -= tats[i] % int64(time.Microsecond)
			}
			return tats
		}}.subject()},
		{"counts in floating point", precision, bend{keep: func(tats []int64) []int64 {
			for i := range tats {
				tats[i] = int64(float64(tats[i]))
			}
			return tats
		}}.subject()},
		{"rounds the interval up to microseconds", precision, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			rounded := *r
			rounded.Limits = slices.Clone(r.Limits)
			for i := range rounded.Limits {
				limit := &rounded.Limits[i]
				limit.Interval = (limit.Interval + 999) / 1000 * 1000
			}
			rounded.Apply(tats, got)
		}}.subject()},
		{"does not reset", full, bend{reset: func(*bent, ratetier.Key) {}}.subject()},
		{"resets too many", full, bend{reset: func(s *bent, key ratetier.Key) {
			for other := range s.buckets {
				if other.User == key.User {
					delete(s.buckets, other)
				}
			}
		}}.subject()},
		{"resets the first rate only", full, bend{reset: func(s *bent, key ratetier.Key) {
			if tats := s.buckets[key]; tats != nil {
				tats[0] = 0
			}
		}}.subject()},
		{"blocks what was reset", full, bend{reset: func(s *bent, key ratetier.Key) {
			s.buckets[key] = []int64{1 << 62}
		}}.subject()},
		{"expires early", kept, expiring(func(used []int64) int64 { return slices.Max(used) / 2 }, true)},
		{"expires with its first rate", kept, expiring(func(used []int64) int64 { return used[0] }, true)},
		{"rounds its expiry down to milliseconds", kept, expiring(func(used []int64) int64 {
			return slices.Max(used) / int64(time.Millisecond) * int64(time.Millisecond)
		}, true)},
		{"keeps the expiry of the first request", kept, expiring(slices.Max[[]int64], false)},
		{"collects what is in use", kept, collecting()},
		{"joins the fields with a colon", keys, keyed(func(key ratetier.Key) ratetier.Key {
			return ratetier.Key{User: key.Tier + ":" + key.User, Anonymous: key.Anonymous}
		})},
		{"ignores the tier", keys, keyed(func(key ratetier.Key) ratetier.Key { key.Tier = ""; return key })},
		{"ignores who is anonymous", keys, keyed(func(key ratetier.Key) ratetier.Key { key.Anonymous = false; return key })},
		{"marks who is anonymous with a tier", keys, keyed(func(key ratetier.Key) ratetier.Key {
			if key.Anonymous {
				key.Tier, key.Anonymous = "ip", false
			}
			return key
		})},
		{"folds case", keys, keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.ToLower(key.User); return key })},
		{"trims space", keys, keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.TrimSpace(key.User); return key })},
		{"cuts long users", keys, keyed(func(key ratetier.Key) ratetier.Key { key.User = key.User[:min(len(key.User), 255)]; return key })},
		{"mends invalid text", keys, keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.ToValidUTF8(key.User, "?"); return key })},
		{"hashes what is between braces", keys, keyed(func(key ratetier.Key) ratetier.Key { key.User = strings.Trim(key.User, "{}"); return key })},
		{"does not clamp", above, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			r.Apply(slices.Clone(tats), got)
			for i, limit := range r.Limits {
				if used := tats[i] - r.Now; r.Mode == ratetier.ModeTake && used > limit.Offset {
					got.Allowed = r.Cost == 0
					return
				}
			}
			r.Apply(tats, got)
		}}.subject()},
		{"clamps without writing it down", clock, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			read := slices.Clone(tats)
			if r.Apply(read, got); got.Allowed && r.Cost > 0 {
				copy(tats, read)
			}
		}}.subject()},
		{"is full after a change of quota", above, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			for i, limit := range r.Limits {
				if tats[i]-r.Now > limit.Offset {
					tats[i] = 0
				}
			}
			r.Apply(tats, got)
		}}.subject()},
		{"starts anew with other rates", carried, bend{carry: func(tats []int64, rates int) []int64 {
			if len(tats) != rates {
				return make([]int64, rates)
			}
			return tats
		}}.subject()},
		{"has a further rate start full", carried, bend{carry: func(tats []int64, rates int) []int64 {
			return slices.Concat(tats, make([]int64, ratetier.MaxRates))[:rates]
		}}.subject()},
		{"carries over the lowest use", carried, bend{carry: func(tats []int64, rates int) []int64 {
			if len(tats) != rates {
				return slices.Repeat([]int64{slices.Min(tats)}, rates)
			}
			return tats
		}}.subject()},
		{"checks, then acts", atomic, bend{apply: func(s *bent, r *ratetier.Request, got *ratetier.Result) {
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
		}}.subject()},
		{"reads, then writes", atomic, bend{apply: func(s *bent, r *ratetier.Request, got *ratetier.Result) {
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
		}}.subject()},
		{"shares nothing with its peer", atomic, storetest.Subject{
			New:  func() (ratetier.Store, error) { return storetest.Reference(), nil },
			Peer: func() (ratetier.Store, error) { return storetest.Reference(), nil },
		}},
		{"has one result for all", concurrent, around(func(store ratetier.Store) ratetier.Store {
			var mu sync.Mutex
			var last ratetier.Result
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				var mine ratetier.Result
				err := store.Apply(ctx, r, &mine)
				mu.Lock()
				last = mine
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				*got = last
				mu.Unlock()
				return err
			}}
		})},
		{"keeps the caller's strings", memory, keyed(func(key ratetier.Key) ratetier.Key { return key })},
		{"keeps the caller's limits", memory, around(func(store ratetier.Store) ratetier.Store {
			var mu sync.Mutex
			kept := map[ratetier.Key][]gcra.Limit{}
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				mu.Lock()
				defer mu.Unlock()
				mine := *r
				if limits := kept[r.Key]; len(limits) == len(r.Limits) && r.Mode == ratetier.ModeTake {
					mine.Limits = limits
				} else {
					kept[clone(r.Key)] = r.Limits
				}
				return store.Apply(ctx, &mine, got)
			}}
		})},
		{"writes to the result before", memory, around(func(store ratetier.Store) ratetier.Store {
			var mu sync.Mutex
			var before *ratetier.Result
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				mu.Lock()
				defer mu.Unlock()
				err := store.Apply(ctx, r, got)
				if r.Key.User != "ana" { // whose requests come one by one
					return err
				}
				if before != nil && r.Mode == ratetier.ModeRefund {
					*before = *got
				}
				before = got
				return err
			}}
		})},
		{"charges although the context is done", contexts, around(func(store ratetier.Store) ratetier.Store {
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				return errors.Join(store.Apply(ctx, r, got), ctx.Err())
			}}
		})},
		{"has an error of its own for a context that is done", contexts, around(func(store ratetier.Store) ratetier.Store {
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				if ctx.Err() != nil {
					return errors.New("gave up")
				}
				return store.Apply(ctx, r, got)
			}}
		})},
		{"lets everybody pass once the context is done", contexts, around(func(store ratetier.Store) ratetier.Store {
			return wrapper{store, func(ctx context.Context, r *ratetier.Request, got *ratetier.Result) error {
				if ctx.Err() != nil {
					got.Allowed = true
					return nil
				}
				return store.Apply(ctx, r, got)
			}}
		})},
		{"names the user in its error", secrets, failing(func(r *ratetier.Request, _ *ratetier.Result) error {
			return fmt.Errorf("GET trt:%s: refused", r.Key.User)
		})},
		{"names the tier in its error", secrets, failing(func(r *ratetier.Request, _ *ratetier.Result) error {
			return fmt.Errorf("GET trt:%s: refused", r.Key.Tier)
		})},
		{"makes up an answer when it fails", local, failing(func(_ *ratetier.Request, got *ratetier.Result) error {
			got.Allowed = true
			return nil
		})},
		{"grants one more after an hour", whole, bend{decide: func(r *ratetier.Request, tats []int64, got *ratetier.Result) {
			if tats[0] > 0 && r.Now-tats[0] > int64(time.Hour) && r.Mode == ratetier.ModeTake && r.Cost > 0 {
				peek := *r
				peek.Cost = 0
				peek.Apply(tats, got)
				return
			}
			r.Apply(tats, got)
		}}.subject()},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			err := storetest.Check(t.Context(), mutant.subject)
			if err == nil {
				t.Fatal("not caught")
			}
			if want := "broken promise: " + mutant.promise + ":\n"; !strings.Contains(err.Error(), want) {
				t.Errorf("caught, but not by %q:\n%v", mutant.promise, err)
			}
		})
	}
}
