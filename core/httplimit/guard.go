package httplimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"

	ratetier "github.com/ratetier/ratetier/core"
)

// Gate is what a request passes through: a limiter or a declared cost.
type Gate[C any] interface {
	// Admit decides the request. Where it returns no refusal, the framework goes on
	// with the request it returns; else it stops, and sends the refusal. The rate
	// limit headers are set in either case.
	Admit(c C, r *http.Request, header http.Header) (*http.Request, *Refusal)

	// Done is called with the request that Admit returned, when it has been
	// handled.
	Done(r *http.Request)
}

// Guard is the gate that a limiter stands at. It holds the order of steps: skip,
// identify, weigh, take, headers, go on or refuse. It is safe for concurrent use.
type Guard[C any] struct {
	limiter *ratetier.Limiter
	config  Config[C]
	costs   costTable
	route   func(C) (pattern string, err error)
	lost    sync.Once
}

// NewGuard returns the guard of an adapter, with route returning the pattern of a
// request's route in the framework's syntax, "" where none matched. Where no routes are
// known, it returns an error that says where to mount the limiter instead: RouteCosts
// cannot apply, which is logged once. It is called only where the pattern is of use.
//
// It panics if the limiter is nil or the config cannot work, naming everything that
// is wrong: a middleware is built where the program starts.
func NewGuard[C any](limiter *ratetier.Limiter, config Config[C], route func(C) (pattern string, err error)) *Guard[C] {
	costs, err := config.RouteCosts.compile()
	err = errors.Join(config.validate(), err)
	if limiter == nil {
		err = errors.Join(errors.New("the limiter is nil: build it with ratetier.New"), err)
	}
	if err != nil {
		panic(fmt.Errorf("ratetier: middleware: %w", err))
	}
	if config.Cost == nil && len(costs) == 0 && !limiter.Observed() {
		route = func(C) (string, error) { return "", nil }
	}
	return &Guard[C]{limiter: limiter, config: config, costs: costs, route: route}
}

// Admit implements [Gate].
func (g *Guard[C]) Admit(c C, r *http.Request, header http.Header) (*http.Request, *Refusal) {
	if g.config.Skip != nil && g.config.Skip(c) || !g.config.ChargePreflight && isPreflight(r) {
		return skip(r), nil
	}
	identity, identifyErr := g.config.Identify(c)
	identity = ratetier.Identified(identity, identifyErr, func() string { return g.address(c, r) })
	route := g.routeOf(c)
	p := new(passage)
	ctx, admission := g.limiter.Enter(r.Context(), ratetier.Check{
		Identity: identity,
		Cost:     g.weigh(c, r, route),
		Route:    route,
		Origin:   g,
	}, &p.carrier)
	decision := admission.Decision()
	if decision.Outcome != ratetier.OutcomeLimited && !decision.Shadow && isTooLarge(identifyErr) {
		decision.Allowed, decision.Status = false, http.StatusRequestEntityTooLarge // whatever the policy
	}
	if !decision.Allowed {
		return r, g.refuse(c, ctx, decision, header)
	}
	tightest(ctx, admission, &decision)
	g.config.Headers.set(header, &decision, &p.values)
	return p.onward(ctx, r), nil
}

// passage is all that an admitted request needs, in one allocation.
type passage struct {
	request http.Request
	carrier ratetier.Carrier
	values  figures
}

// onward returns the request with the context. Code that is not generic is compiled here, so
// that Go takes the copy apart; in an adapter that does not import net/http, it would
// allocate another.
func (p *passage) onward(ctx context.Context, r *http.Request) *http.Request {
	p.request = *r.WithContext(ctx)
	return &p.request
}

// Done implements [Gate].
func (g *Guard[C]) Done(*http.Request) {}

// look is how answers look, for a guard of another framework's adapter.
func (g *Guard[C]) look() (Headers, bool) { return g.config.Headers, g.config.Problem }

// address returns the key by which callers without an identity are told apart.
func (g *Guard[C]) address(c C, r *http.Request) string {
	address := r.RemoteAddr
	if g.config.ClientAddr != nil {
		address = g.config.ClientAddr(c)
	}
	return ratetier.AddressKey(address, g.config.IPv6Prefix)
}

// routeOf returns the pattern of the request's route.
func (g *Guard[C]) routeOf(c C) string {
	route, err := g.route(c)
	if err != nil && len(g.costs) > 0 {
		g.lost.Do(func() { slog.Error("ratetier: RouteCosts do not apply", "error", err) })
	}
	return route
}

// weigh returns what the request costs.
func (g *Guard[C]) weigh(c C, r *http.Request, route string) int64 {
	if declared, ok := declaredCost(r.Context()); ok {
		return declared
	}
	if g.config.Cost != nil {
		return g.config.Cost(c, route)
	}
	return g.costs.of(r.Method, route)
}

// refuse returns the refusal to send, of a request that is charged nothing at all.
func (g *Guard[C]) refuse(c C, ctx context.Context, decision ratetier.Decision, header http.Header) *Refusal {
	ratetier.Leave(ctx)
	clearHeaders(header)
	g.config.Headers.set(header, &decision, new(figures))
	refusal := newRefusal(decision, g.config.Problem)
	if seconds, ok := refusal.retryAfter(); ok {
		header["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	}
	if g.config.Respond != nil {
		g.config.Respond(c, refusal)
		if refusal.Status < 200 || refusal.Status > 599 {
			refusal.Status = decision.Status // a ResponseWriter panics on some of these
		}
	}
	return refusal
}

// tightest replaces the decision of one limiter by that of another which the request
// has passed too, if that has less left.
func tightest(ctx context.Context, admission *ratetier.Admission, least *ratetier.Decision) {
	for passed, _ := ratetier.FromContext(ctx); passed != nil; passed = passed.Outer() {
		if passed == admission {
			continue
		}
		if d := passed.Decision(); d.Tighter(least) {
			*least = d
		}
	}
}

// isPreflight tells whether the request is a CORS preflight, as the Fetch standard
// defines it, and not just any OPTIONS.
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}
