package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/storetest"
)

type config = httplimit.Config[*http.Request]

var ana = ratetier.Identity{User: "ana", Tier: "free"}

// isAna identifies everybody as ana.
func isAna(*http.Request) (ratetier.Identity, error) { return ana, nil }

// start is where the clock stands, in Unix seconds.
const start = 1_000_000

// newLimiter returns a limiter whose one tier is free.
func newLimiter(quota string) *ratetier.Limiter {
	return newLimiterWith(ratetier.Config{}, quota)
}

func newLimiterWith(config ratetier.Config, quota string) *ratetier.Limiter {
	var free ratetier.Quota
	if err := free.UnmarshalText([]byte(quota)); err != nil {
		panic(err)
	}
	config.Store = storetest.Reference()
	config.Tiers = ratetier.Tiers{"free": free}
	config.Clock = clocktest.New(time.Unix(start, 0))
	return ratetier.Must(ratetier.New(config))
}

// guard returns a guard that finds the route in the request's pattern.
func guard(limiter *ratetier.Limiter, config config) *httplimit.Guard[*http.Request] {
	if config.Identify == nil {
		config.Identify = isAna
	}
	return httplimit.NewGuard(limiter, config, func(r *http.Request) (string, error) { return r.Pattern, nil })
}

// admit sends a request through a guard, and returns what it answers with.
func admit(limiter *ratetier.Limiter, config config, r *http.Request) (http.Header, *httplimit.Refusal) {
	header := http.Header{}
	_, refusal := guard(limiter, config).Admit(r, r, header)
	return header, refusal
}

// costing returns a Cost that is always that much.
func costing(cost int64) func(*http.Request, string) int64 {
	return func(*http.Request, string) int64 { return cost }
}

// request returns a request that a router has found the pattern of.
func request(method, pattern string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, "/", http.NoBody)
	r.Pattern = pattern
	return r
}

func TestAGuardThatCannotWorkPanicsWithAllThatIsWrong(t *testing.T) {
	limiter := newLimiter("10/min")
	for _, step := range []struct {
		name    string
		limiter *ratetier.Limiter
		config  config
		want    []string
	}{
		{"no limiter", nil, config{Identify: isAna}, []string{"the limiter is nil: build it with ratetier.New"}},
		{"no Identify", limiter, config{}, []string{"no Identify: it must say who is asking; return ratetier.ErrNoIdentity to limit by client address"}},
		{
			"both costs", limiter,
			config{Identify: isAna, RouteCosts: httplimit.RouteCosts{"/": 2}, Cost: costing(1)},
			[]string{"both Cost and RouteCosts: set one of the two"},
		},
		{"prefix too long", limiter, config{Identify: isAna, IPv6Prefix: 129}, []string{"IPv6Prefix 129: must be 1 to 128, or 0 for 64"}},
		{"prefix negative", limiter, config{Identify: isAna, IPv6Prefix: -1}, []string{"IPv6Prefix -1: must be 1 to 128, or 0 for 64"}},
		{
			"headers and none", limiter,
			config{Identify: isAna, Headers: httplimit.NoHeaders | httplimit.IETF},
			[]string{"Headers 6: must be XRateLimit, IETF, XRateLimit|IETF or NoHeaders"},
		},
		{
			"everything", nil,
			config{IPv6Prefix: 200, Headers: 99, RouteCosts: httplimit.RouteCosts{"/a": -1, "b": 2}},
			[]string{"the limiter is nil", "no Identify", "IPv6Prefix 200", "Headers 99", `RouteCosts: "/a": -1: a cost must be at least 0`, `RouteCosts: "b": write "GET /path" or "/path"`},
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			defer func() {
				err, ok := recover().(error)
				if !ok || !strings.HasPrefix(err.Error(), "ratetier: middleware: ") {
					t.Fatalf("panic %v, want an error that begins with ratetier: middleware:", err)
				}
				for _, want := range step.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("panic %q does not say %q", err, want)
					}
				}
				if got := strings.Count(err.Error(), "\n") + 1; got != len(step.want) {
					t.Errorf("panic %q has %d lines, want %d", err, got, len(step.want))
				}
			}()
			httplimit.NewGuard(step.limiter, step.config, func(*http.Request) (string, error) { return "", nil })
		})
	}
}

func TestTheFunctionsOfAConfigAreCalledOnceAndInOrder(t *testing.T) {
	limiter := newLimiter("1/min")
	var calls []string
	_, refusal := admit(limiter, config{
		Skip: func(*http.Request) bool { calls = append(calls, "Skip"); return false },
		Identify: func(*http.Request) (ratetier.Identity, error) {
			calls = append(calls, "Identify")
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		},
		ClientAddr: func(*http.Request) string { calls = append(calls, "ClientAddr"); return "192.0.2.1" },
		Cost:       func(*http.Request, string) int64 { calls = append(calls, "Cost"); return 2 },
		Respond:    func(*http.Request, *httplimit.Refusal) { calls = append(calls, "Respond") },
	}, request(http.MethodGet, "/"))
	if refusal == nil {
		t.Error("a request of cost 2 passed, with room for 1")
	}
	if want := []string{"Skip", "Identify", "ClientAddr", "Cost", "Respond"}; !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v", calls, want)
	}
}

