// Package ratetiergin limits a gin service by plan.
//
//	r := gin.New()
//	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{
//		Identify:   identify,
//		RouteCosts: ratetiergin.RouteCosts{"GET /report/:id": 5},
//	}))
//	r.GET("/report/:id", report)
//
// Use it after recovery, logging, CORS and authentication, and before the routes:
// gin leaves alone those that were registered earlier.
package ratetiergin

import (
	"github.com/gin-gonic/gin"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// Config is [httplimit.Config] for gin:
//
//	Identify   func(*gin.Context) (ratetier.Identity, error) // required
//	RouteCosts RouteCosts                                    // "GET /report/:id": 5
//	Cost       func(c *gin.Context, route string) int64      // instead of RouteCosts
//	Skip       func(*gin.Context) bool
//	ClientAddr func(*gin.Context) string                     // see the README before using c.ClientIP
//	Headers    httplimit.Headers
//	Problem    bool
//	Respond    func(*gin.Context, *httplimit.Refusal)
type Config = httplimit.Config[*gin.Context]

// RouteCosts says what routes cost, by [gin.Context.FullPath].
type RouteCosts = httplimit.RouteCosts

// Middleware returns middleware that limits the requests of an engine, a group or a
// route. A refusal is answered, aborts the chain, and is the last of c.Errors, as a
// [*httplimit.Refusal]. It panics if the limiter is nil or the config cannot work.
func Middleware(limiter *ratetier.Limiter, config Config) gin.HandlerFunc {
	return handler(httplimit.NewGuard(limiter, config, func(c *gin.Context) (string, error) {
		return c.FullPath(), nil
	}))
}

// Cost returns middleware for a route that declares what its requests cost in all,
// on either side of the limiter. It panics if the cost is negative.
func Cost(cost int64) gin.HandlerFunc {
	return handler(httplimit.NewCost[*gin.Context](cost))
}

// FromContext returns the admission of the innermost limiter that the request has
// passed, if it has passed one. Unlike the context, the admission may be kept after
// the request. Code further down finds it with [ratetier.FromContext], given the
// context of the request.
func FromContext(c *gin.Context) (*ratetier.Admission, bool) {
	return ratetier.FromContext(c.Request.Context())
}

func handler(gate httplimit.Gate[*gin.Context]) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.IsAborted() {
			return // by a handler that called this one, such as authentication
		}
		admitted, refusal := gate.Admit(c, c.Request, c.Writer.Header())
		if refusal != nil {
			_ = c.Error(refusal)
			c.Abort()
			refusal.Write(c.Writer, c.Request)
			c.Writer.WriteHeaderNow() // also where there is no body, so that nobody answers again
			return
		}
		c.Request = admitted
		c.Next()
		gate.Done(admitted)
	}
}
