package httplimittest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
)

// A suite that lets a broken adapter through is broken itself, and so is a promise
// that no adapter breaks.
func TestEachBrokenAdapterBreaksItsPromise(t *testing.T) {
	const (
		refused = "a request that does not fit is answered 429 with the time to wait, and never reaches the handler"
		behind  = "a cost declared behind the limiter is what the request costs in all"
		writer  = "the ResponseWriter can do behind a limiter what it can do without"
		events  = "an event stream reaches the client as it is written, and holds up nobody meanwhile"
	)
	caught := map[string]bool{}
	for _, mutant := range []struct {
		name    string
		subject subject
		broken  string
	}{
		{"goes on after a refusal", adapter(func(g gate) middleware {
			return handle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				admitted, refusal := g.Admit(r, r, w.Header())
				if refusal != nil {
					refusal.Write(w, r)
				}
				next.ServeHTTP(w, admitted)
			})
		}), refused},

		{"answers twice", adapter(refuse(func(w http.ResponseWriter, r *http.Request, refusal *httplimit.Refusal) {
			w.WriteHeader(refusal.Status)
			fmt.Fprintln(w, refusal)
			refusal.Write(w, r)
		})), refused},

		{"answers every refusal with 429", adapter(refuse(func(w http.ResponseWriter, r *http.Request, refusal *httplimit.Refusal) {
			refusal.Status = http.StatusTooManyRequests
			refusal.Write(w, r)
		})), "a cost above the burst is answered 403 without Retry-After, and charges nothing"},

		{"answers with a header of its own", adapter(refuse(func(w http.ResponseWriter, r *http.Request, refusal *httplimit.Refusal) {
			maps.DeleteFunc(w.Header(), func(name string, _ []string) bool { return strings.HasPrefix(name, "Access-Control-") })
			refusal.Write(w, r)
		})), "a refusal keeps the headers that were set before it, as by CORS"},

		{"makes its own body", adapter(refuse(func(w http.ResponseWriter, r *http.Request, refusal *httplimit.Refusal) {
			refusal.ContentType, refusal.Body = "application/json", []byte(`{"error":"rate limit exceeded","tier":"free","retry_after":6}`)
			refusal.Write(w, r)
		})), "Respond replaces the status, type and body of a refusal"},

		{"sets headers after the handler", adapter(func(g gate) middleware {
			return handle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				header := http.Header{}
				admitted, refusal := g.Admit(r, r, header)
				if refusal == nil {
					next.ServeHTTP(w, admitted)
				}
				maps.Copy(w.Header(), header)
				if refusal != nil {
					refusal.Write(w, r)
				}
			})
		}), "an allowed answer has the handler's body and each X-RateLimit header once"},

		{"drops the request that Admit returns", adapter(around(func(w http.ResponseWriter, r, _ *http.Request, next http.Handler) {
			next.ServeHTTP(w, r)
		})), "the handler finds the decision in the request's context, and settles what the work cost"},

		{"wraps the writer", adapter(around(func(w http.ResponseWriter, _, admitted *http.Request, next http.Handler) {
			next.ServeHTTP(struct{ http.ResponseWriter }{w}, admitted)
		})), "a connection can be hijacked, and its messages charged"},

		{"wraps the writer so that only a ResponseController sees through", adapter(around(func(w http.ResponseWriter, _, admitted *http.Request, next http.Handler) {
			next.ServeHTTP(unwrappable{w}, admitted)
		})), writer},

		{"hides flushing, as http.TimeoutHandler does", adapter(around(func(w http.ResponseWriter, _, admitted *http.Request, next http.Handler) {
			http.TimeoutHandler(next, time.Minute, "").ServeHTTP(w, admitted)
		})), events},

		{"ends a stream when it is flushed", adapter(around(func(w http.ResponseWriter, _, admitted *http.Request, next http.Handler) {
			ctx, cancel := context.WithCancel(admitted.Context())
			defer cancel()
			next.ServeHTTP(ending{w, cancel}, admitted.WithContext(ctx))
		})), events},

		{"eats the body", adapter(around(func(w http.ResponseWriter, _, admitted *http.Request, next http.Handler) {
			body, _ := io.ReadAll(io.LimitReader(admitted.Body, 100))
			admitted.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, admitted)
		})), "a body that Identify peeked at reaches the handler byte for byte"},

		{"does not look ahead", func() subject {
			s := adapter(httplimit.Middleware)
			s.Middleware = func(limiter *ratetier.Limiter, config config) middleware {
				return httplimit.Middleware(httplimit.NewGuard(limiter, config, func(r *http.Request) (string, error) { return r.Pattern, nil }))
			}
			return s
		}(), "RouteCosts are found by method and pattern, and by pattern alone"},

		{"takes the path for the route", func() subject {
			s := adapter(httplimit.Middleware)
			s.Middleware = func(limiter *ratetier.Limiter, config config) middleware {
				return httplimit.Middleware(httplimit.NewGuard(limiter, config, func(r *http.Request) (string, error) { return r.URL.Path, nil }))
			}
			return s
		}(), "Cost is told the pattern of the route, and none where none matched"},

		{"ignores declared costs", func() subject {
			s := adapter(httplimit.Middleware)
			s.Cost = func(int64) middleware { return func(next http.Handler) http.Handler { return next } }
			return s
		}(), behind},

		{"limits only what a route matches", func() subject {
			s := adapter(httplimit.Middleware)
			s.Handler = func(app httplimittest.App[middleware]) http.Handler {
				for i := range app.Groups {
					app.Groups[i].Use = append(app.Use, app.Groups[i].Use...)
				}
				app.Use = nil
				return build(app)
			}
			return s
		}(), "a request that matches no route costs 1"},

		{"trusts X-Forwarded-For", configured(func(c *config) {
			c.ClientAddr = func(r *http.Request) string {
				if client := r.Header.Get("X-Forwarded-For"); client != "" {
					return client
				}
				return r.RemoteAddr
			}
		}), "headers of proxies change nothing unless ClientAddr says so"},

		{"takes the whole peer for a user", configured(func(c *config) {
			identify := c.Identify
			c.Identify = func(r *http.Request) (ratetier.Identity, error) {
				if identity, err := identify(r); err == nil {
					return identity, nil
				}
				return ratetier.Identity{User: r.RemoteAddr, Tier: "free"}, nil
			}
		}), "callers without an identity are told apart by address, and not by port"},

		{
			"takes each IPv6 address for a caller", configured(func(c *config) { c.IPv6Prefix = 128 }),
			"an IPv6 caller is its /64, or as many bits as IPv6Prefix says",
		},

		{"splits off a port that is not there", configured(func(c *config) {
			c.ClientAddr = func(r *http.Request) string {
				host, _, err := net.SplitHostPort(r.RemoteAddr)
				if err != nil {
					return "192.0.2." + strconv.Itoa(len(r.RemoteAddr))
				}
				return host
			}
		}), "callers without an IP address share one bucket"},

		{
			"charges preflights", configured(func(c *config) { c.ChargePreflight = true }),
			"a CORS preflight passes uncharged, unless ChargePreflight says otherwise",
		},

		{"takes every OPTIONS for a preflight", configured(func(c *config) {
			c.Skip = func(r *http.Request) bool { return r.Method == http.MethodOptions }
		}), "an OPTIONS request that is no preflight is charged"},

		{"skips HEAD", configured(func(c *config) {
			c.Skip = func(r *http.Request) bool { return r.Method == http.MethodHead }
		}), "a refused HEAD request has the status and rate-limit headers of a GET, and no body"},

		{
			"forgets Problem", configured(func(c *config) { c.Problem = false }),
			"Problem makes every refusal application/problem+json",
		},

		{
			"forgets Headers", configured(func(c *config) { c.Headers = 0 }),
			"Headers chooses X-RateLimit, IETF, both or none, and a 429 always has Retry-After",
		},

		{
			"forgets Skip", configured(func(c *config) { c.Skip = nil }),
			"Skip leaves a request alone: not identified, not charged, no headers",
		},

		{"takes any error for a missing identity", configured(func(c *config) {
			identify := c.Identify
			c.Identify = func(r *http.Request) (ratetier.Identity, error) {
				identity, err := identify(r)
				if err != nil {
					err = ratetier.ErrNoIdentity
				}
				return identity, err
			}
		}), "a failed look-up of the identity is answered 503, not like a missing one"},

		{"makes up headers where nothing was measured", adapter(around(func(w http.ResponseWriter, _, admitted *http.Request, next http.Handler) {
			if w.Header().Get("X-RateLimit-Limit") == "" {
				w.Header().Set("X-RateLimit-Limit", "0")
			}
			next.ServeHTTP(w, admitted)
		})), "an unlimited tier passes without rate-limit headers"},
	} {
		t.Run(mutant.name, func(t *testing.T) {
			err := httplimittest.Check(mutant.subject)
			promises := broken(err)
			if !slices.Contains(promises, mutant.broken) {
				t.Errorf("want a broken promise %q, got:\n%v", mutant.broken, err)
			}
			for _, promise := range promises {
				caught[promise] = true
			}
		})
	}
	panics := adapter(func(gate) middleware { panic("no adapter") })
	for _, promise := range broken(httplimittest.Check(panics)) {
		if !caught[promise] {
			t.Errorf("no adapter breaks the promise: %s", promise)
		}
	}
}

