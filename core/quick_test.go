package ratetier_test

import (
	"context"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// quickStore takes by hash from the bucket of whoever it was asked about last.
type quickStore struct {
	*store
	tiers []string
	key   ratetier.Key
	taken int
}

func (s *quickStore) Itself() ratetier.Store { return s }

func (s *quickStore) HashTier(tier string) ratetier.Hash {
	s.tiers = append(s.tiers, tier)
	return ratetier.Hash{Lo: uint64(len(s.tiers) - 1)}
}

func (s *quickStore) Hash(tier ratetier.Hash, user string, anonymous bool) ratetier.Hash {
	s.key = ratetier.Key{Tier: s.tiers[tier.Lo], User: user, Anonymous: anonymous}
	return ratetier.Hash{Hi: 1, Lo: 2}
}

func (s *quickStore) Take(hash ratetier.Hash, limit gcra.Limit, cost, now int64) (used int64, allowed, ok bool) {
	s.taken++
	if s.taken%3 == 0 || hash != (ratetier.Hash{Hi: 1, Lo: 2}) { // now and then it is not quick
		return 0, false, false
	}
	var result ratetier.Result
	request := ratetier.Request{Key: s.key, Limits: []gcra.Limit{limit}, Cost: cost, Now: now}
	if err := s.Store.Apply(context.Background(), &request, &result); err != nil {
		return 0, false, false
	}
	return result.Used[0], result.Allowed, true
}

func TestAQuickStoreIsAskedQuicklyAndAnswersTheSame(t *testing.T) {
	tiers := ratetier.Tiers{
		"free": ratetier.PerMinute(10),
		"try":  ratetier.PerMinute(10).Shadow(),
		"two":  ratetier.PerMinute(10).And(ratetier.PerHour(20)),
	}
	plain := newFixture(t, ratetier.Config{Tiers: tiers})
	quick := &quickStore{store: newStore()}
	limiter, err := ratetier.New(ratetier.Config{Store: quick, Tiers: tiers, Clock: plain.clock})
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 300 {
		ctx, id, cost := t.Context(), user("ana", []string{"free", "try", "two", "gold"}[i%4]), int64(i%13)
		if i%50 == 0 {
			ctx = canceled
		}
		got, want := limiter.Take(ctx, id, cost), plain.Take(ctx, id, cost)
		same := got.Outcome == want.Outcome && got.Allowed == want.Allowed && got.Shadow == want.Shadow && got.Status == want.Status &&
			got.Tier == want.Tier && got.Cost == want.Cost && got.Limit == want.Limit && got.Remaining == want.Remaining &&
			got.ResetAfter == want.ResetAfter && got.RetryAfter == want.RetryAfter && got.ResetAt().Equal(want.ResetAt()) && got.Rate() == want.Rate()
		if !same {
			t.Fatalf("step %d: cost %d on %s: got %+v, want %+v", i, cost, id.Tier, got, want)
		}
		plain.clock.Advance(time.Duration(i%5) * 3 * time.Second)
	}
	if asked := quick.asked.Load(); quick.taken < 100 || asked == 0 {
		t.Errorf("taken %d times, applied %d", quick.taken, asked)
	}
}

// A store that embeds a quick one has its methods, and decides for itself.
type embedding struct{ *quickStore }

func (embedding) Apply(context.Context, *ratetier.Request, *ratetier.Result) error { return errStore }

func TestAStoreThatEmbedsAQuickOneIsNotPassedBy(t *testing.T) {
	f := newFixture(t, ratetier.Config{})
	limiter, err := ratetier.New(ratetier.Config{
		Store: embedding{&quickStore{store: newStore()}}, Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)}, Clock: f.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := limiter.Take(t.Context(), ana, 1); d.Outcome != ratetier.OutcomeStoreFailed {
		t.Errorf("%v, want that its Apply is asked", d.Outcome)
	}
}
