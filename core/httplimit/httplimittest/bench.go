package httplimittest

import (
	"net/http"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// Bench measures a request to the framework alone and one that passes a limiter
// with the store, in process. What the adapter adds is the difference between the two.
func Bench[C, M any](b *testing.B, subject Subject[C, M], store ratetier.Store) {
	b.Helper()
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerSecond(1_000_000_000)},
	}))
	limit := subject.Middleware(limiter, httplimit.Config[C]{
		Identify: func(c C) (ratetier.Identity, error) { return byHeader(subject.Request(c)) },
	})
	b.Run("bare", func(b *testing.B) { bench(b, subject, "") })
	b.Run("limited", func(b *testing.B) { bench(b, subject, "1000000000", limit) })
}

// bench measures requests, and fails if they do not get the X-RateLimit-Limit.
func bench[C, M any](b *testing.B, subject Subject[C, M], limit string, use ...M) {
	b.Helper()
	pattern := "/users/{id}"
	if subject.Pattern != nil {
		pattern = subject.Pattern(pattern)
	}
	noContent := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	handler := subject.Handler(App[M]{Use: use, Groups: []Group[M]{{Routes: []Route[M]{
		{Method: http.MethodGet, Pattern: pattern, Handler: http.HandlerFunc(noContent)},
	}}}})
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/users/7", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("X-User", "ana")
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		handler.ServeHTTP(w, r)
	}
	if got := w.header.Get("X-RateLimit-Limit"); w.status != http.StatusNoContent || got != limit {
		b.Fatalf("status %d and limit %q, want 204 and %q", w.status, got, limit)
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
