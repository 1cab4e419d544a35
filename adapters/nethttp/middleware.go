// Package ratetierhttp limits a net/http service by plan.
//
//	mux := http.NewServeMux()
//	mux.HandleFunc("GET /report", report)
//	handler := ratetierhttp.Mux(limiter, ratetierhttp.Config{
//		Identify:   identify,
//		RouteCosts: ratetierhttp.RouteCosts{"GET /report": 5},
//	}, mux)
//
// Put it inside recovery, logging, CORS and authentication, next to the mux.
package ratetierhttp

import (
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

// Middleware returns middleware that limits the requests to a handler. Routes are
// known to it where the handler is an [*http.ServeMux], as with [Mux], and where it
// is itself mounted on a pattern of one. It panics if the limiter is nil or the
// config cannot work.
func Middleware(limiter *ratetier.Limiter, config Config) func(http.Handler) http.Handler {
	plain := httplimit.Middleware(httplimit.NewGuard(limiter, config, pattern))
	return func(next http.Handler) http.Handler {
		if mux, ok := next.(*http.ServeMux); ok {
			return Mux(limiter, config, mux)
		}
		return plain(next)
	}
}

// Mux returns the mux with its requests limited. It asks the mux for the pattern of
// each request, by which RouteCosts are found. It panics if the limiter is nil or
// the config cannot work.
func Mux(limiter *ratetier.Limiter, config Config, mux *http.ServeMux) http.Handler {
	lookAhead := func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return pattern
	}
	return httplimit.Middleware(httplimit.NewGuard(limiter, config, lookAhead))(mux)
}

// Cost returns middleware for a route that declares what its requests cost in all,
// on either side of the limiter. It panics if the cost is negative.
func Cost(cost int64) func(http.Handler) http.Handler {
	return httplimit.Middleware(httplimit.NewCost[*http.Request](cost))
}

func pattern(r *http.Request) string { return r.Pattern }
