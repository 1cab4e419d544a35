package httplimittest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// answers are the promises about statuses, headers and bodies.
var answers = []promise{
	{"an allowed answer has the handler's body and each X-RateLimit header once", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		for i := range 10 {
			a := s.get("/", ana).is(http.StatusOK,
				"X-RateLimit-Limit: 10",
				fmt.Sprintf("X-RateLimit-Remaining: %d", 9-i),
				fmt.Sprintf("X-RateLimit-Reset: %d", start+6*(i+1)),
				"Retry-After:", "RateLimit:", "RateLimit-Policy:")
			if a.body != "ok" {
				a.errorf("the body is %q, want %q", a.body, "ok")
			}
		}
	}},

	{"a request that does not fit is answered 429 with the time to wait, and never reaches the handler", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		for range 10 {
			s.get("/", ana)
		}
		for range 3 {
			s.get("/", ana).is(http.StatusTooManyRequests,
				"X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1000060", "Retry-After: 6").
				json("application/json", `{"error":"rate limit exceeded","tier":"free","retry_after":6}`)
		}
		if got := t.reached.Load(); got != 10 {
			t.errorf("13 requests reached the handler %d times, want 10", got)
		}
	}},

	{"a client that waits as long as Retry-After says gets through", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		for range 10 {
			s.get("/", ana)
		}
		t.clock.Advance(6 * time.Second)
		s.get("/", ana).left(0)
		s.get("/", ana).is(http.StatusTooManyRequests, "Retry-After: 6")
		t.clock.Advance(30 * time.Second)
		for i := range 5 {
			s.get("/", ana).left(4 - i)
		}
		s.get("/", ana).is(http.StatusTooManyRequests, "Retry-After: 6")
	}},

	{"Retry-After is whole seconds, rounded up", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{
			Tiers: ratetier.Tiers{"free": ratetier.PerSecond(5).Burst(1)},
		}), config{})})
		s.get("/", ana).left(0)
		t.clock.Advance(20 * time.Millisecond)
		s.get("/", ana).is(http.StatusTooManyRequests, "Retry-After: 1", "X-RateLimit-Reset: 1000001")
		t.clock.Advance(time.Second)
		s.get("/", ana).left(0)
	}},

	{"a cost above the burst is answered 403 without Retry-After, and charges nothing", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{Cost: func(*http.Request, string) int64 { return 11 }})})
		s.get("/", ana).is(http.StatusForbidden, "Retry-After:").
			json("application/json", `{"error":"request cost exceeds tier limit","tier":"free","cost":11,"limit":10}`)
		t.left(limiter, "ana", 10)
	}},

	{"a refused request is charged nothing: what is left stays left", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{Cost: func(r *http.Request, _ string) int64 { return r.ContentLength }})})
		s.send(http.MethodGet, "/", bytesOf(8), ana).left(2)
		s.send(http.MethodGet, "/", bytesOf(5), ana).is(http.StatusTooManyRequests,
			"X-RateLimit-Remaining: 2", "X-RateLimit-Reset: 1000048", "Retry-After: 18")
		t.left(limiter, "ana", 2)
	}},

	{"an unlimited tier passes without rate-limit headers", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		for range 20 {
			s.get("/", ana, "X-Tier: enterprise").is(http.StatusOK, unmeasured...)
		}
	}},

	{"a blocked tier is answered 403", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		s.get("/", ana, "X-Tier: closed").is(http.StatusForbidden, unmeasured...).
			json("application/json", `{"error":"Forbidden"}`)
	}},

	{"a missing identity is answered as OnMissing says", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		s.get("/").is(http.StatusForbidden, unmeasured...).json("application/json", `{"error":"Forbidden"}`)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{OnMissing: ratetier.Deny(http.StatusUnauthorized)}), config{})})
		s.get("/").is(http.StatusUnauthorized, unmeasured...).json("application/json", `{"error":"Unauthorized"}`)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{OnMissing: ratetier.Allow()}), config{})})
		s.get("/").is(http.StatusOK, unmeasured...)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{})})
		s.get("/").left(9)
		s.get("/", ana).left(9)
	}},

	{"an unknown tier is answered as OnUnknownTier says", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		s.get("/", ana, "X-Tier: gold").is(http.StatusForbidden, unmeasured...).json("application/json", `{"error":"Forbidden"}`)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{OnUnknownTier: ratetier.Deny(http.StatusPaymentRequired)}), config{})})
		s.get("/", ana, "X-Tier: gold").is(http.StatusPaymentRequired, unmeasured...).json("application/json", `{"error":"Payment Required"}`)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{OnUnknownTier: ratetier.Allow()}), config{})})
		s.get("/", ana, "X-Tier: gold").is(http.StatusOK, unmeasured...)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free"}), config{})})
		s.get("/", ana, "X-Tier: gold").left(9)
		s.get("/", ana, "X-Tier: silver").left(8)
		s.get("/", bea, "X-Tier: gold").left(9)
	}},

	{"a failed look-up of the identity is answered 503, not like a missing one", func(t *trial) {
		fails := config{Identify: func(*http.Request) (ratetier.Identity, error) {
			return ratetier.Identity{}, errors.New("the database at db.internal:5432 is down")
		}}
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free", OnMissing: ratetier.Allow()}), fails)})
		s.get("/").is(http.StatusServiceUnavailable, unmeasured...).json("application/json", `{"error":"service unavailable"}`)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free", OnIdentifyFailed: ratetier.UseDefaultTier()}), fails)})
		s.get("/").left(9)

		s = t.serve([]layer{limit(t.limiter(ratetier.Config{OnIdentifyFailed: ratetier.Allow()}), fails)})
		s.get("/").is(http.StatusOK, unmeasured...)
	}},

	{"a store that fails lets requests pass or answers 503, as OnStoreFailed says, and never 429", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{Store: brokenStore{}}), config{})})
		for range 20 {
			s.get("/", ana).is(http.StatusOK, unmeasured...)
		}
		s = t.serve([]layer{limit(t.limiter(ratetier.Config{Store: brokenStore{}, OnStoreFailed: ratetier.Deny(http.StatusServiceUnavailable)}), config{})})
		s.get("/", ana).is(http.StatusServiceUnavailable, unmeasured...).json("application/json", `{"error":"service unavailable"}`)
	}},

	{"a negative cost is answered 500, and charges nothing", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{Cost: func(*http.Request, string) int64 { return -5 }})})
		s.get("/", ana).is(http.StatusInternalServerError, unmeasured...).json("application/json", `{"error":"Internal Server Error"}`)
		t.left(limiter, "ana", 10)
	}},

	{"shadow mode shows what is left and lets everything pass", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{Shadow: true}), config{})})
		for i := range 10 {
			s.get("/", ana).left(9 - i)
		}
		s.get("/", ana).left(0)
		s.get("/").is(http.StatusOK, unmeasured...)
	}},

	{"a tier's name is escaped, whatever it is", func(t *trial) {
		name := "a\"b\\c\r\nX-Evil: 1\u2028<é>"
		tiers := ratetier.Tiers{name: ratetier.PerMinute(1)}
		identify := func(*http.Request) (ratetier.Identity, error) { return ratetier.Identity{User: "ana", Tier: name}, nil }
		for _, problem := range []bool{false, true} {
			s := t.serve([]layer{limit(t.limiter(ratetier.Config{Tiers: tiers}), config{
				Identify: identify, Problem: problem, Headers: httplimit.IETF,
			})})
			policy := `"a\"b\\c%0D%0AX-Evil: 1%E2%80%A8<%C3%A9>"`
			s.get("/").is(http.StatusOK, "RateLimit-Policy: "+policy+";q=1;w=60", "RateLimit: "+policy+";r=0;t=60", "X-Evil:")
			a := s.get("/").is(http.StatusTooManyRequests, "RateLimit: "+policy+";r=0;t=60", "X-Evil:")
			quoted := `"a\"b\\c\r\nX-Evil: 1\u2028<é>"`
			if problem {
				a.json("application/problem+json", `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
					"title":"Too Many Requests","status":429,"violated-policies":[`+policy+`],"retry_after":60}`)
			} else {
				a.json("application/json", `{"error":"rate limit exceeded","tier":`+quoted+`,"retry_after":60}`)
			}
		}
	}},

	{"Problem makes every refusal application/problem+json", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{OnMissing: ratetier.Deny(http.StatusUnauthorized)}), config{
			Problem: true,
			Cost:    func(r *http.Request, _ string) int64 { return r.ContentLength },
		})})
		const media = "application/problem+json"
		s.send(http.MethodGet, "/", bytesOf(10), ana)
		s.send(http.MethodGet, "/", bytesOf(2), ana).is(http.StatusTooManyRequests, "Retry-After: 12", "X-RateLimit-Remaining: 0").
			json(media, `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
				"title":"Too Many Requests","status":429,"violated-policies":["free"],"retry_after":12}`)
		s.send(http.MethodGet, "/", bytesOf(11), ana).is(http.StatusForbidden, "Retry-After:").
			json(media, `{"type":"about:blank","title":"Forbidden","status":403}`)
		s.get("/").is(http.StatusUnauthorized, unmeasured...).
			json(media, `{"type":"about:blank","title":"Unauthorized","status":401}`)
	}},

	{"Headers chooses X-RateLimit, IETF, both or none, and a 429 always has Retry-After", func(t *trial) {
		const (
			policy = `RateLimit-Policy: "free";q=1;w=60`
			left   = `RateLimit: "free";r=0;t=60`
			x      = "X-RateLimit-Remaining: 0"
		)
		for _, mode := range []struct {
			headers httplimit.Headers
			want    []string
		}{
			{0, []string{"RateLimit-Policy:", "RateLimit:", x}},
			{httplimit.XRateLimit, []string{"RateLimit-Policy:", "RateLimit:", x}},
			{httplimit.IETF, []string{policy, left, "X-RateLimit-Limit:", "X-RateLimit-Remaining:", "X-RateLimit-Reset:"}},
			{httplimit.XRateLimit | httplimit.IETF, []string{policy, left, x}},
			{httplimit.NoHeaders, unmeasured[:5]},
		} {
			s := t.serve([]layer{limit(t.limiter(ratetier.Config{
				Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)},
			}), config{Headers: mode.headers})})
			s.get("/", ana).is(http.StatusOK, mode.want...).is(http.StatusOK, "Retry-After:")
			s.get("/", ana).is(http.StatusTooManyRequests, mode.want...).is(http.StatusTooManyRequests, "Retry-After: 60")
		}
	}},

	{"Respond replaces the status, type and body of a refusal", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)}}), config{
			Respond: func(r *http.Request, refusal *httplimit.Refusal) {
				refusal.Status = http.StatusServiceUnavailable
				refusal.ContentType = "text/plain; charset=utf-8"
				refusal.Body = fmt.Appendf(nil, "slow down, %s", r.Header.Get("X-User"))
			},
		})})
		s.get("/", ana).left(0)
		a := s.get("/", ana).is(http.StatusServiceUnavailable, "Content-Type: text/plain; charset=utf-8", "Retry-After: 60", "X-RateLimit-Remaining: 0")
		if want := "slow down, ana"; a.body != want {
			a.errorf("the body is %q, want %q", a.body, want)
		}
	}},

	{"a refusal keeps the headers that were set before it, as by CORS", func(t *trial) {
		const cors = "Access-Control-Allow-Origin: https://app.example"
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)}}), config{})})
		s.get("/", ana).is(http.StatusOK, cors)
		s.get("/", ana).is(http.StatusTooManyRequests, cors)
		s.get("/").is(http.StatusForbidden, cors)
	}},

	{"a handler that panics leaves its request charged and the next one served", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		s := t.serve([]layer{limit(limiter, config{})}, t.routeTo(panics, "GET /panic"), t.route("GET /"))
		s.get("/panic", ana)
		s.get("/", ana).left(8)
	}},

	{"of many requests at once, exactly as many pass as fit", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})})
		var passed, refused atomic.Int64
		var clients sync.WaitGroup
		for range 100 {
			clients.Go(func() {
				switch a := s.get("/", ana); a.status {
				case http.StatusOK:
					passed.Add(1)
				case http.StatusTooManyRequests:
					refused.Add(1)
				default:
					a.errorf("status %d: %v", a.status, a.err)
				}
			})
		}
		clients.Wait()
		if passed.Load() != 10 || refused.Load() != 90 || t.reached.Load() != 10 {
			t.errorf("of 100 requests %d passed, %d were refused and %d reached the handler, want 10, 90 and 10",
				passed.Load(), refused.Load(), t.reached.Load())
		}
	}},
}

// brokenStore is a store that never answers.
type brokenStore struct{}

var errStore = errors.New("httplimittest: the store is broken")

func (brokenStore) Apply(context.Context, *ratetier.Request, *ratetier.Result) error { return errStore }

func (brokenStore) Reset(context.Context, ratetier.Key) error { return errStore }
