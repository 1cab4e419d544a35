package ratetierchi_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"

	ratetierchi "github.com/ratetier/ratetier/adapters/chi"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

type mw = func(http.Handler) http.Handler

var subject = httplimittest.Subject[*http.Request, mw]{
	Middleware: ratetierchi.Middleware,
	Cost:       ratetierchi.Cost,
	Request:    func(r *http.Request) *http.Request { return r },
	Pattern:    httplimittest.Patterns("{name}", "*"),
	Handler:    build,
}

func build(app httplimittest.App[mw]) http.Handler {
	r := chi.NewRouter()
	r.Use(app.Use...)
	for _, group := range app.Groups {
		routes := func(r chi.Router) {
			r.Use(group.Use...)
			for _, route := range group.Routes {
				r.With(route.Use...).Method(route.Method, route.Pattern, route.Handler)
			}
		}
		if group.Prefix == "" {
			r.Group(routes)
		} else {
			r.Route(group.Prefix, routes)
		}
	}
	return r
}

func TestConformance(t *testing.T) { httplimittest.Run(t, subject) }

func BenchmarkRequest(b *testing.B) { httplimittest.Bench(b, subject, memorystore.New()) }
