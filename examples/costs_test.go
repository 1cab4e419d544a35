package examples

// The snippets of docs/costs.md.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example_costs() {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"pro": ratetier.PerMinute(1000)},
		Clock: clocktest.New(time.Unix(0, 0)),
	}))
	identify := func(*http.Request) (ratetier.Identity, error) {
		return ratetier.Identity{User: "bea", Tier: "pro"}, nil
	}
	serve := func(handler http.Handler, request string) {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader("hello")))
		fmt.Println(request, w.Code, "remaining", w.Header().Get("X-RateLimit-Remaining"))
	}
	ok := func(http.ResponseWriter, *http.Request) {}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", ok)
	mux.HandleFunc("GET /reports/{id}", ok)
	mux.Handle("GET /export", ratetierhttp.Cost(20)(http.HandlerFunc(ok)))
	byRoute := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify:   identify,
		RouteCosts: ratetierhttp.RouteCosts{"GET /reports/{id}": 5},
	}, mux)
	serve(byRoute, "GET /data")
	serve(byRoute, "GET /reports/7")
	serve(byRoute, "GET /export")

	upload := http.NewServeMux()
	upload.HandleFunc("PUT /files/{name}", ok)
	bySize := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify: identify,
		Cost: func(r *http.Request, route string) int64 {
			if route == "PUT /files/{name}" {
				return 1 + max(0, r.ContentLength)/1024
			}
			return 1
		},
	}, upload)
	serve(bySize, "PUT /files/a")
	// Output:
	// GET /data 200 remaining 999
	// GET /reports/7 200 remaining 994
	// GET /export 200 remaining 974
	// PUT /files/a 200 remaining 973
}

// complete answers a prompt, and tells how many tokens it used.
func complete(prompt string) (answer string, tokens int64) { return strings.ToUpper(prompt), 120 }

func chat(w http.ResponseWriter, r *http.Request) {
	const estimate = 400
	prompt, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	if err != nil {
		http.Error(w, "unreadable prompt", http.StatusBadRequest)
		return
	}
	admission, ok := ratetier.FromContext(r.Context())
	if !ok || !admission.Revise(r.Context(), estimate).Allowed {
		http.Error(w, "come back later", http.StatusTooManyRequests)
		return
	}
	answer, tokens := complete(string(prompt))
	if err := admission.Settle(r.Context(), tokens); err != nil {
		fmt.Println(err)
	}
	_, _ = io.WriteString(w, answer)
}

func Example_settle() {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"pro": ratetier.PerMinute(1000)},
		Clock: clocktest.New(time.Unix(0, 0)),
	}))
	bea := ratetier.Identity{User: "bea", Tier: "pro"}
	handler := ratetierhttp.Middleware(limiter, ratetierhttp.Config{
		Identify: func(*http.Request) (ratetier.Identity, error) { return bea, nil },
	})(http.HandlerFunc(chat))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/chat", strings.NewReader("hello")))
	fmt.Println(w.Body, limiter.Peek(context.Background(), bea).Remaining)
	// Output:
	// HELLO 880
}
