package migrating

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/httprate"

	ratetierchi "github.com/ratetier/ratetier/adapters/chi"
)

func fromHTTPRate() http.Handler {
	r := chi.NewRouter()
	r.Use(httprate.LimitBy(10, time.Minute, func(r *http.Request) (string, error) {
		return r.Header.Get("X-Api-Key"), nil
	}))
	r.Handle("/*", mux())
	return r
}

func toChi() http.Handler {
	limiter := newLimiter()
	r := chi.NewRouter()
	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{Identify: byKey}))
	r.Handle("/*", mux())
	return r
}

func TestHTTPRateTellsClientsToWaitForAWholeWindow(t *testing.T) {
	headers(t, "httprate", expect(t, "httprate", fromHTTPRate(), key("ana"), 10),
		"Retry-After: 60", "X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: -")
	headers(t, "ratetier", expect(t, "ratetier", toChi(), key("ana"), 10),
		"Retry-After: 6", "X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: -")
}

func TestHTTPRateHasOneBucketForAllWithoutAKey(t *testing.T) {
	expect(t, "httprate", fromHTTPRate(), key(""), 10)
	if last := expect(t, "ratetier", toChi(), key(""), 0); last.Code != http.StatusForbidden {
		t.Errorf("ratetier answers %d, want 403", last.Code)
	}
}

func TestHTTPRateAnswersErrorsWith428AndTheirText(t *testing.T) {
	failing := httprate.LimitBy(10, time.Minute, func(*http.Request) (string, error) {
		return "", errors.New("no route to 10.1.2.3")
	})(mux())
	if _, last := send(failing, 1, key("ana")); last.Code != 428 || last.Body.String() != "no route to 10.1.2.3\n" {
		t.Errorf("httprate answers %d %q", last.Code, last.Body)
	}
}
