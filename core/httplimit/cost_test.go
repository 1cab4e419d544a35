package httplimit_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/ratetier/ratetier/core/httplimit"
)

func TestRouteCostsThatCannotWork(t *testing.T) {
	limiter := newLimiter("10/min")
	const write = `write "GET /path" or "/path"`
	for _, step := range []struct {
		key   string
		cost  int64
		wrong string // "" if nothing is
	}{
		{"/", 1, ""},
		{"/a/{b}", 0, ""},
		{"GET /a/:b", 5, ""},
		{"M-SEARCH /", 5, ""},
		{"example.com/", 5, ""},
		{"GET example.com/{path...}", 5, ""},
		{"/a", -1, "-1: a cost must be at least 0"},
		{"", 1, write},
		{" ", 1, write},
		{"a", 1, write},
		{"GET", 1, write},
		{"GET a", 1, write},
		{"get /a", 1, write},
		{"Get /a", 1, write},
		{" /a", 1, write},
		{"GET  /a", 1, write},
		{"GET\t/a", 1, write},
		{"GET /a ", 1, write},
		{"GET/a /b", 1, write},
		{"GET,POST a", 1, write},
		{"GET /a b", 1, write},
	} {
		said := func() (said string) {
			defer func() {
				if p := recover(); p != nil {
					said = fmt.Sprint(p)
				}
			}()
			guard(limiter, config{RouteCosts: httplimit.RouteCosts{step.key: step.cost}})
			return ""
		}()
		want := ""
		if step.wrong != "" {
			want = fmt.Sprintf("ratetier: middleware: RouteCosts: %q: %s", step.key, step.wrong)
		}
		if said != want {
			t.Errorf("%q: %d: panic %q, want %q", step.key, step.cost, said, want)
		}
	}
}

func TestRouteCostsOfARequest(t *testing.T) {
	costs := httplimit.RouteCosts{
		"GET /a/{id}":   5,
		"/a/{id}":       7,
		"HEAD /b":       2,
		"GET /b":        3,
		"GET /c":        4,
		"/d":            6,
		"/free":         0,
		"example.com/e": 8,
	}
	for _, step := range []struct {
		method, route string
		cost          int64
	}{
		{"GET", "/a/{id}", 5},
		{"POST", "/a/{id}", 7},
		{"HEAD", "/a/{id}", 5},
		{"GET", "GET /a/{id}", 5},
		{"GET", "GET \t /a/{id}", 5},
		{"HEAD", "GET /a/{id}", 5},
		{"POST", "POST /a/{id}", 7},
		{"HEAD", "/b", 2},
		{"GET", "/b", 3},
		{"HEAD", "/c", 4},
		{"POST", "/c", 1},
		{"HEAD", "/d", 6},
		{"GET", "/free", 0},
		{"GET", "GET example.com/e", 8},
		{"GET", "/e", 1},
		{"GET", "/unlisted", 1},
		{"GET", "", 1},
	} {
		header, _ := admit(newLimiter("10/min"), config{RouteCosts: costs}, request(step.method, step.route))
		if got, want := header.Get("X-RateLimit-Remaining"), strconv.FormatInt(10-step.cost, 10); got != want {
			t.Errorf("%s with the route %q: %s of 10 left, want %s", step.method, step.route, got, want)
		}
	}
}

func TestANegativeCostPanicsWhenItIsDeclared(t *testing.T) {
	defer func() {
		if got, want := fmt.Sprint(recover()), "ratetier: Cost(-1): must be at least 0"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	httplimit.NewCost[*http.Request](-1)
}

func TestADeclaredCostThatMetNoLimiterIsLoggedOnce(t *testing.T) {
	limiter := newLimiter("10/min")
	limited := httplimit.Middleware(guard(limiter, config{
		Skip: func(r *http.Request) bool { return r.URL.Path == "/health" },
	}))
	costs := func() middleware { return httplimit.Middleware(httplimit.NewCost[*http.Request](5)) }
	for _, step := range []struct {
		name   string
		chain  []middleware // outermost first
		method string
		path   string
		logged int
	}{
		{"no limiter", []middleware{costs()}, "GET", "/", 1},
		{"two costs, no limiter", []middleware{costs(), costs()}, "GET", "/", 2},
		{"limiter behind", []middleware{costs(), limited}, "GET", "/", 0},
		{"limiter before", []middleware{limited, costs()}, "GET", "/", 0},
		{"limiter behind skips", []middleware{costs(), limited}, "GET", "/health", 0},
		{"limiter before skips", []middleware{limited, costs()}, "GET", "/health", 0},
		{"preflight, limiter behind", []middleware{costs(), limited}, "OPTIONS", "/", 0},
		{"preflight, limiter before", []middleware{limited, costs()}, "OPTIONS", "/", 0},
	} {
		t.Run(step.name, func(t *testing.T) {
			log := logged(t)
			handler := chain(http.NotFoundHandler(), step.chain...)
			for range 3 {
				r := httptest.NewRequestWithContext(t.Context(), step.method, step.path, http.NoBody)
				if step.method == http.MethodOptions {
					r.Header.Set("Origin", "https://app.example")
					r.Header.Set("Access-Control-Request-Method", http.MethodPost)
				}
				handler.ServeHTTP(httptest.NewRecorder(), r)
			}
			if got := strings.Count(log.String(), "a declared cost was not charged"); got != step.logged {
				t.Errorf("logged %d times, want %d:\n%s", got, step.logged, log)
			}
		})
	}
}

// A framework can carry middleware for net/http, so that limiter and cost are from
// two adapters.
func TestADeclaredCostBehindTheLimiterOfAnotherAdapter(t *testing.T) {
	type framework struct{}
	limiter := newLimiter("10/min")
	limit := guard(limiter, config{Headers: httplimit.IETF, Problem: true})
	for _, step := range []struct {
		cost        int64
		status      int
		left        string
		contentType string
	}{
		{6, 0, `"free";r=4;t=6`, ""},
		{6, http.StatusTooManyRequests, `"free";r=4;t=12`, "application/problem+json"},
	} {
		r, header := request(http.MethodGet, "/"), http.Header{}
		admitted, refusal := limit.Admit(r, r, header)
		if refusal != nil {
			t.Fatal(refusal)
		}
		_, refusal = httplimit.NewCost[framework](step.cost).Admit(framework{}, admitted, header)
		if got := header.Get("RateLimit"); statusOf(refusal) != step.status || got != step.left {
			t.Errorf("status %d and RateLimit %q, want %d and %q", statusOf(refusal), got, step.status, step.left)
		}
		if refusal != nil && refusal.ContentType != step.contentType {
			t.Errorf("the refusal is %q, want %q", refusal.ContentType, step.contentType)
		}
		if header.Get("X-RateLimit-Limit") != "" {
			t.Errorf("the answer has X-RateLimit headers: %v", header)
		}
	}
}

type middleware = func(http.Handler) http.Handler

// chain puts the middleware around the handler, the first outermost.
func chain(handler http.Handler, use ...middleware) http.Handler {
	for i := range use {
		handler = use[len(use)-1-i](handler)
	}
	return handler
}

// logged returns what is logged with slog.Default until the end of the test.
func logged(t *testing.T) *bytes.Buffer {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}
