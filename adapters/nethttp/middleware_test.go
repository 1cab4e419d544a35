package ratetierhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// full is what the tier of these tests allows at once.
const full = 100

var ana = ratetier.Identity{User: "ana", Tier: "free"}

// identify identifies everybody as ana.
func identify(*http.Request) (ratetier.Identity, error) { return ana, nil }

func newLimiter() *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(full)},
		Clock: clocktest.New(time.Unix(1_000_000, 0)),
	}))
}

// used returns how much of ana's bucket is used.
func used(t *testing.T, limiter *ratetier.Limiter) int64 {
	t.Helper()
	d := limiter.Peek(t.Context(), ana)
	return d.Limit - d.Remaining
}

// send sends a request to a server called example.com.
func send(handler http.Handler, method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, path, http.NoBody)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }

// newMux returns a mux with a route for each pattern.
func newMux(patterns ...string) *http.ServeMux {
	mux := http.NewServeMux()
	for _, pattern := range patterns {
		mux.HandleFunc(pattern, ok)
	}
	return mux
}

// plain hides that a handler is a mux.
func plain(next http.Handler) http.Handler { return http.HandlerFunc(next.ServeHTTP) }

func TestRouteCostsFollowThePatternsOfTheMux(t *testing.T) {
	limiter := newLimiter()
	mux := newMux("/", "GET /reports/{id}", "/backup", "POST /backup", "GET /files/{path...}", "GET /exact/{$}",
		"GET /tree/", "GET api.example.com/reports/{id}", "example.com/host")
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify: identify,
		RouteCosts: ratetierhttp.RouteCosts{
			"GET /reports/{id}":                5,
			"/backup":                          7,
			"POST /backup":                     9,
			"/files/{path...}":                 3,
			"/exact/{$}":                       4,
			"/tree/":                           6,
			"GET api.example.com/reports/{id}": 11,
			"example.com/host":                 12,
		},
	}, mux)
	for _, step := range []struct {
		method, url string
		status      int
		cost        int64
	}{
		{"GET", "/", 200, 1},
		{"GET", "/reports/2026", 200, 5},
		{"HEAD", "/reports/2026", 200, 5},
		{"POST", "/reports/2026", 200, 1}, // goes to "/"
		{"GET", "/reports/a%2Fb", 200, 5},
		{"GET", "/backup", 200, 7},
		{"POST", "/backup", 200, 9},
		{"GET", "/files/a/b.txt", 200, 3},
		{"GET", "/exact/", 200, 4},
		{"GET", "/exact/more", 200, 1},
		{"GET", "/tree/a/b", 200, 6},
		{"GET", "/tree", 307, 6}, // to /tree/
		{"GET", "http://api.example.com/reports/2026", 200, 11},
		{"GET", "http://www.example.com/reports/2026", 200, 5},
		{"GET", "/host", 200, 12},
	} {
		before := used(t, limiter)
		w := send(handler, step.method, step.url)
		if cost := used(t, limiter) - before; w.Code != step.status || cost != step.cost {
			t.Errorf("%s %s: status %d, cost %d, want %d, %d", step.method, step.url, w.Code, cost, step.status, step.cost)
		}
	}
}

func TestWhatMatchesNoPatternCosts1(t *testing.T) {
	limiter := newLimiter()
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify:   identify,
		RouteCosts: ratetierhttp.RouteCosts{"/reports/{id}": 5},
	}, newMux("GET /reports/{id}"))
	for _, step := range []struct {
		method, path string
		status       int
	}{{"GET", "/", 404}, {"GET", "/reports/2026/01", 404}, {"POST", "/reports/2026", 405}, {"OPTIONS", "/reports/2026", 405}} {
		before := used(t, limiter)
		w := send(handler, step.method, step.path)
		if cost := used(t, limiter) - before; w.Code != step.status || cost != 1 {
			t.Errorf("%s %s: status %d, cost %d, want %d, 1", step.method, step.path, w.Code, cost, step.status)
		}
	}
}

