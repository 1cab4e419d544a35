package main

// The snippets of adapters/echo/README.md and docs/echo.md.

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// answer is the handler of routes whose work is beside the point.
func answer(c echo.Context) error { return c.String(http.StatusOK, "here you are\n") }

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

func newService() (*echo.Echo, error) {
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
	e := echo.New()
	e.Use(middleware.Recover())
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify:   identify,
		RouteCosts: ratetierecho.RouteCosts{"GET /report/:id": 5},
	}))
	e.GET("/report/:id", report)
	e.GET("/export", export, ratetierecho.Cost(8))
	return e, nil
}

func Example_service() {
	e, err := newService()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/report/7", "/export"} {
		w := send(e, http.MethodGet, path)
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
	config := ratetierecho.Config{Identify: identify}

	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, config))
	e.GET("/data", answer)

	api := e.Group("/search", ratetierecho.Middleware(searches, config))
	api.GET("", search)

	for _, path := range []string{"/data", "/search", "/search", "/search", "/data"} {
		header := send(e, http.MethodGet, path).Header()
		fmt.Println(path, "remaining", header.Get("X-RateLimit-Remaining"), "of", header.Get("X-RateLimit-Limit"))
	}
	// Output:
	// /data remaining 9 of 10
	// /search remaining 1 of 2
	// /search remaining 0 of 2
	// /search remaining 0 of 2
	// /data remaining 6 of 10
}

func behindProxies(limiter *ratetier.Limiter) (*echo.Echo, error) {
	_, proxies, err := net.ParseCIDR("10.0.0.0/8")
	if err != nil {
		return nil, err
	}
	e := echo.New()
	e.IPExtractor = echo.ExtractIPFromXFFHeader(echo.TrustIPRange(proxies)) // ExtractIPDirect() if there is no proxy
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify:   identify,
		ClientAddr: echo.Context.RealIP,
	}))
	return e, nil
}

func Example_clientAddress() {
	e, err := behindProxies(newLimiter(ratetier.PerMinute(10)))
	if err != nil {
		fmt.Println(err)
		return
	}
	e.GET("/data", answer)
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
		e.ServeHTTP(w, request)
		fmt.Println(hops[0], "for", hops[1], "remaining", w.Header().Get("X-RateLimit-Remaining"))
	}
	// Output:
	// 10.0.0.1:9 for 192.0.2.7 remaining 9
	// 10.0.0.1:9 for 203.0.113.9, 192.0.2.7 remaining 8
	// 10.0.0.1:9 for 192.0.2.8 remaining 9
	// 192.0.2.7:9 for 203.0.113.9 remaining 7
}

func authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().Header.Get("X-Api-Key") == "" {
			return echo.ErrUnauthorized
		}
		return next(c)
	}
}

func Example_order() {
	limit := ratetierecho.Middleware(newLimiter(ratetier.PerMinute(1)), ratetierecho.Config{Identify: identify})

	cors := middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins:  []string{"https://app.example"},
		ExposeHeaders: httplimit.ExposedHeaders(),
	})
	e := echo.New()
	e.Use(middleware.Recover(), cors, authenticate, limit)
	e.GET("/data", answer)

	const origin = "Origin: https://app.example"
	send(e, http.MethodGet, "/data", origin)
	refused := send(e, http.MethodGet, "/data", origin)
	fmt.Println(refused.Code, refused.Header().Get("Access-Control-Allow-Origin"))
	fmt.Println(send(e, http.MethodGet, "/data", origin, "X-Api-Key: ").Code)
	// Output:
	// 429 https://app.example
	// 401
}

func ask(c echo.Context) error {
	admission, ok := ratetierecho.FromContext(c)
	if !ok {
		return echo.ErrInternalServerError // no limiter in front of this route
	}
	decision := admission.Decision()
	return c.String(http.StatusOK, fmt.Sprintf("%s has %d left", decision.Tier, decision.Remaining))
}

func Example_decision() {
	e := echo.New()
	e.Use(ratetierecho.Middleware(newLimiter(ratetier.PerMinute(10)), ratetierecho.Config{Identify: identify}))
	e.GET("/ask", ask)
	fmt.Println(send(e, http.MethodGet, "/ask").Body)
	// Output: free has 9 left
}

func reshaped(err error, c echo.Context) {
	var refusal *httplimit.Refusal
	if errors.As(err, &refusal) {
		_ = c.String(refusal.Status, "too much for the plan "+refusal.Decision.Tier)
		return
	}
	c.Echo().DefaultHTTPErrorHandler(err, c)
}

func Example_refusal() {
	e := echo.New()
	e.HTTPErrorHandler = reshaped
	e.Use(ratetierecho.Middleware(newLimiter(ratetier.PerMinute(1)), ratetierecho.Config{Identify: identify}))
	e.GET("/data", answer)
	send(e, http.MethodGet, "/data")
	refused := send(e, http.MethodGet, "/data")
	fmt.Println(refused.Code, refused.Header().Get("Retry-After"), refused.Body)
	fmt.Println(send(e, http.MethodGet, "/nothing", "X-Api-Key: key_bea").Code)
	// Output:
	// 429 60 too much for the plan free
	// 404
}

func inTheBackground(work func() int64) echo.HandlerFunc {
	return func(c echo.Context) error {
		if admission, ok := ratetierecho.FromContext(c); ok {
			ctx := c.Request().Context()
			go func() {
				_ = admission.Settle(ctx, work()) // a failed store has told the Observer
			}()
		}
		return c.NoContent(http.StatusAccepted)
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
	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{Identify: identify}))
	e.POST("/ask", inTheBackground(func() int64 { return 120 }), ratetierecho.Cost(500))
	if w := send(e, http.MethodPost, "/ask"); w.Code != http.StatusAccepted {
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
	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{Identify: identify}))
	e.GET("/report", report, ratetierecho.Cost(10))

	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 200}, {59 * time.Second, 429}, {time.Second, 200}} {
		clock.Advance(step.wait)
		if got := send(e, http.MethodGet, "/report").Code; got != step.want {
			t.Errorf("at %v: status %d, want %d", clock.Now(), got, step.want)
		}
	}
}
