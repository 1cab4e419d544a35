package bench

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/didip/tollbooth/v7"
	tollboothlimiter "github.com/didip/tollbooth/v7/limiter"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/httprate"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/ulule/limiter/v3"
	ululegin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	ululehttp "github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"

	ratetierchi "github.com/ratetier/ratetier/adapters/chi"
	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
	ratetiergin "github.com/ratetier/ratetier/adapters/gin"
	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func newLimiter() *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10), "pro": ratetier.PerMinute(burst)},
	}))
}

func identify(r *http.Request) (ratetier.Identity, error) {
	return ratetier.Identity{User: r.Header.Get("X-User"), Tier: "pro"}, nil
}

func byUser(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }

func newUlule() *limiter.Limiter {
	return limiter.New(ululestore.NewStore(), limiter.Rate{Period: time.Minute, Limit: burst})
}

var done = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })

type key struct{}

// handContext hands a request on with a value in its context, as Go has it done: on a copy.
func handContext(w http.ResponseWriter, r *http.Request) {
	done(w, r.WithContext(context.WithValue(r.Context(), key{}, true)))
}

func onChi(use ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(use...)
	r.Get("/users/{id}", done)
	return r
}

func onGin(use ...gin.HandlerFunc) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.Use(use...)
	r.GET("/users/:id", func(c *gin.Context) { c.Status(http.StatusNoContent) })
	return r
}

func onEcho(use ...echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.Use(use...)
	e.GET("/users/:id", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	return e
}

// BenchmarkMiddleware measures a request that passes a limiter, in process. What a limiter
// adds is the difference to the framework alone. All tell users apart, tollbooth by address
// and the others by a header, and all but echo's own send what is left in the headers of the
// answer. Only ratetier has the handler find the decision in the context of its request: the
// context alone shows what that cannot do without.
func BenchmarkMiddleware(b *testing.B) {
	toll := tollbooth.NewLimiter(burst, &tollboothlimiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
	toll.SetBurst(burst)
	toll.SetIPLookups([]string{"RemoteAddr"})
	for _, test := range []struct {
		on, by  string
		header  string // which answers have
		handler http.Handler
	}{
		{"net-http", "nobody", "", done},
		{"net-http", "context", "", http.HandlerFunc(handContext)},
		{"net-http", "ratetier", "X-RateLimit-Limit", ratetierhttp.Middleware(newLimiter(), ratetierhttp.Config{Identify: identify})(done)},
		{"net-http", "httprate", "X-RateLimit-Limit", httprate.LimitBy(burst, time.Minute, byUser)(done)},
		{"net-http", "ulule", "X-RateLimit-Limit", ululehttp.NewMiddleware(newUlule(), ululehttp.WithKeyGetter(func(r *http.Request) string { return r.Header.Get("X-User") })).Handler(done)},
		{"net-http", "tollbooth", "RateLimit-Limit", tollbooth.LimitHandler(toll, done)},
		{"chi", "nobody", "", onChi()},
		{"chi", "ratetier", "X-RateLimit-Limit", onChi(ratetierchi.Middleware(newLimiter(), ratetierchi.Config{Identify: identify}))},
		{"chi", "httprate", "X-RateLimit-Limit", onChi(httprate.LimitBy(burst, time.Minute, byUser))},
		{"gin", "nobody", "", onGin()},
		{"gin", "ratetier", "X-RateLimit-Limit", onGin(ratetiergin.Middleware(newLimiter(), ratetiergin.Config{
			Identify: func(c *gin.Context) (ratetier.Identity, error) { return identify(c.Request) },
		}))},
		{"gin", "ulule", "X-RateLimit-Limit", onGin(ululegin.NewMiddleware(newUlule(), ululegin.WithKeyGetter(func(c *gin.Context) string { return c.GetHeader("X-User") })))},
		{"echo", "nobody", "", onEcho()},
		{"echo", "ratetier", "X-RateLimit-Limit", onEcho(ratetierecho.Middleware(newLimiter(), ratetierecho.Config{
			Identify: func(c echo.Context) (ratetier.Identity, error) { return identify(c.Request()) },
		}))},
		{"echo", "echo", "", onEcho(middleware.RateLimiterWithConfig(middleware.RateLimiterConfig{
			Store:               middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{Rate: burst, Burst: burst}),
			IdentifierExtractor: func(c echo.Context) (string, error) { return byUser(c.Request()) },
		}))},
	} {
		b.Run("on="+test.on+"/by="+test.by, func(b *testing.B) {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/users/7", http.NoBody)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("X-User", "ana")
			r.RemoteAddr = "192.0.2.1:1024"
			w := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				test.handler.ServeHTTP(w, r)
			}
			if w.status != http.StatusNoContent || test.header != "" && w.header.Get(test.header) == "" {
				b.Fatalf("status %d, headers %v", w.status, w.header)
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
