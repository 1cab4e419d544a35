package ratetierecho_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

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
func identify(c echo.Context) (ratetier.Identity, error) {
	return ratetier.Identity{User: c.Request().Header.Get("X-User"), Tier: "free"}, nil
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

func ok(c echo.Context) error { return c.String(http.StatusOK, "ok") }

func TestRouteCostsFollowPath(t *testing.T) {
	limiter := newLimiter(full)
	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify: identify,
		RouteCosts: ratetierecho.RouteCosts{
			"GET /reports/:id": 5,
			"/api/users/:name": 7,
			"POST /api/users":  9,
			"GET /files/*":     3,
		},
	}))
	e.GET("/reports/:id", ok)
	e.GET("/files/*", ok)
	e.HEAD("/files/*", ok)
	api := e.Group("/api")
	api.GET("/users/:name", ok)
	api.DELETE("/users/:name", ok)
	api.POST("/users", ok)

	steps := []struct {
		method, path string
		status       int
		cost         int64
	}{
		{"GET", "/reports/2026", 200, 5},
		{"GET", "/api/users/bea", 200, 7},
		{"DELETE", "/api/users/bea", 200, 7},
		{"POST", "/api/users", 200, 9},
		{"GET", "/files/a/b.txt", 200, 3},
		{"HEAD", "/files/a/b.txt", 200, 3}, // as a GET
		{"GET", "/nothing", 404, 1},
		{"PUT", "/reports/2026", 405, 1},
		{"PUT", "/api/users/bea", 405, 1},
	}
	for _, step := range steps {
		before := used(t, limiter)
		response := send(t, e, step.method, step.path)
		if cost := used(t, limiter) - before; response.StatusCode != step.status || cost != step.cost {
			t.Errorf("%s %s: status %d, cost %d, want %d, %d", step.method, step.path, response.StatusCode, cost, step.status, step.cost)
		}
	}
}

func TestRouteIsKnownAheadOfEcho(t *testing.T) {
	var routes []string
	limit := ratetierecho.Middleware(newLimiter(full), ratetierecho.Config{
		Identify: identify,
		Cost: func(_ echo.Context, route string) int64 {
			routes = append(routes, route)
			return 1
		},
	})
	e := echo.New()
	e.Pre(limit)
	e.Use(limit)
	e.GET("/reports/:id", ok)
	e.Group("/api", limit).GET("/users", ok)
	e.Host("other.example").GET("/reports/*", ok)

	for _, step := range []struct{ method, path, routes string }{
		{"GET", "/reports/7", `["/reports/:id" "/reports/:id"]`},
		{"PUT", "/reports/7", `["" ""]`},
		{"GET", "/nothing", `["" ""]`},
		{"GET", "/api/users", `["/api/users" "/api/users" "/api/users"]`},
		{"GET", "/api/nothing", `["/api/*" "/api/*" "/api/*"]`},
		{"GET", "http://other.example/reports/7", `["/reports/*" "/reports/*"]`},
	} {
		routes = nil
		send(t, e, step.method, step.path)
		if got := fmt.Sprintf("%q", routes); got != step.routes {
			t.Errorf("%s %s: routes %s, want %s", step.method, step.path, got, step.routes)
		}
	}
}

func TestPreAndUseTogetherChargeOnce(t *testing.T) {
	limiter := newLimiter(full)
	limit := ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify:   identify,
		RouteCosts: ratetierecho.RouteCosts{"/reports/:id": 5},
	})
	e := echo.New()
	e.Pre(limit)
	e.Use(limit)
	e.GET("/reports/:id", func(c echo.Context) error { return c.String(http.StatusOK, c.Param("id")) })

	response := send(t, e, "GET", "/reports/7")
	body, _ := io.ReadAll(response.Body)
	if remaining := response.Header.Get("X-RateLimit-Remaining"); used(t, limiter) != 5 || remaining != "95" || string(body) != "7" {
		t.Errorf("used %d, remaining %q, body %q, want 5, 95, 7", used(t, limiter), remaining, body)
	}
}