// RouteCosts apply wherever the limiter can know the pattern, and are never ignored
// in silence.
func TestRouteCostsApplyOrAreLoggedAsAnError(t *testing.T) {
	const pattern = "GET /reports/{id}"
	config := ratetierhttp.Config{Identify: identify, RouteCosts: ratetierhttp.RouteCosts{pattern: 5}}
	for _, step := range []struct {
		name   string
		build  func(limit middleware) http.Handler
		cost   int64
		logged int
	}{
		{"around the mux", func(limit middleware) http.Handler { return limit(newMux(pattern)) }, 5, 0},
		{"around another limiter around the mux", func(limit middleware) http.Handler {
			return limit(ratetierhttp.Mux(newLimiter(), config, newMux(pattern)))
		}, 5, 0},
		{"on a pattern of the mux", func(limit middleware) http.Handler {
			mux := http.NewServeMux()
			mux.Handle(pattern, limit(http.HandlerFunc(ok)))
			return mux
		}, 5, 0},
		{"on a mux within a mux", func(limit middleware) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/reports/", limit(newMux(pattern)))
			return mux
		}, 5, 0},
		{"outside something else", func(limit middleware) http.Handler { return limit(plain(newMux(pattern))) }, 1, 1},
		{"outside a declared cost", func(limit middleware) http.Handler {
			return limit(ratetierhttp.Cost(7)(newMux(pattern)))
		}, 7, 1},
	} {
		t.Run(step.name, func(t *testing.T) {
			log := logged(t)
			limiter := newLimiter()
			handler := step.build(ratetierhttp.Middleware(limiter, config))
			for range 2 {
				before := used(t, limiter)
				w := send(handler, http.MethodGet, "/reports/7")
				if cost := used(t, limiter) - before; w.Code != http.StatusOK || cost != step.cost {
					t.Errorf("status %d, cost %d, want %d, %d", w.Code, cost, http.StatusOK, step.cost)
				}
			}
			if got := strings.Count(log.String(), "level=ERROR"); got != step.logged || got > 0 && !strings.Contains(log.String(), "use ratetierhttp.Mux") {
				t.Errorf("logged %d errors, want %d:\n%s", got, step.logged, log)
			}
		})
	}
}

func TestALimiterThatNeedsNoRoutesMayStandAnywhere(t *testing.T) {
	log := logged(t)
	limiter := newLimiter()
	send(ratetierhttp.Middleware(limiter, ratetierhttp.Config{Identify: identify})(plain(newMux("GET /"))), http.MethodGet, "/")
	if got := used(t, limiter); got != 1 || log.Len() != 0 {
		t.Errorf("cost %d, want 1; logged %q", got, log)
	}
}

func TestMiddlewareOutsideSeesThePatternOfEveryRequest(t *testing.T) {
	config := ratetierhttp.Config{Identify: identify, Skip: func(r *http.Request) bool { return r.URL.Path == "/health" }}
	limited := ratetierhttp.Mux(newLimiter(), config, newMux("GET /reports/{id}", "GET /health", "GET /export"))
	var seen string
	outside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limited.ServeHTTP(w, r)
		seen = r.Pattern
	})
	for path, want := range map[string]string{"/reports/7": "GET /reports/{id}", "/health": "GET /health", "/nothing": ""} {
		if send(outside, http.MethodGet, path); seen != want {
			t.Errorf("%s: the pattern outside is %q, want %q", path, seen, want)
		}
	}
}

func TestHandlersBehindTheLimiterGetPathValues(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s of %s", r.PathValue("id"), r.Pattern)
	})
	for name, handler := range map[string]http.Handler{
		"Mux": ratetierhttp.Mux(newLimiter(), ratetierhttp.Config{Identify: identify}, mux),
		"on a pattern": func() http.Handler {
			outer := http.NewServeMux()
			outer.Handle("GET /users/{id}", ratetierhttp.Middleware(newLimiter(), ratetierhttp.Config{Identify: identify})(mux))
			return outer
		}(),
	} {
		if body := send(handler, http.MethodGet, "/users/7").Body.String(); body != "7 of GET /users/{id}" {
			t.Errorf("%s: the handler sees %q", name, body)
		}
	}
}

func TestAHandlerMayOutliveItsRequest(t *testing.T) {
	started, answered, done := make(chan struct{}), make(chan struct{}), make(chan string)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /slow", func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-answered
		done <- r.Pattern
	})
	limited := ratetierhttp.Mux(newLimiter(), ratetierhttp.Config{Identify: identify}, mux)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/slow", http.NoBody)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		limited.ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-started
	close(answered) // whoever waited for the handler has given up
	_, _ = io.WriteString(io.Discard, r.Pattern)
	if pattern := <-done; pattern != "GET /slow" {
		t.Errorf("the handler has the pattern %q", pattern)
	}
	<-ended
}

func TestAMiddlewareThatCannotWorkPanicsWhenItIsBuilt(t *testing.T) {
	for name, build := range map[string]func(){
		"the limiter is nil":    func() { ratetierhttp.Middleware(nil, ratetierhttp.Config{Identify: identify}) },
		"no Identify":           func() { ratetierhttp.Mux(newLimiter(), ratetierhttp.Config{}, newMux()) },
		"Cost(-1): must be at ": func() { ratetierhttp.Cost(-1) },
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, name) {
					t.Errorf("panic %q does not say %q", said, name)
				}
			}()
			build()
		}()
	}
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
