package migrating

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
)

func fromGoLimiter(mux *http.ServeMux) (http.Handler, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: 10, Interval: time.Minute})
	if err != nil {
		return nil, err
	}
	middleware, err := httplimit.NewMiddleware(store, httplimit.IPKeyFunc())
	if err != nil {
		return nil, err
	}
	return middleware.Handle(mux), nil
}

func TestGoLimiterAnswersWithWhatIsNoDateOfHTTP(t *testing.T) {
	last := expect(t, "go-limiter", must(t, fromGoLimiter), path("/data"), 10)
	headers(t, "go-limiter", last,
		"Retry-After: -", "X-Ratelimit-Limit: 10", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: -")
	retry := last.Header().Get("Retry-After")
	if _, err := http.ParseTime(retry); err == nil || !strings.HasSuffix(retry, " UTC") {
		t.Errorf("Retry-After is %q", retry)
	}
}

func TestGoLimiterGivesEachIPv6AddressABucket(t *testing.T) {
	expect(t, "go-limiter", must(t, fromGoLimiter), rotating, 20)
}

func TestGoLimiterRefillsAtOnce(t *testing.T) {
	store, err := memorystore.New(&memorystore.Config{Tokens: 10, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(t.Context()) })
	refillsAtOnce(t, func() (left int64, ok bool) {
		_, remaining, _, ok, err := store.Take(t.Context(), "ana")
		if err != nil {
			t.Fatal(err)
		}
		return int64(remaining), ok
	})
}
