package ratetierecho_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example() {
	clock := clocktest.New(time.Unix(0, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
		Clock:       clock, // for this example; leave it out
	}))
	plans := map[string]string{"key_ana": "free", "key_bea": "pro"}

	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify: func(c echo.Context) (ratetier.Identity, error) {
			key := c.Request().Header.Get("X-Api-Key")
			plan, ok := plans[key]
			if !ok {
				return ratetier.Identity{}, ratetier.ErrNoIdentity
			}
			return ratetier.Identity{User: key, Tier: plan}, nil
		},
		RouteCosts: ratetierecho.RouteCosts{"GET /report/:id": 5},
	}))
	answer := func(c echo.Context) error { return c.String(http.StatusOK, "here you are") }
	e.GET("/report/:id", answer)
	e.GET("/export", answer, ratetierecho.Cost(20))

	get := func(key, path string) {
		request := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		request.Header.Set("X-Api-Key", key)
		response := httptest.NewRecorder()
		e.ServeHTTP(response, request)
		fmt.Printf("%-7s %-10s %d remaining %q %s\n", key, path,
			response.Code, response.Header().Get("X-RateLimit-Remaining"), strings.TrimSpace(response.Body.String()))
	}
	get("key_ana", "/export")
	get("key_ana", "/report/7")
	get("key_ana", "/report/7")
	get("key_ana", "/report/7")
	clock.Advance(30 * time.Second)
	get("key_ana", "/report/7")
	get("key_bea", "/export")
	get("nobody", "/export")
	// Output:
	// key_ana /export    403 remaining "" {"error":"request cost exceeds tier limit","tier":"free","cost":20,"limit":10}
	// key_ana /report/7  200 remaining "5" here you are
	// key_ana /report/7  200 remaining "0" here you are
	// key_ana /report/7  429 remaining "0" {"error":"rate limit exceeded","tier":"free","retry_after":30}
	// key_ana /report/7  200 remaining "0" here you are
	// key_bea /export    200 remaining "80" here you are
	// nobody  /export    401 remaining "" {"error":"Unauthorized"}
}

// A handler reads the decision, and settles for what the work really cost.
func ExampleFromContext() {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerHour(1000)},
	}))
	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify: func(echo.Context) (ratetier.Identity, error) {
			return ratetier.Identity{User: "ana", Tier: "free"}, nil
		},
	}))
	e.POST("/ask", func(c echo.Context) error {
		admission, _ := ratetierecho.FromContext(c)
		decision := admission.Decision()
		fmt.Println("tier", decision.Tier, "remaining", decision.Remaining)
		return admission.Settle(c.Request().Context(), 120)
	}, ratetierecho.Cost(500)) // an estimate
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/ask", http.NoBody))

	left := limiter.Peek(context.Background(), ratetier.Identity{User: "ana", Tier: "free"})
	fmt.Println("remaining after settling", left.Remaining)
	// Output:
	// tier free remaining 500
	// remaining after settling 880
}
