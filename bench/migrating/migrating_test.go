package migrating

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// newLimiter is what most services begin with: one plan of 10 a minute.
func newLimiter() *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
	}))
}

func byKey(r *http.Request) (ratetier.Identity, error) {
	return ratetier.Identity{User: r.Header.Get("X-Api-Key"), Tier: "free"}, nil
}

func byAddress(*http.Request) (ratetier.Identity, error) {
	return ratetier.Identity{}, ratetier.ErrNoIdentity
}

// mux answers all paths.
func mux() *http.ServeMux {
	m := http.NewServeMux()
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return m
}

// request is a request like any other, changed by its index.
type request func(r *http.Request, i int)

func key(name string) request {
	return func(r *http.Request, _ int) { r.Header.Set("X-Api-Key", name) }
}

// another is a client that makes up an address each time.
func another(r *http.Request, i int) { r.Header.Set("X-Forwarded-For", "192.0.2."+strconv.Itoa(i)) }

// rotating is a client that uses another address of its /64 each time.
func rotating(r *http.Request, i int) { r.RemoteAddr = "[2001:db8::" + strconv.Itoa(i+1) + "]:1024" }

func path(path string) request { return func(r *http.Request, _ int) { r.URL.Path = path } }

// send sends that many requests, and returns how many were let through and the last
// answer.
func send(handler http.Handler, n int, change request) (passed int, last *httptest.ResponseRecorder) {
	for i := range n {
		r := httptest.NewRequest(http.MethodGet, "/data", http.NoBody)
		change(r, i)
		last = httptest.NewRecorder()
		handler.ServeHTTP(last, r)
		if last.Code == http.StatusNoContent {
			passed++
		}
	}
	return passed, last
}

// expect checks how many of 20 requests are let through.
func expect(t *testing.T, what string, handler http.Handler, change request, want int) *httptest.ResponseRecorder {
	t.Helper()
	passed, last := send(handler, 20, change)
	if passed != want {
		t.Errorf("%s: %d of 20 requests were let through, want %d", what, passed, want)
	}
	return last
}

// headers checks the rate limit headers of an answer, and that it has no others. A
// dash is for a value that depends on the time.
func headers(t *testing.T, what string, answer *httptest.ResponseRecorder, want ...string) {
	t.Helper()
	var got []string
	for name, values := range answer.Header() {
		if strings.Contains(name, "Rate") || name == "Retry-After" {
			got = append(got, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(got)
	for i, line := range want {
		if i < len(got) && strings.HasSuffix(line, " -") && strings.HasPrefix(got[i], strings.TrimSuffix(line, "-")) {
			got[i] = line
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: got headers %q, want %q", what, got, want)
	}
}

// refillsAtOnce checks that of a limit of 10, nine are left after the first request that
// is allowed again. ratetier, which refills evenly, would have none left then.
func refillsAtOnce(t *testing.T, take func() (left int64, ok bool)) {
	t.Helper()
	for _, ok := take(); ok; _, ok = take() {
	}
	left, ok := take()
	for !ok {
		left, ok = take()
	}
	if left != 9 {
		t.Errorf("after the refill, %d are left", left)
	}
}
