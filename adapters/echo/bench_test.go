package ratetierecho_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
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
		middleware []echo.MiddlewareFunc
	}{
		{"bare", nil},
		{"limited", []echo.MiddlewareFunc{ratetierecho.Middleware(limiter, ratetierecho.Config{Identify: identify})}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e := echo.New()
			e.Use(bench.middleware...)
			e.GET("/users/:id", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
			request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/users/7", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			request.Header.Set("X-User", ana.User)
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				e.ServeHTTP(w, request)
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
