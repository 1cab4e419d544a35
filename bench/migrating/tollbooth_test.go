package migrating

import (
	"net/http"
	"testing"

	"github.com/didip/tollbooth/v7"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func fromTollbooth(mux *http.ServeMux) http.Handler {
	toll := tollbooth.NewLimiter(10.0/60, nil) // a second
	toll.SetBurst(10)
	toll.SetIPLookups([]string{"RemoteAddr"})
	return tollbooth.LimitHandler(toll, mux)
}

func toNetHTTP(mux *http.ServeMux) http.Handler {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"anyone": ratetier.PerMinute(10)},
		DefaultTier: "anyone",
	}))
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: byAddress}, mux)
}

func TestTollboothDoesNotSayHowLongToWait(t *testing.T) {
	headers(t, "tollbooth", expect(t, "tollbooth", fromTollbooth(mux()), path("/data"), 10),
		"Ratelimit-Limit: 0", "Ratelimit-Remaining: 0", "Ratelimit-Reset: 1",
		"X-Rate-Limit-Duration: 1", "X-Rate-Limit-Limit: 0.17", "X-Rate-Limit-Request-Remote-Addr: 192.0.2.1:1234")
	headers(t, "ratetier", expect(t, "ratetier", toNetHTTP(mux()), path("/data"), 10),
		"Retry-After: 6", "X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: -")
}

func TestTollboothLimitsEachPathByItself(t *testing.T) {
	handler := fromTollbooth(mux())
	expect(t, "tollbooth", handler, path("/data"), 10)
	expect(t, "tollbooth, elsewhere", handler, path("/report"), 10)
	handler = toNetHTTP(mux())
	expect(t, "ratetier", handler, path("/data"), 10)
	expect(t, "ratetier, elsewhere", handler, path("/report"), 0)
}

func TestTollboothBelievesAddressesThatClientsMakeUp(t *testing.T) {
	byDefault := tollbooth.NewLimiter(10.0/60, nil)
	byDefault.SetBurst(10)
	expect(t, "tollbooth", tollbooth.LimitHandler(byDefault, mux()), another, 20)
	expect(t, "ratetier", toNetHTTP(mux()), another, 10)
}
