package main

// The snippets of adapters/gin/README.md and docs/gin.md.

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
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

// answer is the handler of routes whose work is beside the point.
func answer(c *gin.Context) { c.String(http.StatusOK, "here you are\n") }

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

func newService() (*gin.Engine, error) {
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
	r := gin.New()
	r.Use(gin.Recovery())
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{
		Identify:   identify,
		RouteCosts: ratetiergin.RouteCosts{"GET /report/:id": 5},
	}))
	r.GET("/report/:id", report)
	r.GET("/export", ratetiergin.Cost(8), export)
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
	config := ratetiergin.Config{Identify: identify}

	r := gin.New()
	r.Use(ratetiergin.Middleware(limiter, config))
	r.GET("/data", answer)

	api := r.Group("/search", ratetiergin.Middleware(searches, config))
	api.GET("", search)

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

func behindProxies(limiter *ratetier.Limiter) (*gin.Engine, error) {
	r := gin.New()
	if err := r.SetTrustedProxies([]string{"10.0.0.0/8"}); err != nil { // nil if there is no proxy
		return nil, err
	}
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{
		Identify:   identify,
		ClientAddr: (*gin.Context).ClientIP,
	}))
	return r, nil
}

func Example_clientAddress() {
	r, err := behindProxies(newLimiter(ratetier.PerMinute(10)))
	if err != nil {
		fmt.Println(err)
		return
	}
	r.GET("/data", answer)
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
func cors(c *gin.Context) {
	c.Header("Access-Control-Allow-Origin", "https://app.example")
	c.Header("Access-Control-Expose-Headers", strings.Join(httplimit.ExposedHeaders(), ", "))
}

func authenticate(c *gin.Context) {
	if c.GetHeader("X-Api-Key") == "" {
		c.AbortWithStatus(http.StatusUnauthorized)
	}
}

func Example_order() {
	limit := ratetiergin.Middleware(newLimiter(ratetier.PerMinute(1)), ratetiergin.Config{Identify: identify})

	r := gin.New()
	r.Use(gin.Recovery(), cors, authenticate, limit)
	r.GET("/data", answer)

	send(r, http.MethodGet, "/data")
	refused := send(r, http.MethodGet, "/data")
	fmt.Println(refused.Code, refused.Header().Get("Access-Control-Allow-Origin"))
	fmt.Println(send(r, http.MethodGet, "/data", "X-Api-Key: ").Code)
	// Output:
	// 429 https://app.example
	// 401
}

func ask(c *gin.Context) {
	admission, ok := ratetiergin.FromContext(c)
	if !ok {
		c.AbortWithStatus(http.StatusInternalServerError) // no limiter in front of this route
		return
	}
	decision := admission.Decision()
	c.String(http.StatusOK, "%s has %d left", decision.Tier, decision.Remaining)
}

func Example_decision() {
	r := gin.New()
	r.Use(ratetiergin.Middleware(newLimiter(ratetier.PerMinute(10)), ratetiergin.Config{Identify: identify}))
	r.GET("/ask", ask)
	fmt.Println(send(r, http.MethodGet, "/ask").Body)
	// Output: free has 9 left
}

func inTheBackground(work func(*gin.Context) int64) gin.HandlerFunc {
	return func(c *gin.Context) {
		if admission, ok := ratetiergin.FromContext(c); ok {
			copied := c.Copy()
			go func() {
				_ = admission.Settle(copied.Request.Context(), work(copied)) // a failed store has told the Observer
			}()
		}
		c.Status(http.StatusAccepted)
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
	r := gin.New()
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{Identify: identify}))
	r.POST("/ask", ratetiergin.Cost(500), inTheBackground(func(*gin.Context) int64 { return 120 }))
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
	r := gin.New()
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{Identify: identify}))
	r.GET("/report", ratetiergin.Cost(10), report)

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
