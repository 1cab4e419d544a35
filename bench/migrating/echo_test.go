package migrating

import (
	"net/http"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func fromEcho() http.Handler {
	e := echo.New()
	e.Use(middleware.RateLimiter(middleware.NewRateLimiterMemoryStore(10)))
	e.GET("/*", echo.WrapHandler(mux()))
	return e
}

func toEcho() http.Handler {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"anyone": ratetier.PerSecond(10)},
		DefaultTier: "anyone",
	}))
	e := echo.New()
	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
		Identify: func(echo.Context) (ratetier.Identity, error) {
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		},
	}))
	e.GET("/*", echo.WrapHandler(mux()))
	return e
}

func TestEchoTellsClientsNothing(t *testing.T) {
	_, last := send(fromEcho(), 1, path("/data"))
	headers(t, "echo", last)
	_, last = send(toEcho(), 1, path("/data"))
	headers(t, "ratetier", last, "X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 9", "X-Ratelimit-Reset: -")
}

func TestEchoBelievesAddressesThatClientsMakeUp(t *testing.T) {
	const many = 2000 // more than refill while they are sent
	if passed, _ := send(fromEcho(), many, another); passed != many {
		t.Errorf("echo let %d of %d requests through", passed, many)
	}
	if passed, _ := send(toEcho(), many, another); passed == many {
		t.Errorf("ratetier let all requests through")
	}
}

func TestEchoForgetsBucketsThatAreNotFull(t *testing.T) {
	store := middleware.NewRateLimiterMemoryStoreWithConfig(middleware.RateLimiterMemoryStoreConfig{
		Rate: 1.0 / 3600, Burst: 1, ExpiresIn: time.Millisecond,
	})
	allow := func(user string) bool {
		ok, err := store.Allow(user)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !allow("ana") || allow("ana") {
		t.Fatal("the burst is not 1")
	}
	for seen := time.Now(); time.Since(seen) < 10*time.Millisecond; {
		allow("bea")
	}
	if !allow("ana") {
		t.Error("the bucket of an hour was kept for more than a millisecond")
	}
}
