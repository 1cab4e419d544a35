package httplimittest

import (
	"fmt"
	"net/http"
	"strings"

	ratetier "github.com/ratetier/ratetier/core"
)

// costs are the promises about what a request costs.
var costs = []promise{
	{"RouteCosts are found by method and pattern, and by pattern alone", func(t *trial) {
		s := t.serveApp(App[layer]{
			Use: []layer{limit(t.limiter(ratetier.Config{}), config{RouteCosts: tariff})},
			Groups: []Group[layer]{
				{Routes: []Route[layer]{t.route("GET /"), t.route("GET /users/{id}"), t.route("POST /users/{id}"), t.route("GET /files/{path...}")}},
				{Prefix: "/api", Routes: []Route[layer]{t.route("GET /reports/{id}/pages/{page}"), t.route("GET /backup"), t.route("POST /backup")}},
			},
		})
		t.costs(s, []step{
			{"GET", "/", 200, 1},
			{"GET", "/users/7", 200, 3},
			{"GET", "/users/a%20b", 200, 3},
			{"POST", "/users/7", 200, 1},
			{"GET", "/files/a/b/c.txt", 200, 4},
			{"GET", "/api/reports/7/pages/2", 200, 5},
			{"GET", "/api/backup", 200, 20},
			{"POST", "/api/backup", 200, 10},
		})
	}},

	{"RouteCosts are found by a limiter of a group, and of a route", func(t *trial) {
		limited := func() layer { return limit(t.limiter(ratetier.Config{}), config{RouteCosts: tariff}) }
		s := t.serveApp(App[layer]{
			Groups: []Group[layer]{
				{Prefix: "/api", Use: []layer{limited()}, Routes: []Route[layer]{t.route("GET /reports/{id}/pages/{page}"), t.route("POST /backup")}},
				{Routes: []Route[layer]{t.route("GET /users/{id}", limited()), t.route("GET /files/{path...}", limited())}},
			},
		})
		t.costs(s, []step{
			{"GET", "/api/reports/7/pages/2", 200, 5},
			{"POST", "/api/backup", 200, 10},
			{"GET", "/users/7", 200, 3},
			{"GET", "/files/a/b/c.txt", 200, 4},
		})
	}},

	{"a request that matches no route costs 1", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{RouteCosts: tariff})}, t.route("GET /users/{id}"), t.route("GET /api/backup"))
		t.costs(s, []step{
			{"GET", "/nothing", 404, 1},
			{"GET", "/users", 404, 1},
			{"POST", "/users/7", 405, 1},
			{"DELETE", "/api/backup", 405, 1}, // although there is a cost for every method
		})
	}},

	{"a HEAD request costs what GET costs", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{RouteCosts: tariff})}, t.route("GET /users/{id}"), t.route("HEAD /users/{id}"))
		t.costs(s, []step{{"GET", "/users/7", 200, 3}, {"HEAD", "/users/7", 200, 3}})
	}},

	{"Cost is told the pattern of the route, and none where none matched", func(t *trial) {
		routes := map[string]string{"/users/7": t.pattern("/users/{id}"), "/nothing": ""}
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{Cost: func(r *http.Request, route string) int64 {
			if method, pattern, ok := strings.Cut(route, " "); ok && method == http.MethodGet {
				route = pattern // ServeMux has the method in its patterns
			}
			if want := routes[r.URL.Path]; route != want {
				t.errorf("Cost is told the route %q of %s, want %q", route, r.URL.Path, want)
			}
			return 2
		}})}, t.route("GET /users/{id}"))
		t.costs(s, []step{{"GET", "/users/7", 200, 2}, {"GET", "/nothing", 404, 2}})
	}},

	{"a cost of 0 passes, also where nothing is left", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{RouteCosts: map[string]int64{"/free": 0}})}, t.route("GET /"), t.route("GET /free"))
		s.get("/free", ana).left(10)
		limiter.Charge(t.context, ratetier.Identity{User: "ana", Tier: "free"}, 10)
		s.get("/free", ana).left(0)
		s.get("/", ana).is(http.StatusTooManyRequests)
	}},

	{"Skip leaves a request alone: not identified, not charged, no headers", func(t *trial) {
		limiter := t.limiter(ratetier.Config{OnMissing: ratetier.Deny(http.StatusUnauthorized)})
		s := t.serve([]layer{limit(limiter, config{
			Skip: func(r *http.Request) bool { return r.URL.Path == "/health" },
		})}, t.route("GET /"), t.route("GET /health", cost(5)))
		s.get("/health").is(http.StatusOK, unmeasured...)
		s.get("/health", ana).is(http.StatusOK, unmeasured...)
		t.left(limiter, "ana", 10)
		s.get("/").is(http.StatusUnauthorized)
	}},

	{"a cost declared behind the limiter is what the request costs in all", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		s := t.serve([]layer{limit(limiter, config{RouteCosts: map[string]int64{"GET /more": 2, "GET /less": 5}})},
			t.route("GET /more", cost(4)), t.route("GET /less", cost(3)), t.route("GET /free", cost(0)), t.route("GET /never", cost(11)))
		s.get("/more", ana).left(6)
		s.get("/less", ana).left(3)
		s.get("/free", ana).left(3)
		s.get("/more", ana).is(http.StatusTooManyRequests, "X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 1000042", "Retry-After: 6").
			json("application/json", `{"error":"rate limit exceeded","tier":"free","retry_after":6}`)
		t.left(limiter, "ana", 3)
		s.get("/never", ana).is(http.StatusForbidden, "Retry-After:").
			json("application/json", `{"error":"request cost exceeds tier limit","tier":"free","cost":11,"limit":10}`)
		t.left(limiter, "ana", 3)
		if got := t.reached.Load(); got != 3 {
			t.errorf("3 allowed and 2 refused requests reached the handler %d times", got)
		}
	}},

	{"a cost declared before the limiter is what the request costs in all", func(t *trial) {
		limiter := t.limiter(ratetier.Config{})
		limited := limit(limiter, config{RouteCosts: map[string]int64{"GET /": 2}})
		s := t.serve(nil, t.route("GET /", cost(4), limited), t.route("GET /free", cost(0), limited), t.route("GET /never", cost(11), limited))
		s.get("/", ana).left(6)
		s.get("/", ana).left(2)
		s.get("/free", ana).left(2)
		s.get("/", ana).is(http.StatusTooManyRequests, "X-RateLimit-Remaining: 2", "Retry-After: 12")
		s.get("/never", ana).is(http.StatusForbidden, "Retry-After:")
		t.left(limiter, "ana", 2)

		s = t.serve([]layer{cost(4), limit(t.limiter(ratetier.Config{}), config{})})
		s.get("/", ana).left(6)
	}},

	{"a cost declared for a group is what requests to each of its routes cost in all", func(t *trial) {
		s := t.serveApp(App[layer]{
			Use:    []layer{limit(t.limiter(ratetier.Config{}), config{})},
			Groups: []Group[layer]{{Prefix: "/api", Use: []layer{cost(4)}, Routes: []Route[layer]{t.route("GET /a"), t.route("GET /b", cost(5))}}},
		})
		t.costs(s, []step{{"GET", "/api/a", 200, 4}, {"GET", "/api/b", 200, 5}})
	}},

	{"a declared cost of a request that policy lets pass is charged to nobody", func(t *trial) {
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{OnMissing: ratetier.Allow()}), config{})}, t.route("GET /", cost(20)))
		s.get("/").is(http.StatusOK, unmeasured...)
		s.get("/", ana, "X-Tier: enterprise").is(http.StatusOK, unmeasured...)
	}},
}

// tariff has costs for the routes that the cases use.
var tariff = map[string]int64{
	"GET /users/{id}":                    3,
	"GET /files/{path...}":               4,
	"GET /api/reports/{id}/pages/{page}": 5,
	"/api/backup":                        10,
	"GET /api/backup":                    20,
}

// step is a request, what it is answered and what it costs.
type step struct {
	method, path string
	status, cost int
}

// costs takes the steps, each as another user with a full bucket of 100.
func (t *trial) costs(s *service, steps []step) {
	for i, step := range steps {
		s.send(step.method, step.path, http.NoBody, "X-Tier: pro", fmt.Sprintf("X-User: %d", i)).
			is(step.status, fmt.Sprintf("X-RateLimit-Remaining: %d", 100-step.cost))
	}
}
