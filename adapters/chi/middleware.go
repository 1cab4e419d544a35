// Package ratetierchi limits a chi service by plan.
//
//	r := chi.NewRouter()
//	r.Use(ratetierchi.Middleware(limiter, ratetierchi.Config{
//		Identify:   identify,
//		RouteCosts: ratetierchi.RouteCosts{"GET /report/{id}": 5},
//	}))
//	r.Get("/report/{id}", report)
//
// Use it after recovery, logging, CORS and authentication. Handlers read the
// decision with [ratetier.FromContext] of the request's context.
package ratetierchi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// Config is [httplimit.Config] for chi, whose context is the request:
//
//	Identify   func(*http.Request) (ratetier.Identity, error) // required
//	RouteCosts RouteCosts                                     // "GET /report/{id}": 5
//	Cost       func(r *http.Request, route string) int64      // instead of RouteCosts
//	Skip       func(*http.Request) bool
//	ClientAddr func(*http.Request) string                     // such as middleware.GetClientIP
//	Headers    httplimit.Headers
//	Problem    bool
//	Respond    func(*http.Request, *httplimit.Refusal)
type Config = httplimit.Config[*http.Request]

// RouteCosts says what routes cost, by the whole pattern as [chi.Context.RoutePattern]
// has it: from the root router, whichever router the limiter is used in, and without
// a slash at the end.
type RouteCosts = httplimit.RouteCosts

// Middleware returns middleware for a router, a group or a route. It looks the route
// up ahead of chi. Around a router, instead of in it, it knows no routes: RouteCosts
// cannot apply there, which it logs as an error. It panics if the limiter is nil or
// the config cannot work.
func Middleware(limiter *ratetier.Limiter, config Config) func(http.Handler) http.Handler {
	for key := range config.RouteCosts {
		if name := trimSlash(key); name != key {
			panic(fmt.Errorf("ratetier: middleware: RouteCosts: %q: patterns of chi end without a slash: write %q", key, name))
		}
	}
	return httplimit.Middleware(httplimit.NewGuard(limiter, config, func(r *http.Request) (string, error) {
		rctx := chi.RouteContext(r.Context())
		if rctx == nil {
			return "", errAround
		}
		return route(rctx, r), nil
	}))
}

var errAround = errors.New("the limiter is around the router and knows no routes: use it in the router")

// Cost returns middleware for a route that declares what its requests cost in all,
// on either side of the limiter. It panics if the cost is negative.
func Cost(cost int64) func(http.Handler) http.Handler {
	return httplimit.Middleware(httplimit.NewCost[*http.Request](cost))
}

// route returns the whole pattern that the request will have been routed by in the
// end, "" where there is none.
func route(rctx *chi.Context, r *http.Request) string {
	pattern := rctx.RoutePattern()
	if rctx.Routes == nil || pattern != "" && !strings.HasSuffix(pattern, "*") {
		return pattern // there is no more to know: it has been routed to the end
	}
	path := cmp.Or(r.URL.RawPath, r.URL.Path, "/")
	switch {
	case rctx.RoutePath == "":
	case pattern == "":
		path = rctx.RoutePath // as rewritten by middleware of the root router
	case !strings.HasSuffix(rctx.RoutePath, "/"):
		path = strings.TrimSuffix(path, "/") // as by StripSlashes; RoutePath is only the rest
	}
	return find(rctx.Routes, cmp.Or(rctx.RouteMethod, r.Method), path)
}

// find looks the path up as chi is going to.
func find(routes chi.Routes, method, path string) string {
	rctx, _ := contexts.Get().(*chi.Context)
	defer contexts.Put(rctx)
	rctx.Reset()
	pattern := routes.Find(rctx, method, path)
	if pattern == "" && method == http.MethodHead {
		rctx.Reset()
		pattern = routes.Find(rctx, http.MethodGet, path) // as GetHead will have it
	}
	return trimSlash(pattern)
}

// contexts are used again, since looking ahead is not to allocate.
var contexts = sync.Pool{New: func() any { return chi.NewRouteContext() }}

// trimSlash trims a pattern, which may have a method, as chi itself does.
func trimSlash(pattern string) string {
	if pattern == "/" || strings.HasSuffix(pattern, " /") {
		return pattern
	}
	return strings.TrimSuffix(pattern, "/")
}
