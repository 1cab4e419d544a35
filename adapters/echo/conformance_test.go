package ratetierecho_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v4"

	ratetierecho "github.com/ratetier/ratetier/adapters/echo"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

var subject = httplimittest.Subject[echo.Context, echo.MiddlewareFunc]{
	Middleware: ratetierecho.Middleware,
	Cost:       ratetierecho.Cost,
	Request:    echo.Context.Request,
	Pattern:    httplimittest.Patterns(":name", "*"),
	Handler:    build,
}

func build(app httplimittest.App[echo.MiddlewareFunc]) http.Handler {
	e := echo.New()
	e.Use(app.Use...)
	for _, group := range app.Groups {
		g := e.Group(group.Prefix, group.Use...)
		for _, route := range group.Routes {
			g.Add(route.Method, route.Pattern, echo.WrapHandler(route.Handler), route.Use...)
		}
	}
	return e
}

func TestConformance(t *testing.T) { httplimittest.Run(t, subject) }

func BenchmarkRequest(b *testing.B) { httplimittest.Bench(b, subject, memorystore.New()) }
