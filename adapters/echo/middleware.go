// Package ratetierecho limits an Echo service by plan.
//
//	e := echo.New()
//	e.Use(ratetierecho.Middleware(limiter, ratetierecho.Config{
//		Identify:   identify,
//		RouteCosts: ratetierecho.RouteCosts{"GET /report/:id": 5},
//	}))
//	e.GET("/report/:id", report)
//
// Use it after recovery, logging, CORS and authentication.
package ratetierecho

import (
	"cmp"
	"encoding/json"

	"github.com/labstack/echo/v4"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// Config is [httplimit.Config] for Echo:
//
//	Identify   func(echo.Context) (ratetier.Identity, error) // required
//	RouteCosts RouteCosts                                    // "GET /report/:id": 5
//	Cost       func(c echo.Context, route string) int64      // instead of RouteCosts
//	Skip       func(echo.Context) bool                       // a middleware.Skipper will do
//	ClientAddr func(echo.Context) string                     // see the README before using c.RealIP
//	Headers    httplimit.Headers
//	Problem    bool
//	Respond    func(echo.Context, *httplimit.Refusal)
type Config = httplimit.Config[echo.Context]

// RouteCosts says what routes cost, by [echo.Context.Path].
type RouteCosts = httplimit.RouteCosts

// Middleware returns middleware that limits the requests of an instance, a group or
// a route. A refusal is returned as an [*echo.HTTPError], for the HTTPErrorHandler
// to send; errors.As finds the [*httplimit.Refusal] in it. It panics if the limiter
// is nil or the config cannot work.
func Middleware(limiter *ratetier.Limiter, config Config) echo.MiddlewareFunc {
	return middleware(httplimit.NewGuard(limiter, config, func(c echo.Context) (string, error) {
		return route(c), nil
	}))
}

// Cost returns middleware for a route that declares what its requests cost in all,
// on either side of the limiter. It panics if the cost is negative.
func Cost(cost int64) echo.MiddlewareFunc {
	return middleware(httplimit.NewCost[echo.Context](cost))
}

// FromContext returns the admission of the innermost limiter that the request has
// passed, if it has passed one. Unlike the context, the admission may be kept after
// the request. Code further down finds it with [ratetier.FromContext], given the
// context of the request.
func FromContext(c echo.Context) (*ratetier.Admission, bool) {
	return ratetier.FromContext(c.Request().Context())
}

// route returns the path of the request's route, "" where there is none. Before the
// router, in e.Pre, it looks it up ahead of Echo.
func route(c echo.Context) string {
	if c.Path() == "" {
		e, r := c.Echo(), c.Request()
		c = e.AcquireContext()
		defer e.ReleaseContext(c)
		c.Reset(r, nil)
		cmp.Or(e.Routers()[r.Host], e.Router()).Find(r.Method, echo.GetPath(r), c)
	}
	if c.Get(echo.ContextKeyHeaderAllow) != nil {
		return "" // of the route at Path only the path matches, and not the method
	}
	return c.Path()
}

func middleware(gate httplimit.Gate[echo.Context]) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc { // called by Echo for every request
		return func(c echo.Context) error {
			admitted, refusal := gate.Admit(c, c.Request(), c.Response().Header())
			if refusal != nil {
				return refuse(c, refusal)
			}
			c.SetRequest(admitted)
			err := next(c)
			gate.Done(admitted)
			return err
		}
	}
}

// refuse returns the refusal in the only form of which Echo's own HTTPErrorHandler
// takes the status.
func refuse(c echo.Context, refusal *httplimit.Refusal) error {
	if refusal.ContentType != echo.MIMEApplicationJSON { // which Echo sends by itself
		c.Response().Header().Set(echo.HeaderContentType, refusal.ContentType)
	}
	if !json.Valid(refusal.Body) {
		refusal.Write(c.Response(), c.Request()) // Echo could not encode such a body, set by Respond
	}
	return &echo.HTTPError{Code: refusal.Status, Message: message(refusal.Body), Internal: refusal}
}

// message is a body that is JSON already. As a string it is legible in logs.
type message string

func (m message) MarshalJSON() ([]byte, error) { return []byte(m), nil }
