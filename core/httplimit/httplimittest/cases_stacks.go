package httplimittest

import (
	"net/http"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// stacks are the promises about requests that pass several limiters.
var stacks = []promise{
	{"of several limiters each header is sent once, from the one with the least left", func(t *trial) {
		wide := limit(t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerHour(100)}}), config{Headers: httplimit.XRateLimit | httplimit.IETF})
		narrow := limit(t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(2)}}), config{Headers: httplimit.XRateLimit | httplimit.IETF})
		want := []string{
			"X-RateLimit-Limit: 2", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 1000030",
			`RateLimit-Policy: "free";q=2;w=60`, `RateLimit: "free";r=1;t=30`,
		}
		t.serve([]layer{wide, narrow}).get("/", ana).is(http.StatusOK, want...)
		t.serve([]layer{narrow, wide}).get("/", bea).is(http.StatusOK, want...)
		t.serve([]layer{narrow}, t.route("GET /", wide)).get("/", "X-User: eva").is(http.StatusOK, want...)
	}},

	{"a limiter that measures nothing leaves the headers of another as they are", func(t *trial) {
		limited := limit(t.limiter(ratetier.Config{}), config{})
		unlimited := limit(t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.Unlimited()}}), config{})
		t.serve([]layer{limited, unlimited}).get("/", ana).left(9)
		t.serve([]layer{unlimited, limited}).get("/", bea).left(9)
	}},

	{"a request refused by one of several limiters is charged by none", func(t *trial) {
		outer := t.limiter(ratetier.Config{})
		inner := t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)}})
		s := t.serve([]layer{limit(outer, config{}), limit(inner, config{})})
		s.get("/", ana).left(0)
		s.get("/", ana).is(http.StatusTooManyRequests, "X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "Retry-After: 60")
		t.left(outer, "ana", 9)
		t.clock.Advance(time.Minute)
		s.get("/", ana).left(0)

		s = t.serve([]layer{limit(inner, config{}), limit(outer, config{})})
		outer.Charge(t.context, ratetier.Identity{User: "bea", Tier: "free"}, 10)
		s.get("/", bea).is(http.StatusTooManyRequests, "X-RateLimit-Limit: 10", "Retry-After: 6")
		t.left(inner, "bea", 1)
	}},

	{"a limiter mounted twice charges a request once", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		limited := limit(limiter, config{})
		s := t.serveApp(App[layer]{Use: []layer{limited}, Groups: []Group[layer]{
			{Prefix: "/api", Use: []layer{limited}, Routes: []Route[layer]{t.route("GET /x", limited)}},
		}})
		for i := range 10 {
			s.get("/api/x", ana).left(9 - i)
		}
		s.get("/api/x", ana).is(http.StatusTooManyRequests, "Retry-After: 6")
	}},

	{"a limiter mounted twice charges the higher of two costs", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{})},
			t.route("GET /", limit(limiter, config{Cost: func(*http.Request, string) int64 { return 6 }})))
		s.get("/", ana).left(4)
		s.get("/", ana).is(http.StatusTooManyRequests, "X-RateLimit-Remaining: 4", "Retry-After: 12")
		t.left(limiter, "ana", 4)
	}},

	{"a limiter mounted twice charges two callers, if the two mounts identify two", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{}), limit(limiter, config{Identify: func(*http.Request) (ratetier.Identity, error) {
			return ratetier.Identity{User: "the organisation", Tier: "free"}, nil
		}})})
		s.get("/", ana).left(9)
		s.get("/", bea).left(8)
		t.left(limiter, "ana", 9)
		t.left(limiter, "the organisation", 8)
	}},

	{"a cost declared between two limiters counts with both", func(t *trial) {
		outer, inner := t.limiter(ratetier.Config{}), t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(outer, config{})}, t.route("GET /", cost(4), limit(inner, config{})))
		s.get("/", ana).left(6)
		t.left(outer, "ana", 6)
		t.left(inner, "ana", 6)
	}},

	{"a cost declared between two mounts of one limiter is what the request costs in all", func(t *trial) {
		limited := limit(t.limiter(ratetier.Config{}), config{RouteCosts: map[string]int64{"GET /": 5}})
		s := t.serve([]layer{limited}, t.route("GET /", cost(3), limited))
		s.get("/", ana).left(7)
		s.get("/", ana).left(4)
	}},

	{"a declared cost counts with every limiter of the request, and refused by one, with none", func(t *trial) {
		outer := t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(20)}})
		inner := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(outer, config{}), limit(inner, config{})}, t.route("GET /", cost(6)))
		s.get("/", ana).left(4)
		t.left(outer, "ana", 14)
		s.get("/", ana).is(http.StatusTooManyRequests, "X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 4", "Retry-After: 12")
		t.left(outer, "ana", 14)
		t.left(inner, "ana", 4)
	}},
}
