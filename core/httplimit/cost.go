package httplimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	ratetier "github.com/ratetier/ratetier/core"
)

// RouteCosts says what routes cost, by "METHOD pattern" or by "pattern" for every
// method, in the framework's own syntax of patterns:
//
//	ratetierhttp.RouteCosts{"GET /reports/{id}": 5, "/backup": 50}
//
// The first form goes before the second. HEAD costs what GET costs. A route that is
// not listed costs 1, as does a request that matches no route; 0 is free.
type RouteCosts map[string]int64

// costTable is RouteCosts by pattern and method, so that looking one up joins no strings,
// and a route that is not listed costs one look-up. The method "" is for every method.
type costTable map[string]map[string]int64

func (costs RouteCosts) compile() (costTable, error) {
	table := costTable{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(costs)) {
		method, pattern, ok := strings.Cut(key, " ")
		if !ok {
			method, pattern = "", key
		}
		switch {
		case costs[key] < 0:
			errs = append(errs, fmt.Errorf("RouteCosts: %q: %d: a cost must be at least 0", key, costs[key]))
		case ok && method == "", method != strings.ToUpper(method), strings.Contains(method, "/"),
			!strings.Contains(pattern, "/"), strings.ContainsAny(pattern, " \t\r\n"):
			errs = append(errs, fmt.Errorf(`RouteCosts: %q: write "GET /path" or "/path"`, key))
		}
		if table[pattern] == nil {
			table[pattern] = map[string]int64{}
		}
		table[pattern][method] = costs[key]
	}
	return table, errors.Join(errs...)
}

// of returns what a request costs. The route may begin with a method, as patterns
// of [http.ServeMux] do.
func (t costTable) of(method, route string) int64 {
	if len(t) == 0 || route == "" {
		return 1
	}
	if space := strings.IndexByte(route, ' '); space >= 0 {
		route = strings.TrimLeft(route[space:], " \t")
	}
	byMethod := t[route]
	if cost, ok := byMethod[method]; ok {
		return cost
	}
	if method == http.MethodHead {
		if cost, ok := byMethod[http.MethodGet]; ok {
			return cost
		}
	}
	if cost, ok := byMethod[""]; ok {
		return cost
	}
	return 1
}

// Cost is the gate of a route that declares what its requests cost in all. Before
// the limiter, it tells it; behind it, it has the difference charged, and refuses
// the request, charged nothing at all, if that does not fit. It is safe for
// concurrent use.
type Cost[C any] struct {
	cost   int64
	missed sync.Once
}

// NewCost returns the gate for a route that costs that much. It panics if the cost
// is negative.
func NewCost[C any](cost int64) *Cost[C] {
	if cost < 0 {
		panic(fmt.Errorf("ratetier: Cost(%d): must be at least 0", cost))
	}
	return &Cost[C]{cost: cost}
}

// Admit implements [Gate].
func (k *Cost[C]) Admit(c C, r *http.Request, header http.Header) (*http.Request, *Refusal) {
	innermost, ok := ratetier.FromContext(r.Context())
	onward := r.WithContext(k.declare(r.Context(), ok)) // for limiters behind
	if !ok {
		return onward, nil
	}
	for a := innermost; a != nil; a = a.Outer() {
		if decision := a.Revise(r.Context(), k.cost); !decision.Allowed {
			return r, guardOf[C](a).refuse(c, r.Context(), decision, header)
		}
	}
	least := innermost.Decision()
	tightest(r.Context(), innermost, &least)
	guardOf[C](innermost).config.Headers.set(header, &least, new(figures))
	return onward, nil
}

// guardOf returns the guard that admitted a request, so that a declared cost has
// answers look like its own. One of another framework's adapter cannot be had, but
// how its answers look can.
func guardOf[C any](a *ratetier.Admission) *Guard[C] {
	if guard, ok := a.Origin().(*Guard[C]); ok {
		return guard
	}
	guard := &Guard[C]{}
	if foreign, ok := a.Origin().(interface{ look() (Headers, bool) }); ok {
		guard.config.Headers, guard.config.Problem = foreign.look()
	}
	return guard
}

// Done implements [Gate]. It says once, in the log, if a declared cost met no
// limiter: a cost must not be ignored in silence.
func (k *Cost[C]) Done(r *http.Request) {
	if d, ok := r.Context().Value(declaredKey{}).(*declared); ok && !d.met.Load() {
		k.missed.Do(func() {
			slog.Warn("ratetier: a declared cost was not charged, as no limiter ran for the request: is one mounted on this route?",
				"cost", k.cost)
		})
	}
}

// declared is a cost on its way to the limiter.
type declared struct {
	cost int64
	met  atomic.Bool // whether it met one
}

type (
	declaredKey struct{}
	skippedKey  struct{}
)

// declare leaves the cost for limiters to find; met is whether it met one already.
func (k *Cost[C]) declare(ctx context.Context, met bool) context.Context {
	d := &declared{cost: k.cost}
	d.met.Store(met || ctx.Value(skippedKey{}) != nil)
	return context.WithValue(ctx, declaredKey{}, d)
}

// declaredCost returns the cost declared for the request, which has now met a
// limiter.
func declaredCost(ctx context.Context) (int64, bool) {
	d, ok := ctx.Value(declaredKey{}).(*declared)
	if !ok {
		return 0, false
	}
	d.met.Store(true)
	return d.cost, true
}

// skip marks a request that a limiter leaves alone, so that a cost declared for it is not
// missed.
func skip(r *http.Request) *http.Request {
	ctx := r.Context()
	declaredCost(ctx)
	return r.WithContext(context.WithValue(ctx, skippedKey{}, true))
}
