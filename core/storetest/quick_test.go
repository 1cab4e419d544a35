package storetest_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
)

// quick is a store that takes by hash, and answers what bend makes of the answer.
type quick struct {
	ratetier.Store
	bend func(got *result)

	mu    sync.Mutex
	tiers []string
	keys  map[ratetier.Hash]ratetier.Key
	seen  map[ratetier.Key]ratetier.Hash
}

func (s *quick) Itself() ratetier.Store { return s }

func (s *quick) HashTier(tier string) ratetier.Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tiers = append(s.tiers, tier)
	return ratetier.Hash{Lo: uint64(len(s.tiers) - 1)}
}

func (s *quick) Hash(tier ratetier.Hash, user string, anonymous bool) ratetier.Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := ratetier.Key{Tier: s.tiers[tier.Lo], User: user, Anonymous: anonymous}
	hash, ok := s.seen[key]
	if !ok {
		hash.Lo = uint64(len(s.seen))
		s.seen[clone(key)], s.keys[hash] = hash, clone(key)
	}
	return hash
}

func (s *quick) Take(hash ratetier.Hash, limit gcra.Limit, cost, now int64) (used int64, allowed, ok bool) {
	s.mu.Lock()
	key := s.keys[hash]
	s.mu.Unlock()
	var got result
	if err := s.Apply(context.Background(), &request{Key: key, Limits: []gcra.Limit{limit}, Cost: cost, Now: now}, &got); err != nil {
		return 0, false, false
	}
	s.bend(&got)
	return got.Used[0], got.Allowed, true
}

func quickSubject(bend func(got *result)) subject {
	return subject{New: func() (store, error) {
		return &quick{
			Store: storetest.Reference(), bend: bend,
			keys: map[ratetier.Hash]ratetier.Key{}, seen: map[ratetier.Key]ratetier.Hash{},
		}, nil
	}}
}

func TestAQuickStoreKeepsItsPromisesBothWays(t *testing.T) {
	storetest.Run(t, quickSubject(func(*result) {}))
}

func TestAQuickStoreThatTakesOtherwiseThanItAppliesIsCaught(t *testing.T) {
	for name, test := range map[string]struct {
		bend    func(got *result)
		promise string
	}{
		"allows what does not fit": {func(got *result) { got.Allowed = true }, "ModeTake charges the cost if it fits all rates, else nothing"},
		"tells a nanosecond less":  {func(got *result) { got.Used[0] = max(0, got.Used[0]-1) }, "Used is the use of each of the request's limits after it, in nanoseconds"},
	} {
		err := storetest.Check(t.Context(), quickSubject(test.bend))
		if err == nil || !slices.Contains(broken(err), test.promise) {
			t.Errorf("%s: %v, want that it breaks %q", name, err, test.promise)
		}
	}
}
