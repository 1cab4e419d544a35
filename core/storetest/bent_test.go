package storetest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
)

type (
	request = ratetier.Request
	result  = ratetier.Result
	store   = ratetier.Store
	subject = storetest.Subject
)

// bend is what is broken about a store: each part that is set takes the place of
// the right one.
type bend struct {
	key    func(ratetier.Key) ratetier.Key             // what it is kept under
	carry  func(tats []int64, rates int) []int64       // what other rates find
	decide func(r *request, tats []int64, got *result) // what is charged
	keep   func(tats []int64) []int64                  // what is written
	reset  func(s *bent, key ratetier.Key)
	apply  func(s *bent, r *request, got *result) // all but the reset

	lazy bool // writes only what is not what it read, as it may
}

// subject returns a subject that has such a store for each case.
func (b bend) subject() subject {
	return subject{New: func() (store, error) {
		return &bent{bend: b, buckets: map[ratetier.Key][]int64{}}, nil
	}}
}

func deciding(decide func(r *request, tats []int64, got *result)) subject {
	return bend{decide: decide}.subject()
}
func carrying(carry func(tats []int64, rates int) []int64) subject {
	return bend{carry: carry}.subject()
}
func writing(keep func(tats []int64) []int64) subject         { return bend{keep: keep}.subject() }
func resetting(reset func(s *bent, key ratetier.Key)) subject { return bend{reset: reset}.subject() }
func applying(apply func(s *bent, r *request, got *result)) subject {
	return bend{apply: apply}.subject()
}
func keyed(key func(ratetier.Key) ratetier.Key) subject { return bend{key: key}.subject() }

// bent is a store that is broken like that.
type bent struct {
	bend
	mu      sync.Mutex
	buckets map[ratetier.Key][]int64
}

func (s *bent) Apply(_ context.Context, request *request, result *result) error {
	if s.apply != nil {
		s.apply(s, request, result)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole(request, result)
	return nil
}

func (s *bent) whole(request *request, result *result) {
	key := clone(request.Key)
	if s.key != nil {
		key = s.key(request.Key)
	}
	tats := slices.Clone(s.buckets[key])
	switch rates := len(request.Limits); {
	case tats == nil:
		tats = make([]int64, rates)
	case s.carry != nil:
		tats = s.carry(tats, rates)
	case len(tats) != rates:
		carried := ratetier.Carry(tats, rates)
		tats = carried[:rates]
	}
	read := slices.Clone(tats)
	if s.decide != nil {
		s.decide(request, tats, result)
	} else {
		request.Apply(tats, result)
	}
	if s.keep != nil {
		tats = s.keep(tats)
	}
	if s.lazy && slices.Equal(tats, read) {
		return
	}
	if slices.Max(tats) > 0 {
		s.buckets[key] = tats
	}
}

func (s *bent) Reset(_ context.Context, key ratetier.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		key = s.key(key)
	}
	if s.reset != nil {
		s.reset(s, key)
	} else {
		delete(s.buckets, key)
	}
	return nil
}

// around returns a subject whose stores are those of wrap.
func around(wrap func(store) store) subject {
	return subject{New: func() (store, error) { return wrap(storetest.Reference()), nil }}
}

// wrapper is a store whose Apply is another.
type wrapper struct {
	store
	apply func(ctx context.Context, request *request, result *result) error
}

func (w wrapper) Apply(ctx context.Context, request *request, result *result) error {
	return w.apply(ctx, request, result)
}

// clone returns the key with strings of its own.
func clone(key ratetier.Key) ratetier.Key {
	key.Tier, key.User = strings.Clone(key.Tier), strings.Clone(key.User)
	return key
}

// chargeAll charges some of the rates, come what may.
func chargeAll(r *request, limits []gcra.Limit, tats []int64, got *result) {
	for i, limit := range limits {
		got.Used[i] = limit.Charge(got.Used[i], r.Cost)
		tats[i] = r.Now + got.Used[i]
	}
}

// counted returns a subject that counts each request as a bucket.
func counted() subject {
	var requests atomic.Int64
	subject := around(func(next store) store {
		return wrapper{next, func(ctx context.Context, r *request, got *result) error {
			requests.Add(1)
			return next.Apply(ctx, r, got)
		}}
	})
	subject.Buckets = func() (int, error) { return int(requests.Load()), nil }
	return subject
}

// expiring returns a subject that forgets a bucket after a time reckoned from its
// use, and sets that anew with each request, or not.
func expiring(after func(used []int64) int64, renew bool) subject {
	return around(func(next store) store {
		var mu sync.Mutex
		expiry := map[ratetier.Key]int64{}
		return wrapper{next, func(ctx context.Context, r *request, got *result) error {
			mu.Lock()
			defer mu.Unlock()
			key := clone(r.Key)
			if at, ok := expiry[key]; ok && at <= r.Now {
				delete(expiry, key)
				if err := next.Reset(ctx, key); err != nil {
					return err
				}
			}
			err := next.Apply(ctx, r, got)
			if _, ok := expiry[key]; renew || !ok {
				expiry[key] = r.Now + after(got.Used[:])
			}
			return err
		}}
	})
}

// collecting returns a subject that forgets everything when it is to collect.
func collecting() subject {
	var last *bent
	subject := bend{}.subject()
	create := subject.New
	subject.New = func() (store, error) {
		store, err := create()
		last, _ = store.(*bent)
		return store, err
	}
	subject.Collect = func(time.Time) { clear(last.buckets) }
	return subject
}

// failing returns a subject that can be told to fail.
func failing(fail func(*request, *result) error) subject {
	failed := false
	return subject{
		New: func() (store, error) {
			failed = false
			next := storetest.Reference()
			return wrapper{next, func(ctx context.Context, r *request, got *result) error {
				if failed {
					return fail(r, got)
				}
				return next.Apply(ctx, r, got)
			}}, nil
		},
		Fail: func() { failed = true },
	}
}
