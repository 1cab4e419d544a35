package ratetier_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/storetest"
)

// store is the reference, which can count what it is asked, and fail.
type store struct {
	ratetier.Store
	asked  atomic.Int64
	err    error
	during func() // runs while Apply is under way
}

func newStore() *store { return &store{Store: storetest.Reference()} }

func (s *store) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	s.asked.Add(1)
	if s.during != nil {
		s.during()
	}
	if err := cmp.Or(s.err, ctx.Err()); err != nil {
		return err
	}
	return s.Store.Apply(ctx, request, result)
}

var errStore = errors.New("store: no route to host")

// fixture is a limiter on a clock that stands still, and what it told its observer.
type fixture struct {
	*ratetier.Limiter
	clock *clocktest.Clock
	store *store

	mu     sync.Mutex
	events []ratetier.Event
}

var start = time.Unix(1_800_000_000, 0)

// newFixture returns a limiter with the config, whose store, clock and observer are
// the fixture's, and whose tiers are these if there are none.
func newFixture(t testing.TB, config ratetier.Config) *fixture {
	t.Helper()
	f := &fixture{clock: clocktest.New(start), store: newStore()}
	config.Store, config.Clock = f.store, f.clock
	config.Observer = func(event ratetier.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, event)
	}
	if config.Tiers == nil {
		config.Tiers = ratetier.Tiers{
			"free":       ratetier.PerMinute(10),
			"pro":        ratetier.PerMinute(100),
			"enterprise": ratetier.Unlimited(),
			"closed":     ratetier.Blocked(),
		}
	}
	limiter, err := ratetier.New(config)
	if err != nil {
		t.Fatal(err)
	}
	f.Limiter = limiter
	return f
}

// left returns what is left of the identity's bucket, and tells no event.
func (f *fixture) left(id ratetier.Identity) int64 {
	d := f.Peek(context.Background(), id)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = f.events[:len(f.events)-1]
	return d.Remaining
}

func user(name, tier string) ratetier.Identity { return ratetier.Identity{User: name, Tier: tier} }

var ana = user("ana", "free")
