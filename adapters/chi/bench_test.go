package ratetierchi_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	ratetierchi "github.com/ratetier/ratetier/adapters/chi"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// BenchmarkRequest shows what the limiter adds to a request, in process: the
// difference between its two cases.
func BenchmarkRequest(b *testing.B) {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerSecond(1_000_000_000)},
	}))
	for _, bench := range []struct {
		name       string
		middleware []func(http.Handler) http.Handler
	}{
		{"bare", nil},
		{"limited", []func(http.Handler) http.Handler{ratetierchi.Middleware(limiter, ratetierchi.Config{Identify: identify})}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := chi.NewRouter()
			r.Use(bench.middleware...)
			r.Get("/users/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
			request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/users/7", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			request.Header.Set("X-User", ana.User)
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				r.ServeHTTP(w, request)
			}
			if limited := w.header.Get("X-RateLimit-Limit") != ""; w.status != http.StatusNoContent || limited != (bench.middleware != nil) {
				b.Fatalf("status %d, header %v", w.status, w.header)
			}
		})
	}
}

// discard is a ResponseWriter that costs as little as one can.
type discard struct {
	header http.Header
	status int
}

func (w *discard) Header() http.Header         { return w.header }
func (w *discard) WriteHeader(status int)      { w.status = status }
func (w *discard) Write(p []byte) (int, error) { return len(p), nil }
