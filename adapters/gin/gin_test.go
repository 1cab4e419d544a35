package ratetiergin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	ratetiergin "github.com/ratetier/ratetier/adapters/gin"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	os.Exit(m.Run())
}

// full is what the tier of these tests allows at once.
const full = 100

func newLimiter(burst int64) *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(burst)},
		DefaultTier: "free",
		Clock:       clocktest.New(time.Unix(1_000_000, 0)),
	}))
}

// identify takes the name in X-User at its word.
func identify(c *gin.Context) (ratetier.Identity, error) {
	return ratetier.Identity{User: c.GetHeader("X-User"), Tier: "free"}, nil
}

var ana = ratetier.Identity{User: "ana", Tier: "free"}

// send has ana send a request.
func send(t *testing.T, handler http.Handler, method, path string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.Header.Set("X-User", ana.User)
	return serve(handler, r)
}

func serve(handler http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result()
}

// used returns how much of ana's bucket is used.
func used(t *testing.T, limiter *ratetier.Limiter) int64 {
	t.Helper()
	d := limiter.Peek(t.Context(), ana)
	return d.Limit - d.Remaining
}

func ok(c *gin.Context) { c.String(http.StatusOK, "ok") }

func TestRouteCostsFollowFullPath(t *testing.T) {
	limiter := newLimiter(full)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{
		Identify: identify,
		RouteCosts: ratetiergin.RouteCosts{
			"GET /reports/:id":    5,
			"/api/users/:name":    7,
			"POST /api/users":     9,
			"GET /files/*path":    3,
			"HEAD /files/*path":   2,
			"GET /api/v1/private": 11,
		},
	}))
	r.GET("/reports/:id", ok)
	r.GET("/files/*path", ok)
	r.HEAD("/files/*path", ok)
	api := r.Group("/api")
	api.GET("/users/:name", ok)
	api.DELETE("/users/:name", ok)
	api.POST("/users", ok)
	api.Group("/v1").GET("/private", ok)

	steps := []struct {
		method, path string
		status       int
		cost         int64
	}{
		{"GET", "/reports/2026", 200, 5},
		{"GET", "/api/users/bea", 200, 7},
		{"DELETE", "/api/users/bea", 200, 7},
		{"POST", "/api/users", 200, 9},
		{"GET", "/api/v1/private", 200, 11},
		{"GET", "/files/a/b.txt", 200, 3},
		{"HEAD", "/files/a/b.txt", 200, 2},
		{"GET", "/nothing", 404, 1},
		{"PUT", "/reports/2026", 405, 1},
		{"HEAD", "/reports/2026", 405, 1},   // gin has no HEAD for a GET
		{"GET", "/reports/2026/", 301, 0},   // gin redirects before any middleware,
		{"POST", "/api/users/", 307, 0},     // whatever the method,
		{"GET", "/api/v1/private/", 301, 0}, // and in groups
	}
	for _, step := range steps {
		before := used(t, limiter)
		response := send(t, r, step.method, step.path)
		if cost := used(t, limiter) - before; response.StatusCode != step.status || cost != step.cost {
			t.Errorf("%s %s: status %d, cost %d, want %d, %d", step.method, step.path, response.StatusCode, cost, step.status, step.cost)
		}
	}
}

func TestHandleContextChargesOnce(t *testing.T) {
	limiter := newLimiter(full)
	r := gin.New()
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{
		Identify:   identify,
		RouteCosts: ratetiergin.RouteCosts{"/new": 5},
	}))
	r.GET("/old", func(c *gin.Context) {
		c.Request.URL.Path = "/new"
		r.HandleContext(c)
	})
	r.GET("/new", ok)

	response := send(t, r, "GET", "/old")
	if remaining := response.Header.Get("X-RateLimit-Remaining"); used(t, limiter) != 5 || remaining != "95" {
		t.Errorf("used %d, remaining %q, want 5, which the dearer route costs", used(t, limiter), remaining)
	}
}

func TestRefusalIsAnsweredAndRecorded(t *testing.T) {
	for _, method := range []string{"GET", "HEAD"} {
		t.Run(method, func(t *testing.T) {
			var recorded *gin.Error
			r := gin.New()
			r.Use(func(c *gin.Context) {
				c.Next()
				recorded = c.Errors.Last()
				if !c.Writer.Written() { // as error-handling middleware does
					c.String(http.StatusTeapot, "answered again")
				}
			})
			r.Use(ratetiergin.Middleware(newLimiter(1), ratetiergin.Config{Identify: identify}))
			r.Handle(method, "/", func(c *gin.Context) { c.Status(http.StatusNoContent) })

			send(t, r, method, "/")
			response := send(t, r, method, "/")
			body, _ := io.ReadAll(response.Body)
			want := `{"error":"rate limit exceeded","tier":"free","retry_after":60}`
			if method == "HEAD" {
				want = ""
			}
			if response.StatusCode != 429 || string(body) != want {
				t.Errorf("status %d, body %q, want 429, %q", response.StatusCode, body, want)
			}
			var refusal *httplimit.Refusal
			if recorded == nil || !errors.As(recorded, &refusal) || refusal.Status != 429 {
				t.Errorf("recorded %v, want the refusal", recorded)
			}
		})
	}
}

