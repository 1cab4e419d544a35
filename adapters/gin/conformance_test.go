package ratetiergin_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/gin-gonic/gin"

	ratetiergin "github.com/ratetier/ratetier/adapters/gin"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

var subject = httplimittest.Subject[*gin.Context, gin.HandlerFunc]{
	Middleware: ratetiergin.Middleware,
	Cost:       ratetiergin.Cost,
	Request:    func(c *gin.Context) *http.Request { return c.Request },
	Pattern:    httplimittest.Patterns(":name", "*name"),
	Handler:    build,
}

func build(app httplimittest.App[gin.HandlerFunc]) http.Handler {
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.Use(app.Use...)
	for _, group := range app.Groups {
		g := r.Group(group.Prefix, group.Use...)
		for _, route := range group.Routes {
			g.Handle(route.Method, route.Pattern, slices.Concat(route.Use, []gin.HandlerFunc{gin.WrapH(route.Handler)})...)
		}
	}
	return r
}

func TestConformance(t *testing.T) { httplimittest.Run(t, subject) }

func BenchmarkRequest(b *testing.B) { httplimittest.Bench(b, subject, memorystore.New()) }
