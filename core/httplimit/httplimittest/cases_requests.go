package httplimittest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// requests are the promises about what handlers get, and about special requests.
var requests = []promise{
	{"a CORS preflight passes uncharged, unless ChargePreflight says otherwise", func(t *trial) {
		const origin, method = "Origin: https://app.example", "Access-Control-Request-Method: POST"
		limiter := t.limiter(ratetier.Config{OnMissing: ratetier.Deny(http.StatusUnauthorized)})
		s := t.serve([]layer{limit(limiter, config{})}, t.route("OPTIONS /", cost(5)))
		for range 50 {
			s.send(http.MethodOptions, "/", http.NoBody, ana, origin, method).is(http.StatusOK, unmeasured...)
		}
		s.send(http.MethodOptions, "/", http.NoBody, origin, method).is(http.StatusOK, unmeasured...)
		t.left(limiter, "ana", 10)

		s = t.serve([]layer{limit(limiter, config{ChargePreflight: true})}, t.route("OPTIONS /"))
		s.send(http.MethodOptions, "/", http.NoBody, ana, origin, method).left(9)
	}},

	{"an OPTIONS request that is no preflight is charged", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})}, t.route("OPTIONS /"))
		s.send(http.MethodOptions, "/", http.NoBody, ana).left(9)
		s.send(http.MethodOptions, "/", http.NoBody, ana, "Access-Control-Request-Method: POST").left(8)
		s.send(http.MethodOptions, "/", http.NoBody, ana, "Origin: https://app.example").left(7)
	}},

	{"a refused HEAD request has the status and rate-limit headers of a GET, and no body", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)}}), config{})},
			t.route("GET /"), t.route("HEAD /"))
		s.send(http.MethodHead, "/", http.NoBody, ana).left(0)
		a := s.send(http.MethodHead, "/", http.NoBody, ana).is(http.StatusTooManyRequests,
			"X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1000060", "Retry-After: 60")
		if a.body != "" {
			a.errorf("the body is %q, want none", a.body)
		}
		s.get("/", ana).is(http.StatusTooManyRequests, "Retry-After: 60")
	}},

	{"a body that Identify peeked at reaches the handler byte for byte", func(t *trial) {
		echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{Identify: byBody})}, t.routeTo(echo, "POST /"))
		for i, body := range []string{
			`{"tenant": "ana", "text": "` + strings.Repeat("\x00\xff", 1000) + `"}`,
			"tenant=ana&text=%20",
			strings.Repeat("x", peekLimit),
		} {
			for j, sent := range []io.Reader{strings.NewReader(body), chunked(body)} {
				a := s.send(http.MethodPost, "/", sent).left(9 - 2*i - j)
				if a.body != body {
					a.errorf("the handler got %d bytes that differ from the %d sent", len(a.body), len(body))
				}
			}
		}
	}},

	{"a body beyond the limit of PeekBody is answered 413, whatever the policy", func(t *trial) {
		for _, policy := range []ratetier.Policy{ratetier.Deny(http.StatusServiceUnavailable), ratetier.Allow(), ratetier.UseDefaultTier()} {
			s := t.serve([]layer{limit(t.limiter(ratetier.Config{DefaultTier: "free", OnIdentifyFailed: policy}), config{Identify: byBody})}, t.route("POST /"))
			body := strings.Repeat("x", peekLimit+1)
			for _, sent := range []io.Reader{strings.NewReader(body), chunked(body)} {
				s.send(http.MethodPost, "/", sent).is(http.StatusRequestEntityTooLarge, "Retry-After:").
					json("application/json", `{"error":"Request Entity Too Large"}`)
			}
		}
		if got := t.reached.Load(); got != 0 {
			t.errorf("requests that were refused reached the handler %d times", got)
		}
	}},

	{"the handler finds the decision in the request's context, and settles what the work cost", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		settles := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admission, ok := ratetier.FromContext(r.Context())
			if !ok {
				t.errorf("ratetier.FromContext finds nothing in the handler")
				return
			}
			d := admission.Decision()
			fmt.Fprintf(w, "%v %s cost %d of %d, %d left", d.Outcome, d.Tier, d.Cost, d.Limit, d.Remaining)
			if err := admission.Settle(r.Context(), 3); err != nil {
				t.errorf("settle: %v", err)
			}
		})
		s := t.serve([]layer{limit(limiter, config{})}, t.routeTo(settles, "POST /", cost(8)))
		a := s.send(http.MethodPost, "/", http.NoBody, ana).left(2)
		if want := "allowed free cost 8 of 10, 2 left"; a.body != want {
			a.errorf("the handler found %q, want %q", a.body, want)
		}
		t.left(limiter, "ana", 7)
	}},
}

// peekLimit is the limit of byBody.
const peekLimit = 4096

// byBody takes the whole body for the user's name, whom it finds to be ana.
func byBody(r *http.Request) (ratetier.Identity, error) {
	body, err := httplimit.PeekBody(r, peekLimit)
	if err != nil {
		return ratetier.Identity{}, err
	}
	if len(body) == 0 {
		return ratetier.Identity{}, errors.New("the body is empty")
	}
	return ratetier.Identity{User: "ana", Tier: "free"}, nil
}

// bytesOf returns a body of n bytes, whose length is declared.
func bytesOf(n int) io.Reader { return strings.NewReader(strings.Repeat("x", n)) }

// chunked returns a body whose length is not declared.
func chunked(body string) io.Reader { return io.MultiReader(strings.NewReader(body)) }
