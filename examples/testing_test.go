package examples

// The snippets of docs/testing.md.

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
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
