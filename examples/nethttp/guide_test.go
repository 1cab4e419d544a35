package main

// The snippets of docs/nethttp.md.

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// answer is the handler of routes whose work is beside the point.
func answer(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "here you are") }

var report, search, export = answer, answer, http.HandlerFunc(answer)

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

func newService() (http.Handler, error) {
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
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report/{id}", report)
	mux.Handle("GET /export", ratetierhttp.Cost(8)(export))
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify:   identify,
		RouteCosts: ratetierhttp.RouteCosts{"GET /report/{id}": 5},
	}, mux)
	return handler, nil
}

func Example_service() {
	handler, err := newService()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/report/7", "/export"} {
		w := send(handler, http.MethodGet, path)
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
	config := ratetierhttp.Config{Identify: identify}

	group := http.NewServeMux()
	group.HandleFunc("GET /search/{term}", search)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", answer)
	mux.Handle("/search/", ratetierhttp.Mux(searches, config, group))
	handler := ratetierhttp.Mux(limiter, config, mux)

	for _, path := range []string{"/data", "/search/a", "/search/b", "/search/c", "/data"} {
		header := send(handler, http.MethodGet, path).Header()
		fmt.Println(path, "remaining", header.Get("X-RateLimit-Remaining"), "of", header.Get("X-RateLimit-Limit"))
	}
	// Output:
	// /data remaining 9 of 10
	// /search/a remaining 1 of 2
	// /search/b remaining 0 of 2
	// /search/c remaining 0 of 2
	// /data remaining 6 of 10
}

// lastHop returns the address that the one proxy in front of the service saw.
func lastHop(r *http.Request) string {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	return strings.TrimSpace(hops[len(hops)-1])
}

func behindProxy(limiter *ratetier.Limiter, mux *http.ServeMux) http.Handler {
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify:   identify,
		ClientAddr: lastHop,
	}, mux)
}

func Example_clientAddress() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", answer)
	handler := behindProxy(newLimiter(ratetier.PerMinute(10)), mux)
	for _, hops := range []string{
		"192.0.2.7",
		"203.0.113.9, 192.0.2.7", // the client made up the first
		"192.0.2.8",
	} {
		header := send(handler, http.MethodGet, "/data", "X-Api-Key: ", "X-Forwarded-For: "+hops).Header()
		fmt.Println("for", hops, "remaining", header.Get("X-RateLimit-Remaining"))
	}
	// Output:
	// for 192.0.2.7 remaining 9
	// for 203.0.113.9, 192.0.2.7 remaining 8
	// for 192.0.2.8 remaining 9
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
	limiter, config := newLimiter(ratetier.PerMinute(1)), ratetierhttp.Config{Identify: identify}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", answer)

	handler := cors(authenticate(ratetierhttp.Mux(limiter, config, mux)))

	send(handler, http.MethodGet, "/data")
	refused := send(handler, http.MethodGet, "/data")
	fmt.Println(refused.Code, refused.Header().Get("Access-Control-Allow-Origin"))
	fmt.Println(send(handler, http.MethodGet, "/data", "X-Api-Key: ").Code)
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
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ask", ask)
	handler := ratetierhttp.Mux(newLimiter(ratetier.PerMinute(10)), ratetierhttp.Config{Identify: identify}, mux)
	fmt.Println(send(handler, http.MethodGet, "/ask").Body)
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
	mux := http.NewServeMux()
	mux.Handle("POST /ask", ratetierhttp.Cost(500)(inTheBackground(func() int64 { return 120 })))
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify}, mux)
	if w := send(handler, http.MethodPost, "/ask"); w.Code != http.StatusAccepted {
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
	mux := http.NewServeMux()
	mux.Handle("GET /report", ratetierhttp.Cost(10)(http.HandlerFunc(report)))
	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify}, mux)

	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 200}, {59 * time.Second, 429}, {time.Second, 200}} {
		clock.Advance(step.wait)
		if got := send(handler, http.MethodGet, "/report").Code; got != step.want {
			t.Errorf("at %v: status %d, want %d", clock.Now(), got, step.want)
		}
	}
}