var brokenPromise = regexp.MustCompile(`(?m)^broken promise: (.*):$`)

// broken returns the promises that an error of Check is about.
func broken(err error) []string {
	var promises []string
	for _, match := range brokenPromise.FindAllStringSubmatch(fmt.Sprint(err), -1) {
		promises = append(promises, match[1])
	}
	return promises
}

// handle makes middleware of a function that has the next handler.
func handle(serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, next) })
	}
}

// refuse makes an adapter that is right but for how it refuses.
func refuse(answer func(http.ResponseWriter, *http.Request, *httplimit.Refusal)) func(gate) middleware {
	return func(g gate) middleware {
		return handle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			admitted, refusal := g.Admit(r, r, w.Header())
			if refusal != nil {
				answer(w, r, refusal)
				return
			}
			next.ServeHTTP(w, admitted)
		})
	}
}

// around makes an adapter that is right but for how it goes on.
func around(goOn func(w http.ResponseWriter, r, admitted *http.Request, next http.Handler)) func(gate) middleware {
	return func(g gate) middleware {
		return handle(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			admitted, refusal := g.Admit(r, r, w.Header())
			if refusal != nil {
				refusal.Write(w, r)
				return
			}
			goOn(w, r, admitted, next)
		})
	}
}

// configured makes an adapter that changes what users configure.
func configured(change func(*config)) subject {
	s := adapter(httplimit.Middleware)
	right := s.Middleware
	s.Middleware = func(limiter *ratetier.Limiter, config config) middleware {
		change(&config)
		return right(limiter, config)
	}
	return s
}

// unwrappable is a wrapper as http.ResponseController wants it.
type unwrappable struct{ http.ResponseWriter }

func (u unwrappable) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// ending is a writer whose stream ends where it is flushed.
type ending struct {
	http.ResponseWriter
	end func()
}

func (e ending) Flush() { e.end() }
