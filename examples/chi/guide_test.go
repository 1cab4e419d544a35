package main

// The snippets of adapters/chi/README.md and docs/chi.md.

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	ratetierchi "github.com/ratetier/ratetier/adapters/chi"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// answer is the handler of routes whose work is beside the point.
func answer(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "here you are") }

var report, export, search = answer, answer, answer

// send sends a request with ana's key, and returns the answer.
func send(handler http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Header.Set("X-Api-Key", "key_ana")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func newService() (*chi.Mux, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
	})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.Recoverer)
	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{
		Identify:   identify,
		RouteCosts: ratetierchi.RouteCosts{"GET /report/{id}": 5},
	}))
	r.Get("/report/{id}", report)
	r.With(ratetierchi.Cost(8)).Get("/export", export)
	return r, nil
}

func Example_service() {
	r, err := newService()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/report/7", "/export"} {
		w := send(r, http.MethodGet, path)
		fmt.Println(path, w.Code, "remaining", w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// /report/7 200 remaining 5
	// /export 429 remaining 5
}

// newLimiter returns one on a clock that stands still.
func newLimiter(quota ratetier.Quota) *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": quota},
		DefaultTier: "free",
		Clock:       clocktest.New(time.Unix(0, 0)),
	}))
}

// The tighter of the two limits is what the client sees.
func Example_groups() {
	limiter, searches := newLimiter(ratetier.PerMinute(10)), newLimiter(ratetier.PerMinute(2))
	config := ratetierchi.Config{Identify: identify}

	r := chi.NewRouter()
	r.Use(ratetierchi.Middleware(limiter, config))
	r.Get("/data", answer)

	r.Route("/search", func(r chi.Router) {
		r.Use(ratetierchi.Middleware(searches, config))
		r.Get("/", search)
	})

	for _, path := range []string{"/data", "/search", "/search", "/search", "/data"} {
		header := send(r, http.MethodGet, path).Header()
		fmt.Println(path, "remaining", header.Get("X-RateLimit-Remaining"), "of", header.Get("X-RateLimit-Limit"))
	}
	// Output:
	// /data remaining 9 of 10
	// /search remaining 1 of 2
	// /search remaining 0 of 2
	// /search remaining 0 of 2
	// /data remaining 6 of 10
}

func behindProxies(limiter *ratetier.Limiter) *chi.Mux {
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromXFF("10.0.0.0/8")) // ClientIPFromRemoteAddr if there is no proxy
	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{
		Identify:   identify,
		ClientAddr: func(r *http.Request) string { return middleware.GetClientIP(r.Context()) },
	}))
	return r
}

func Example_clientAddress() {
	r := behindProxies(newLimiter(ratetier.PerMinute(10)))
	r.Get("/data", answer)
	for _, hops := range [][2]string{
		{"10.0.0.1:9", "192.0.2.7"},
		{"10.0.0.1:9", "203.0.113.9, 192.0.2.7"}, // the client made up the first
		{"10.0.0.1:9", "192.0.2.8"},
		{"192.0.2.7:9", "203.0.113.9"}, // no proxy of ours
	} {
		request := httptest.NewRequest(http.MethodGet, "/data", http.NoBody)
		request.RemoteAddr = hops[0]
		request.Header.Set("X-Forwarded-For", hops[1])
		w := httptest.NewRecorder()
		r.ServeHTTP(w, request)
		fmt.Println(hops[0], "for", hops[1], "remaining", w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 10.0.0.1:9 for 192.0.2.7 remaining 9
	// 10.0.0.1:9 for 203.0.113.9, 192.0.2.7 remaining 8
	// 10.0.0.1:9 for 192.0.2.8 remaining 9
	// 192.0.2.7:9 for 203.0.113.9 remaining 7
}

// cors stands for the CORS middleware of your choice.
func cors(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "https://app.example")
		w.Header().Set("Access-Control-Expose-Headers", strings.Join(httplimit.ExposedHeaders(), ", "))
		next.ServeHTTP(w, r)
	})
}

func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func Example_order() {
	limit := ratetierchi.Middleware(newLimiter(ratetier.PerMinute(1)), ratetierchi.Config{Identify: identify})

	r := chi.NewRouter()
	r.Use(middleware.Recoverer, cors, authenticate, limit)
	r.Get("/data", answer)

	send(r, http.MethodGet, "/data")
	refused := send(r, http.MethodGet, "/data")
	fmt.Println(refused.Code, refused.Header().Get("Access-Control-Allow-Origin"))
	fmt.Println(send(r, http.MethodGet, "/data", "X-Api-Key: ").Code)
	// Output:
	// 429 https://app.example
	// 401
}

func ask(w http.ResponseWriter, r *http.Request) {
	admission, ok := ratetier.FromContext(r.Context())
	if !ok {
		w.WriteHeader(http.StatusInternalServerError) // no limiter in front of this route
		return
	}
	decision := admission.Decision()
	fmt.Fprintf(w, "%s has %d left", decision.Tier, decision.Remaining)
}

func Example_decision() {
	r := chi.NewRouter()
	r.Use(ratetierchi.Middleware(newLimiter(ratetier.PerMinute(10)), ratetierchi.Config{Identify: identify}))
	r.Get("/ask", ask)
	fmt.Println(send(r, http.MethodGet, "/ask").Body)
	// Output: free has 9 left
}

func inTheBackground(work func() int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if admission, ok := ratetier.FromContext(r.Context()); ok {
			go func() {
				_ = admission.Settle(r.Context(), work()) // a failed store has told the Observer
			}()
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

func TestWorkInTheBackgroundSettles(t *testing.T) {
	settled := make(chan ratetier.Event, 10)
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:    memorystore.New(),
		Tiers:    ratetier.Tiers{"free": ratetier.PerHour(1000)},
		Clock:    clocktest.New(time.Unix(0, 0)),
		Observer: func(event ratetier.Event) { settled <- event },
	}))
	r := chi.NewRouter()
	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{Identify: identify}))
	r.With(ratetierchi.Cost(500)).Post("/ask", inTheBackground(func() int64 { return 120 }))
	if w := send(r, http.MethodPost, "/ask"); w.Code != http.StatusAccepted {
		t.Fatalf("status %d", w.Code)
	}
	for event := range settled {
		if event.Mode == ratetier.ModeRefund {
			break
		}
	}
	left := limiter.Peek(t.Context(), ratetier.Identity{User: "key_ana", Tier: "free"}).Remaining
	if left != 880 {
		t.Errorf("%d left, want 880", left)
	}
}

func TestClientThatWaitsGetsThrough(t *testing.T) {
	clock := clocktest.New(time.Unix(0, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
		Clock: clock,
	}))
	r := chi.NewRouter()
	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{Identify: identify}))
	r.With(ratetierchi.Cost(10)).Get("/report", report)

	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 200}, {59 * time.Second, 429}, {time.Second, 200}} {
		clock.Advance(step.wait)
		if got := send(r, http.MethodGet, "/report").Code; got != step.want {
			t.Errorf("at %v: status %d, want %d", clock.Now(), got, step.want)
		}
	}
}