func TestAbortedRequestIsNotCharged(t *testing.T) {
	limiter := newLimiter(full)
	limit := ratetiergin.Middleware(limiter, ratetiergin.Config{Identify: identify})
	authenticate := func(c *gin.Context) { c.AbortWithStatus(http.StatusUnauthorized) }
	r := gin.New()
	r.GET("/chain", authenticate, limit, ok)
	r.GET("/called", func(c *gin.Context) {
		authenticate(c)
		limit(c)
	})
	for _, path := range []string{"/chain", "/called"} {
		if response := send(t, r, "GET", path); response.StatusCode != http.StatusUnauthorized || used(t, limiter) != 0 {
			t.Errorf("%s: status %d, used %d, want 401, 0", path, response.StatusCode, used(t, limiter))
		}
	}
}

func TestAdmissionOutlivesTheContext(t *testing.T) {
	limiter := newLimiter(full)
	var kept *gin.Context
	r := gin.New()
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{Identify: identify}))
	r.GET("/work", ratetiergin.Cost(10), func(c *gin.Context) { kept = c.Copy() })
	r.GET("/other", ok)

	ctx, done := context.WithCancel(t.Context())
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/work", http.NoBody)
	request.Header.Set("X-User", ana.User)
	serve(r, request)
	done() // as the server does behind the last handler
	other := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/other", http.NoBody)
	other.Header.Set("X-User", "bea")
	serve(r, other) // with the same gin.Context, from the pool

	settled := make(chan error)
	go func() {
		admission, ok := ratetiergin.FromContext(kept)
		if !ok {
			settled <- errors.New("the copy has no admission")
			return
		}
		settled <- admission.Settle(kept.Request.Context(), 3)
	}()
	if err := <-settled; err != nil || used(t, limiter) != 3 {
		t.Errorf("settled with %v, used %d, want ana charged 3", err, used(t, limiter))
	}
}

func TestFromContextWithoutLimiter(t *testing.T) {
	r := gin.New()
	r.GET("/", func(c *gin.Context) {
		if _, ok := ratetiergin.FromContext(c); ok {
			t.Error("an admission, though no limiter has run")
		}
	})
	send(t, r, "GET", "/")
}

func TestCostWithoutLimiterIsLogged(t *testing.T) {
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	r := gin.New()
	r.GET("/", ratetiergin.Cost(5), ok)
	for range 2 {
		send(t, r, "GET", "/")
	}
	if text := log.String(); strings.Count(text, "cost=5") != 1 {
		t.Errorf("log %q, want one line about it", text)
	}
}

func TestClientIPTellsUnidentifiedCallersApart(t *testing.T) {
	tests := []struct {
		name    string
		proxies []string
		peers   [2]string // remote addresses of two requests
		xff     [2]string // their X-Forwarded-For
		buckets int
	}{
		{"no proxy: a header changes nothing", nil, [2]string{"192.0.2.1:1", "192.0.2.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 1},
		{"no proxy: two peers", nil, [2]string{"192.0.2.1:1", "192.0.2.2:1"}, [2]string{}, 2},
		{"trusted proxy: two clients", []string{"10.0.0.0/8"}, [2]string{"10.0.0.1:1", "10.0.0.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 2},
		{"trusted proxy: a client cannot make itself up", []string{"10.0.0.0/8"}, [2]string{"10.0.0.1:1", "10.0.0.1:2"}, [2]string{"1.1.1.1, 192.0.2.7", "2.2.2.2, 192.0.2.7"}, 1},
		{"trusted proxy: another peer is not one", []string{"10.0.0.0/8"}, [2]string{"192.0.2.1:1", "192.0.2.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 1},
		{"no address, as on a Unix socket", nil, [2]string{"@", "@"}, [2]string{}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := gin.New()
			if err := r.SetTrustedProxies(test.proxies); err != nil {
				t.Fatal(err)
			}
			r.Use(ratetiergin.Middleware(newLimiter(full), ratetiergin.Config{
				Identify:   identify,
				ClientAddr: (*gin.Context).ClientIP,
			}))
			r.GET("/", ok)
			var last *http.Response
			for i := range 2 {
				request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
				request.RemoteAddr = test.peers[i]
				request.Header.Set("X-Forwarded-For", test.xff[i])
				last = serve(r, request)
			}
			want := strconv.Itoa(full - 2/test.buckets)
			if got := last.Header.Get("X-RateLimit-Remaining"); got != want {
				t.Errorf("remaining %q, want %q: %d buckets", got, want, test.buckets)
			}
		})
	}
}
