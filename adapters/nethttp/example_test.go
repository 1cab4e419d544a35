package ratetierhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example() {
	clock := clocktest.New(time.Unix(0, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
		Clock:       clock, // for this example; leave it out
	}))
	plans := map[string]string{"key_ana": "free", "key_bea": "pro"}

	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here you are") })
	mux := http.NewServeMux()
	mux.Handle("GET /report/{id}", answer)
	mux.Handle("GET /export", ratetierhttp.Cost(20)(answer))
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify: func(r *http.Request) (ratetier.Identity, error) {
			key := r.Header.Get("X-Api-Key")
			plan, ok := plans[key]
			if !ok {
				return ratetier.Identity{}, ratetier.ErrNoIdentity
			}
			return ratetier.Identity{User: key, Tier: plan}, nil
		},
		RouteCosts: ratetierhttp.RouteCosts{"GET /report/{id}": 5},
	}, mux)

	get := func(key, path string) {
		request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		request.Header.Set("X-Api-Key", key)
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		fmt.Printf("%-7s %-9s %d remaining %q %s\n", key, path,
			response.Code, response.Header().Get("X-RateLimit-Remaining"), response.Body)
	}
	get("key_ana", "/export")
	get("key_ana", "/report/7")
	get("key_ana", "/report/7")
	get("key_ana", "/report/7")
	clock.Advance(30 * time.Second)
	get("key_ana", "/report/7")
	get("key_bea", "/export")
	get("nobody", "/export")
	// Output:
	// key_ana /export   403 remaining "" {"error":"request cost exceeds tier limit","tier":"free","cost":20,"limit":10}
	// key_ana /report/7 200 remaining "5" here you are
	// key_ana /report/7 200 remaining "0" here you are
	// key_ana /report/7 429 remaining "0" {"error":"rate limit exceeded","tier":"free","retry_after":30}
	// key_ana /report/7 200 remaining "0" here you are
	// key_bea /export   200 remaining "80" here you are
	// nobody  /export   401 remaining "" {"error":"Unauthorized"}
}

// A handler reads the decision, and settles for what the work really cost.
func Example_settle() {
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerHour(1000)},
		Clock: clocktest.New(time.Unix(0, 0)), // for this example; leave it out
	}))
	mux := http.NewServeMux()
	mux.Handle("POST /ask", ratetierhttp.Cost(500)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // an estimate
		admission, _ := ratetier.FromContext(r.Context())
		decision := admission.Decision()
		fmt.Println("tier", decision.Tier, "remaining", decision.Remaining)
		if err := admission.Settle(r.Context(), 120); err != nil {
			http.Error(w, "the limiter is unavailable", http.StatusServiceUnavailable)
		}
	})))
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify: func(*http.Request) (ratetier.Identity, error) { return ana, nil },
	}, mux)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/ask", http.NoBody))

	left := limiter.Peek(context.Background(), ana)
	fmt.Println("remaining after settling", left.Remaining)
	// Output:
	// tier free remaining 500
	// remaining after settling 880
}
