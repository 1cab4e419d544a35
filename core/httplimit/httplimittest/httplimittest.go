// Package httplimittest tests an adapter of ratetier for an HTTP framework. It
// builds small services with the adapter, talks to them over a real socket, and
// judges them by what a client sees.
//
//	func TestConformance(t *testing.T) {
//		httplimittest.Run(t, httplimittest.Subject[*gin.Context, gin.HandlerFunc]{
//			Middleware: ratetiergin.Middleware,
//			Cost:       ratetiergin.Cost,
//			Request:    func(c *gin.Context) *http.Request { return c.Request },
//			Pattern:    httplimittest.Patterns(":name", "*name"),
//			Handler:    build, // about ten lines: see App
//		})
//	}
//
// Each case is a promise that every adapter makes, in words: the name of the case,
// and the beginning of its failure.
package httplimittest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// Subject is an adapter under test, for a framework whose handlers get a C and
// whose middleware is an M. All fields but Pattern are required.
type Subject[C, M any] struct {
	// Middleware is the adapter's limiter.
	Middleware func(*ratetier.Limiter, httplimit.Config[C]) M

	// Cost is the adapter's cost of a route.
	Cost func(int64) M

	// Request returns the request that a context is about.
	Request func(C) *http.Request

	// Pattern spells a pattern of [http.ServeMux] in the framework's syntax, as
	// [Patterns] does. By default it is left as it is.
	Pattern func(string) string

	// Handler builds a service with the framework.
	Handler func(App[M]) http.Handler
}

// App is a service to build. It must answer 404 where no route matches and 405
// where only the method does not, and need not recover from panics.
type App[M any] struct {
	// Use is the middleware around everything, outermost first. It must run where
	// no route matches, too.
	Use []M

	// Groups are the routes.
	Groups []Group[M]
}

// Group is a group of routes: a router of its own, where the framework has such.
type Group[M any] struct {
	Prefix string     // of the paths, such as "/api"; "" for none
	Use    []M        // around the group's routes, outermost first
	Routes []Route[M] // behind the prefix
}

// Route is one route of a group.
type Route[M any] struct {
	Method  string       // such as "GET"
	Pattern string       // behind the group's prefix, in the framework's syntax
	Use     []M          // around the handler, outermost first
	Handler http.Handler // what answers
}

// Patterns returns a Pattern for [Subject]: param is how the framework writes
// "{name}", and rest is how it writes "{name...}", such as ":name" and "*name". The
// latter is always the end of a pattern.
func Patterns(param, rest string) func(string) string {
	return func(pattern string) string {
		segments := strings.Split(pattern, "/")
		for i, segment := range segments {
			name, ok := strings.CutPrefix(segment, "{")
			if !ok {
				continue
			}
			if name, ok := strings.CutSuffix(name, "...}"); ok {
				segments[i] = strings.ReplaceAll(rest, "name", name)
			} else {
				segments[i] = strings.ReplaceAll(param, "name", strings.TrimSuffix(name, "}"))
			}
		}
		return strings.Join(segments, "/")
	}
}

// Run tests the subject, each promise in a test of its own.
func Run[C, M any](t *testing.T, subject Subject[C, M]) {
	t.Helper()
	for _, p := range promises() {
		t.Run(p.text, func(t *testing.T) {
			if err := subject.keeps(p); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check tests the subject, and returns an error that joins one for each promise it
// breaks, nil if it breaks none.
func Check[C, M any](subject Subject[C, M]) error {
	var errs []error
	for _, p := range promises() {
		errs = append(errs, subject.keeps(p))
	}
	return errors.Join(errs...)
}

// promise is one case.
type promise struct {
	text string
	test func(*trial)
}

func promises() []promise {
	return slices.Concat(answers, identities, costs, stacks, requests, streams)
}

// keeps returns an error if the subject breaks the promise.
func (s Subject[C, M]) keeps(p promise) error {
	pattern := s.Pattern
	if pattern == nil {
		pattern = func(pattern string) string { return pattern }
	}
	t := newTrial(pattern, func(app App[layer]) http.Handler { return s.Handler(s.app(app, pattern)) })
	t.run(p.test)
	if err := t.err(); err != nil {
		return fmt.Errorf("broken promise: %s:\n%w", p.text, err)
	}
	return nil
}

// app spells an app for the framework.
func (s Subject[C, M]) app(app App[layer], pattern func(string) string) App[M] {
	spelled := App[M]{Use: s.use(app.Use, pattern)}
	for _, group := range app.Groups {
		g := Group[M]{Prefix: group.Prefix, Use: s.use(group.Use, pattern)}
		for _, route := range group.Routes {
			g.Routes = append(g.Routes, Route[M]{
				Method:  route.Method,
				Pattern: pattern(route.Pattern),
				Use:     s.use(route.Use, pattern),
				Handler: route.Handler,
			})
		}
		spelled.Groups = append(spelled.Groups, g)
	}
	return spelled
}

func (s Subject[C, M]) use(layers []layer, pattern func(string) string) []M {
	use := make([]M, 0, len(layers))
	for _, l := range layers {
		if l.limiter == nil {
			use = append(use, s.Cost(l.cost))
		} else {
			use = append(use, s.Middleware(l.limiter, s.config(l.config, pattern)))
		}
	}
	return use
}

// config spells a config for the framework.
func (s Subject[C, M]) config(config httplimit.Config[*http.Request], pattern func(string) string) httplimit.Config[C] {
	spelled := httplimit.Config[C]{
		Identify:        func(c C) (ratetier.Identity, error) { return config.Identify(s.Request(c)) },
		IPv6Prefix:      config.IPv6Prefix,
		Headers:         config.Headers,
		Problem:         config.Problem,
		ChargePreflight: config.ChargePreflight,
	}
	if config.RouteCosts != nil {
		spelled.RouteCosts = httplimit.RouteCosts{}
		for key, cost := range config.RouteCosts {
			spelled.RouteCosts[pattern(key)] = cost
		}
	}
	if config.Cost != nil {
		spelled.Cost = func(c C, route string) int64 { return config.Cost(s.Request(c), route) }
	}
	if config.Skip != nil {
		spelled.Skip = func(c C) bool { return config.Skip(s.Request(c)) }
	}
	if config.ClientAddr != nil {
		spelled.ClientAddr = func(c C) string { return config.ClientAddr(s.Request(c)) }
	}
	if config.Respond != nil {
		spelled.Respond = func(c C, refusal *httplimit.Refusal) { config.Respond(s.Request(c), refusal) }
	}
	return spelled
}
