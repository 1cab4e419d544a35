package httplimittest_test

import (
	"net/http"
	"slices"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
)

type (
	gate       = httplimit.Gate[*http.Request]
	config     = httplimit.Config[*http.Request]
	middleware = func(http.Handler) http.Handler
	subject    = httplimittest.Subject[*http.Request, middleware]
)

func TestAPlainAdapterKeepsAllPromises(t *testing.T) {
	httplimittest.Run(t, adapter(httplimit.Middleware))
	if err := httplimittest.Check(adapter(httplimit.Middleware)); err != nil {
		t.Errorf("Check: %v", err)
	}
}

// adapter is the plainest adapter for net/http. Through sends requests through a
// gate.
func adapter(through func(gate) middleware) subject {
	return subject{
		Middleware: func(limiter *ratetier.Limiter, config config) middleware {
			return func(next http.Handler) http.Handler {
				return through(httplimit.NewGuard(limiter, config, lookAhead(next)))(next)
			}
		},
		Cost:    func(cost int64) middleware { return through(httplimit.NewCost[*http.Request](cost)) },
		Request: func(r *http.Request) *http.Request { return r },
		Handler: build,
	}
}

func lookAhead(next http.Handler) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		if mux, ok := next.(*http.ServeMux); ok {
			_, pattern := mux.Handler(r)
			return pattern, nil
		}
		return r.Pattern, nil
	}
}

func build(app httplimittest.App[middleware]) http.Handler {
	mux := http.NewServeMux()
	for _, group := range app.Groups {
		for _, route := range group.Routes {
			mux.Handle(route.Method+" "+group.Prefix+route.Pattern, wrap(wrap(route.Handler, route.Use), group.Use))
		}
	}
	return wrap(mux, app.Use)
}

// wrap puts the middleware around the handler, the first outermost.
func wrap(handler http.Handler, use []middleware) http.Handler {
	for _, m := range slices.Backward(use) {
		handler = m(handler)
	}
	return handler
}

func TestPatternsSpellsPatternsForAFramework(t *testing.T) {
	for _, step := range []struct{ param, rest, pattern, want string }{
		{":name", "*name", "/", "/"},
		{":name", "*name", "GET /users/{id}/posts/{post}", "GET /users/:id/posts/:post"},
		{":name", "*name", "/files/{path...}", "/files/*path"},
		{":name", "*", "/files/{path...}", "/files/*"},
		{"{name}", "*", "/users/{id}/files/{path...}", "/users/{id}/files/*"},
	} {
		if got := httplimittest.Patterns(step.param, step.rest)(step.pattern); got != step.want {
			t.Errorf("Patterns(%q, %q): %q became %q, want %q", step.param, step.rest, step.pattern, got, step.want)
		}
	}
}