// refused returns Echo with an empty bucket, and what its HTTPErrorHandler gets.
func refused(t *testing.T, config ratetierecho.Config) (*echo.Echo, *error) {
	t.Helper()
	config.Identify = identify
	e := echo.New()
	got := new(error)
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		*got = err
		e.DefaultHTTPErrorHandler(err, c)
	}
	e.Use(ratetierecho.Middleware(newLimiter(1), config))
	e.Match([]string{"GET", "HEAD"}, "/", ok)
	send(t, e, "GET", "/")
	return e, got
}

func TestDefaultErrorHandlerSendsTheRefusal(t *testing.T) {
	plainText := func(_ echo.Context, refusal *httplimit.Refusal) {
		refusal.Status, refusal.ContentType, refusal.Body = 420, "text/plain; charset=utf-8", []byte("slow down")
	}
	const limited = `{"error":"rate limit exceeded","tier":"free","retry_after":60}`
	tests := []struct {
		name        string
		config      ratetierecho.Config
		method      string
		status      int
		contentType string
		body        string
	}{
		{"JSON", ratetierecho.Config{}, "GET", 429, "application/json", limited},
		{"HEAD", ratetierecho.Config{}, "HEAD", 429, "", ""},
		{"a problem", ratetierecho.Config{Problem: true}, "GET", 429, "application/problem+json", `{"type":"https://iana.org/`},
		{"text of Respond", ratetierecho.Config{Respond: plainText}, "GET", 420, "text/plain; charset=utf-8", "slow down"},
		{"text of Respond to a HEAD", ratetierecho.Config{Respond: plainText}, "HEAD", 420, "text/plain; charset=utf-8", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, got := refused(t, test.config)
			response := send(t, e, test.method, "/")
			body, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.status || response.Header.Get("Content-Type") != test.contentType ||
				!strings.HasPrefix(string(body), test.body) || (test.body == "") != (len(body) == 0) {
				t.Errorf("status %d, type %q, body %q", response.StatusCode, response.Header.Get("Content-Type"), body)
			}
			if response.Header.Get("Retry-After") != "60" {
				t.Errorf("header %v, want Retry-After 60", response.Header)
			}
			var refusal *httplimit.Refusal
			if !errors.As(*got, &refusal) || refusal.Status != test.status {
				t.Errorf("error %v, want one that holds the refusal", *got)
			}
		})
	}
}

func TestRefusalIsLegibleAsAnError(t *testing.T) {
	e, got := refused(t, ratetierecho.Config{})
	send(t, e, "GET", "/")
	const want = `code=429, message={"error":"rate limit exceeded","tier":"free","retry_after":60}, ` +
		`internal=ratetier: refused with 429: limited (tier "free")`
	if text := (*got).Error(); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

func TestCustomErrorHandlerReshapesTheRefusal(t *testing.T) {
	e, _ := refused(t, ratetierecho.Config{})
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		var refusal *httplimit.Refusal
		if errors.As(err, &refusal) {
			_ = c.HTML(refusal.Status, "<p>Your plan: "+refusal.Decision.Tier)
		}
	}
	response := send(t, e, "GET", "/")
	body, _ := io.ReadAll(response.Body)
	contentType := response.Header.Get("Content-Type")
	if response.StatusCode != 429 || string(body) != "<p>Your plan: free" || contentType != echo.MIMETextHTMLCharsetUTF8 {
		t.Errorf("status %d, type %q, body %q", response.StatusCode, contentType, body)
	}
	if response.Header.Get("Retry-After") != "60" || response.Header.Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("header %v, want that of the refusal", response.Header)
	}
}

// Middleware such as Echo's own logger has the error handled, and returns it again.
func TestNothingIsWrittenTwice(t *testing.T) {
	e := echo.New()
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			err := next(c)
			if err != nil {
				c.Error(err)
			}
			return err
		}
	})
	e.Use(ratetierecho.Middleware(newLimiter(1), ratetierecho.Config{Identify: identify}))
	e.GET("/", ok)
	send(t, e, "GET", "/")
	response := send(t, e, "GET", "/")
	body, _ := io.ReadAll(response.Body)
	if want := `{"error":"rate limit exceeded","tier":"free","retry_after":60}` + "\n"; string(body) != want {
		t.Errorf("body %q, want %q", body, want)
	}
}

