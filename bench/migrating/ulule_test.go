package migrating

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func fromUlule(mux *http.ServeMux) (http.Handler, error) {
	rate, err := limiter.NewRateFromFormatted("10-M")
	if err != nil {
		return nil, err
	}
	byRate := limiter.New(memory.NewStore(), rate)
	return stdlib.NewMiddleware(byRate).Handler(mux), nil
}

func toQuotaText(mux *http.ServeMux) (http.Handler, error) {
	quota, err := ratetier.ParseQuota("10/min")
	if err != nil {
		return nil, err
	}
	limiter, err := ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"anyone": quota},
		DefaultTier: "anyone",
	})
	if err != nil {
		return nil, err
	}
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: byAddress}, mux), nil
}

func must(t *testing.T, build func(*http.ServeMux) (http.Handler, error)) http.Handler {
	t.Helper()
	handler, err := build(mux())
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestUluleDoesNotSayHowLongToWait(t *testing.T) {
	headers(t, "ulule", expect(t, "ulule", must(t, fromUlule), path("/data"), 10),
		"X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: -")
	headers(t, "ratetier", expect(t, "ratetier", must(t, toQuotaText), path("/data"), 10),
		"Retry-After: 6", "X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: -")
}

func TestUluleRefillsAtOnce(t *testing.T) {
	byRate := limiter.New(memory.NewStore(), limiter.Rate{Period: 10 * time.Millisecond, Limit: 10})
	refillsAtOnce(t, func() (left int64, ok bool) {
		c, err := byRate.Get(t.Context(), "ana")
		if err != nil {
			t.Fatal(err)
		}
		return c.Remaining, !c.Reached
	})
}

func TestUluleGivesEachIPv6AddressABucket(t *testing.T) {
	expect(t, "ulule", must(t, fromUlule), rotating, 20)
	expect(t, "ratetier", must(t, toQuotaText), rotating, 10)
}

func TestUlulePanicsWhereTheStoreFails(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { client.Close() })
	store, err := ululeredis.NewStore(client)
	if err != nil {
		t.Fatal(err)
	}
	server.SetError("out of order")
	handler := stdlib.NewMiddleware(limiter.New(store, limiter.Rate{Period: 1, Limit: 1})).Handler(mux())
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
}