func TestOnlyARealPreflightIsFree(t *testing.T) {
	const origin, asks = "Origin", "Access-Control-Request-Method"
	for _, step := range []struct {
		method  string
		headers []string
		free    bool
	}{
		{http.MethodOptions, []string{origin, asks}, true},
		{http.MethodOptions, []string{origin}, false},
		{http.MethodOptions, []string{asks}, false},
		{http.MethodOptions, nil, false},
		{http.MethodGet, []string{origin, asks}, false},
		{"options", []string{origin, asks}, false},
	} {
		for _, charged := range []bool{false, true} {
			limiter := newLimiter("10/min")
			r := request(step.method, "/")
			for _, name := range step.headers {
				r.Header.Set(name, "x")
			}
			header, refusal := admit(limiter, config{ChargePreflight: charged}, r)
			if refusal != nil {
				t.Errorf("%s %v: %v", step.method, step.headers, refusal)
			}
			if free := len(header) == 0; free != (step.free && !charged) {
				t.Errorf("%s %v, ChargePreflight %t: free %t", step.method, step.headers, charged, free)
			}
		}
	}
}

func TestAStatusThatRespondMustNotSetIsNotUsed(t *testing.T) {
	for set, want := range map[int]int{0: 403, -1: 403, 42: 403, 103: 403, 600: 403, 1000: 403, 200: 200, 302: 302, 599: 599} {
		limiter := newLimiter("1/min")
		handler := httplimit.Middleware(guard(limiter, config{
			Cost:    costing(2),
			Respond: func(_ *http.Request, refusal *httplimit.Refusal) { *refusal = httplimit.Refusal{Status: set} },
		}))(http.NotFoundHandler())
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request(http.MethodGet, "/"))
		if w.Code != want {
			t.Errorf("Respond set %d: status %d, want %d", set, w.Code, want)
		}
	}
}

func TestABodyTooLargePassesInShadowMode(t *testing.T) {
	tooLarge := func(*http.Request) (ratetier.Identity, error) {
		return ratetier.Identity{}, &httplimit.BodyTooLargeError{Limit: 1}
	}
	for _, step := range []struct {
		shadow bool
		status int
	}{{false, http.StatusRequestEntityTooLarge}, {true, 0}} {
		limiter := newLimiterWith(ratetier.Config{Shadow: step.shadow}, "1/min")
		_, refusal := admit(limiter, config{Identify: tooLarge}, request(http.MethodPost, "/"))
		if status := statusOf(refusal); status != step.status {
			t.Errorf("shadow %t: status %d, want %d", step.shadow, status, step.status)
		}
	}
}

// statusOf returns the status of a refusal, 0 if there is none.
func statusOf(refusal *httplimit.Refusal) int {
	if refusal == nil {
		return 0
	}
	return refusal.Status
}

func TestARefusalIsTheErrorThatCausedIt(t *testing.T) {
	down := errors.New("the database is down")
	limiter := newLimiter("1/min")
	_, refusal := admit(limiter, config{Identify: func(*http.Request) (ratetier.Identity, error) {
		return ratetier.Identity{User: "secret"}, down
	}}, request(http.MethodGet, "/"))
	if !errors.Is(refusal, down) {
		t.Errorf("%v is not %v", refusal, down)
	}
	if want := `ratetier: refused with 503: identify_failed (tier "")`; refusal.Error() != want {
		t.Errorf("the error is %q, want %q", refusal, want)
	}
}

// Looking a route up may cost more than all the rest.
func TestARouteIsLookedUpOnlyWhereItIsOfUse(t *testing.T) {
	unobserved, observed := newLimiter("10/min"), newLimiterWith(ratetier.Config{Observer: func(ratetier.Event) {}}, "10/min")
	for _, step := range []struct {
		name    string
		limiter *ratetier.Limiter
		config  config
		want    int
	}{
		{"for nothing", unobserved, config{Identify: isAna}, 0},
		{"for RouteCosts", unobserved, config{Identify: isAna, RouteCosts: httplimit.RouteCosts{"/": 2}}, 1},
		{"for Cost", unobserved, config{Identify: isAna, Cost: costing(1)}, 1},
		{"for the observer", observed, config{Identify: isAna}, 1},
	} {
		lookups := 0
		gate := httplimit.NewGuard(step.limiter, step.config, func(*http.Request) (string, error) {
			lookups++
			return "/", nil
		})
		r := request(http.MethodGet, "/")
		if _, refusal := gate.Admit(r, r, http.Header{}); refusal != nil || lookups != step.want {
			t.Errorf("%s: looked up %d times, want %d", step.name, lookups, step.want)
		}
	}
}

func TestRouteCostsThatCannotApplyAreLoggedOnce(t *testing.T) {
	errElsewhere := errors.New("mount it elsewhere")
	for _, step := range []struct {
		name  string
		costs httplimit.RouteCosts
		err   error
		want  int
	}{
		{"known", httplimit.RouteCosts{"/": 2}, nil, 0},
		{"not known", httplimit.RouteCosts{"/": 2}, errElsewhere, 1},
		{"not known, nor asked for", nil, errElsewhere, 0},
	} {
		log := logged(t)
		limiter := newLimiterWith(ratetier.Config{Observer: func(ratetier.Event) {}}, "10/min") // who wants the route
		gate := httplimit.NewGuard(limiter, config{Identify: isAna, RouteCosts: step.costs}, func(*http.Request) (string, error) {
			return "", step.err
		})
		for range 2 {
			r := request(http.MethodGet, "/")
			if _, refusal := gate.Admit(r, r, http.Header{}); refusal != nil {
				t.Error(refusal)
			}
		}
		if got := strings.Count(log.String(), `RouteCosts do not apply" error="mount it elsewhere"`); got != step.want {
			t.Errorf("%s: logged %d times, want %d: %s", step.name, got, step.want, log)
		}
	}
}