func TestAdmissionOutlivesTheContext(t *testing.T) {
	limiter := newLimiter(full)
	var kept *ratetier.Admission
	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{Identify: identify}))
	e.GET("/work", func(c echo.Context) error {
		kept, _ = ratetierecho.FromContext(c)
		return c.NoContent(http.StatusAccepted)
	}, ratetierecho.Cost(10))
	e.GET("/other", ok)

	ctx, done := context.WithCancel(t.Context())
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/work", http.NoBody)
	request.Header.Set("X-User", ana.User)
	serve(e, request)
	done() // as the server does behind the last handler
	other := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/other", http.NoBody)
	other.Header.Set("X-User", "bea")
	serve(e, other) // with the same echo.Context, from the pool

	settled := make(chan error)
	go func() { settled <- kept.Settle(ctx, 3) }()
	if err := <-settled; err != nil || used(t, limiter) != 3 {
		t.Errorf("settled with %v, used %d, want ana charged 3", err, used(t, limiter))
	}
}

func TestFromContextWithoutLimiter(t *testing.T) {
	e := echo.New()
	e.GET("/", func(c echo.Context) error {
		if _, ok := ratetierecho.FromContext(c); ok {
			t.Error("an admission, though no limiter has run")
		}
		return nil
	})
	send(t, e, "GET", "/")
}

func TestCostWithoutLimiterIsLogged(t *testing.T) {
	var log strings.Builder
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	e := echo.New()
	e.GET("/", ok, ratetierecho.Cost(5))
	for range 2 {
		send(t, e, "GET", "/")
	}
	if text := log.String(); strings.Count(text, "cost=5") != 1 {
		t.Errorf("log %q, want one line about it", text)
	}
}

func TestIPExtractorTellsUnidentifiedCallersApart(t *testing.T) {
	_, proxies, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	direct, trusting := echo.ExtractIPDirect(), echo.ExtractIPFromXFFHeader(echo.TrustIPRange(proxies))
	tests := []struct {
		name      string
		extractor echo.IPExtractor
		peers     [2]string // remote addresses of two requests
		xff       [2]string // their X-Forwarded-For
		buckets   int
	}{
		{"direct: a header changes nothing", direct, [2]string{"192.0.2.1:1", "192.0.2.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 1},
		{"direct: two peers", direct, [2]string{"192.0.2.1:1", "192.0.2.2:1"}, [2]string{}, 2},
		{"direct: IPv4 mapped into IPv6", direct, [2]string{"192.0.2.1:1", "[::ffff:192.0.2.1]:1"}, [2]string{}, 1},
		{"direct: no address, as on a Unix socket", direct, [2]string{"@", "@"}, [2]string{}, 1},
		{"proxy: two clients", trusting, [2]string{"10.0.0.1:1", "10.0.0.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 2},
		{"proxy: a client cannot make itself up", trusting, [2]string{"10.0.0.1:1", "10.0.0.1:2"}, [2]string{"1.1.1.1, 192.0.2.7", "2.2.2.2, 192.0.2.7"}, 1},
		{"proxy: another peer is not one", trusting, [2]string{"192.0.2.1:1", "192.0.2.1:2"}, [2]string{"1.1.1.1", "2.2.2.2"}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := echo.New()
			e.IPExtractor = test.extractor
			e.Use(ratetierecho.Middleware(newLimiter(full), ratetierecho.Config{
				Identify:   identify,
				ClientAddr: echo.Context.RealIP,
			}))
			e.GET("/", ok)
			var last *http.Response
			for i := range 2 {
				request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
				request.RemoteAddr = test.peers[i]
				request.Header.Set("X-Forwarded-For", test.xff[i])
				last = serve(e, request)
			}
			want := strconv.Itoa(full - 2/test.buckets)
			if got := last.Header.Get("X-RateLimit-Remaining"); got != want {
				t.Errorf("remaining %q, want %q: %d buckets", got, want, test.buckets)
			}
		})
	}
}
