package examples

// The snippets of docs/testing.md.

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/storetest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func TestClientGetsThroughAfterRetryAfter(t *testing.T) {
	clock := clocktest.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
		Clock: clock,
	}))
	handler := ratetierhttp.Middleware(limiter, ratetierhttp.Config{
		Identify: func(*http.Request) (ratetier.Identity, error) {
			return ratetier.Identity{User: "ana", Tier: "free"}, nil
		},
	})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
		return w
	}

	for range 10 {
		get()
	}
	refused := get()
	if refused.Code != http.StatusTooManyRequests {
		t.Fatalf("the 11th request got %d", refused.Code)
	}
	wait, err := time.ParseDuration(refused.Header().Get("Retry-After") + "s")
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(wait)
	if got := get().Code; got != http.StatusOK {
		t.Errorf("after %v the request got %d", wait, got)
	}
}

func TestTimeStandsStillInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: memorystore.New(),
			Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)},
		}))
		ana := ratetier.Identity{User: "ana", Tier: "free"}
		limiter.Take(t.Context(), ana, 1)
		wait := limiter.Take(t.Context(), ana, 1).RetryAfter
		time.Sleep(wait - time.Nanosecond)
		if limiter.Take(t.Context(), ana, 1).Allowed {
			t.Errorf("allowed a nanosecond before %v", wait)
		}
		time.Sleep(time.Nanosecond)
		if !limiter.Take(t.Context(), ana, 1).Allowed {
			t.Errorf("refused after %v", wait)
		}
	})
}

// brokenStore fails, as one whose server is down.
type brokenStore struct{ ratetier.Store }

func (brokenStore) Apply(context.Context, *ratetier.Request, *ratetier.Result) error {
	return errors.New("the server is down")
}

func TestWhatBecomesOfRequestsWithoutAStore(t *testing.T) {
	for policy, allowed := range map[ratetier.Policy]bool{
		{}:               true,
		ratetier.Allow(): true,
		ratetier.Deny(http.StatusServiceUnavailable): false,
	} {
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store:         brokenStore{},
			Tiers:         ratetier.Tiers{"free": ratetier.PerMinute(1)},
			OnStoreFailed: policy,
		}))
		d := limiter.Take(t.Context(), ratetier.Identity{User: "ana", Tier: "free"}, 1)
		if d.Outcome != ratetier.OutcomeStoreFailed || d.Allowed != allowed {
			t.Errorf("%v: %v, allowed %v", policy, d.Outcome, d.Allowed)
		}
	}
}

// mapStore is a store of one's own.
type mapStore struct {
	mu      sync.Mutex
	buckets map[ratetier.Key][]int64
}

func (s *mapStore) Apply(_ context.Context, request *ratetier.Request, result *ratetier.Result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := request.Key
	key.Tier, key.User = strings.Clone(key.Tier), strings.Clone(key.User) // promise 8
	tats := make([]int64, len(request.Limits))
	if stored, ok := s.buckets[key]; ok && len(stored) == len(tats) {
		copy(tats, stored)
	} else if ok { // promise 7
		carried := ratetier.Carry(stored, len(tats))
		copy(tats, carried[:])
	}
	request.Apply(tats, result)
	if slices.Max(tats) > request.Now { // promise 4: what is full may be forgotten
		s.buckets[key] = tats
	} else {
		delete(s.buckets, key)
	}
	return nil
}

func (s *mapStore) Reset(_ context.Context, key ratetier.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, key)
	return nil
}

func TestMapStore(t *testing.T) {
	var store *mapStore
	storetest.Run(t, storetest.Subject{
		New: func() (ratetier.Store, error) {
			store = &mapStore{buckets: map[ratetier.Key][]int64{}}
			return store, nil
		},
		Buckets: func() (int, error) { return len(store.buckets), nil },
	})
}
