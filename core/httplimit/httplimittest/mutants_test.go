package httplimittest_test

import (
	"net/http"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
)

type (
	config     = httplimit.Config[*http.Request]
	middleware = func(http.Handler) http.Handler
	gate       = httplimit.Gate[*http.Request]
)

// adapter is the plainest adapter for net/http, in the parts that can be broken.
func adapter(through func(gate) middleware) httplimittest.Subject[*http.Request, middleware] {
	return httplimittest.Subject[*http.Request, middleware]{
		Middleware: func(limiter *ratetier.Limiter, config config) middleware {
			return func(next http.Handler) http.Handler {
				route := func(r *http.Request) string {
					if mux, ok := next.(*http.ServeMux); ok {
						_, pattern := mux.Handler(r)
						return pattern
					}
					return r.Pattern
				}
				return through(httplimit.NewGuard(limiter, config, route))(next)
			}
		},
		Cost:    func(cost int64) middleware { return through(httplimit.NewCost[*http.Request](cost)) },
		Request: func(r *http.Request) *http.Request { return r },
		Handler: build,
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

func wrap(handler http.Handler, use []middleware) http.Handler {
	for i := len(use) - 1; i >= 0; i-- {
		handler = use[i](handler)
	}
	return handler
}

func TestAnAdapterThatKeepsItsPromises(t *testing.T) {
	httplimittest.Run(t, adapter(httplimit.Middleware))
}
