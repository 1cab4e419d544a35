package ratetierhttp_test

import (
	"net/http"
	"slices"
	"testing"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

type middleware = func(http.Handler) http.Handler

var subject = httplimittest.Subject[*http.Request, middleware]{
	Middleware: ratetierhttp.Middleware,
	Cost:       ratetierhttp.Cost,
	Request:    func(r *http.Request) *http.Request { return r },
	Handler:    build,
}

func build(app httplimittest.App[middleware]) http.Handler {
	mux := http.NewServeMux()
	for _, group := range app.Groups {
		for _, route := range group.Routes {
			mux.Handle(route.Method+" "+group.Prefix+route.Pattern, wrap(route.Handler, slices.Concat(group.Use, route.Use)))
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

func TestConformance(t *testing.T) { httplimittest.Run(t, subject) }

func BenchmarkRequest(b *testing.B) { httplimittest.Bench(b, subject, memorystore.New()) }
