// Package ratetierhttp limits a net/http service by plan.
//
//	mux := http.NewServeMux()
//	mux.HandleFunc("GET /report", report)
//	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
//		Identify:   identify,
//		RouteCosts: ratetierhttp.RouteCosts{"GET /report": 5},
//	}, mux)
//
// Put it inside recovery, logging, CORS and authentication, next to the mux. Handlers
// read the decision with [ratetier.FromContext] of the request's context.
package ratetierhttp

import (
	"errors"
	"net/http"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// Config is [httplimit.Config] for net/http, whose context is the request:
//
//	Identify   func(*http.Request) (ratetier.Identity, error) // required
//	RouteCosts RouteCosts                                     // "GET /report": 5
//	Cost       func(r *http.Request, route string) int64      // instead of RouteCosts
//	Skip       func(*http.Request) bool
//	ClientAddr func(*http.Request) string
//	Headers    httplimit.Headers
//	Problem    bool
//	Respond    func(*http.Request, *httplimit.Refusal)
type Config = httplimit.Config[*http.Request]

// RouteCosts says what routes cost, by patterns of [http.ServeMux].
type RouteCosts = httplimit.RouteCosts

// Mux returns the mux with its requests limited. It is [Middleware] around the mux.
func Mux(limiter *ratetier.Limiter, config Config, mux *http.ServeMux) http.Handler {
	return Middleware(limiter, config)(mux)
}

// Middleware returns middleware that limits the requests to a handler. It knows
// their routes where the handler is an [*http.ServeMux], or one that is limited
// already, and where it is itself mounted on a pattern. Elsewhere RouteCosts cannot
// apply, which it logs as an error. It panics if the limiter is nil or the config
// cannot work.
func Middleware(limiter *ratetier.Limiter, config Config) func(http.Handler) http.Handler {
	limit := httplimit.Middleware(httplimit.NewGuard(limiter, config, func(r *http.Request) (string, error) {
		if r.Pattern == "" {
			return "", errNotNext
		}
		return r.Pattern, nil
	}))
	limitMux := httplimit.Middleware(httplimit.NewGuard(limiter, config, func(r *http.Request) (string, error) {
		return r.Pattern, nil
	}))
	return func(next http.Handler) http.Handler {
		if mux, ok := next.(router); ok {
			return lookAhead{mux, limitMux(next)}
		}
		return limit(next)
	}
}

var errNotNext = errors.New("the limiter is not next to the mux and knows no routes: use ratetierhttp.Mux")

// Cost returns middleware for a route that declares what its requests cost in all,
// on either side of the limiter. It panics if the cost is negative.
func Cost(cost int64) func(http.Handler) http.Handler {
	return httplimit.Middleware(httplimit.NewCost[*http.Request](cost))
}

// router is what an [*http.ServeMux] is.
type router interface {
	http.Handler
	Handler(*http.Request) (http.Handler, string)
}

// lookAhead is a router that is limited, and a router itself, for another limiter
// around it.
type lookAhead struct {
	router
	limited http.Handler
}

// ServeHTTP sets the pattern before the mux does: for the limiter, and for
// middleware outside, which never sees the copy of the request that the mux gets.
func (l lookAhead) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, r.Pattern = l.Handler(r)
	l.limited.ServeHTTP(w, r)
}
