package ratetiergrpc

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"google.golang.org/grpc/peer"

	ratetier "github.com/ratetier/ratetier/core"
)

// guard holds the order of steps of both interceptors: skip, identify, weigh, take, go on
// or refuse, trailer. It is safe for concurrent use.
type guard struct {
	limiter *ratetier.Limiter
	config  Config
}

func newGuard(limiter *ratetier.Limiter, config Config) *guard {
	err := config.validate()
	if limiter == nil {
		err = errors.Join(errors.New("the limiter is nil: build it with ratetier.New"), err)
	}
	if err != nil {
		panic(fmt.Errorf("ratetier: interceptor: %w", err))
	}
	config.MethodCosts = maps.Clone(config.MethodCosts)
	return &guard{limiter: limiter, config: config}
}

// skips tells whether the limiter leaves the call alone.
func (g *guard) skips(ctx context.Context, method string) bool {
	return !g.config.ChargeHealth && isExempt(method) || g.config.Skip != nil && g.config.Skip(ctx, method)
}

// entry is a call on its way through one interceptor.
type entry struct {
	guard     *guard
	ctx       context.Context // carries the admission
	admission *ratetier.Admission
	identity  ratetier.Identity
	call      *call
	outermost bool
	refused   error // a *Refusal, or nil
}

// enter decides the call. The route is the method as events are to name it.
func (g *guard) enter(ctx context.Context, method, route string) entry {
	identity, err := g.config.Identify(ctx)
	identity = ratetier.Identified(identity, err, func() string { return g.address(ctx) })
	e := entry{guard: g, identity: identity}
	e.call, e.outermost = callOf(ctx)
	e.ctx, e.admission = g.limiter.Enter(ctx, ratetier.Check{
		Identity: identity,
		Cost:     g.weigh(ctx, method),
		Route:    route,
		Origin:   e.call,
	}, new(ratetier.Carrier))
	if decision := e.admission.Decision(); !decision.Allowed {
		ratetier.Leave(e.ctx)
		e.refused = &Refusal{Decision: decision, MaxPushback: g.config.MaxPushback}
		return e
	}
	e.call.passed(e.ctx)
	return e
}

// leave sends the trailer once, when the call comes out of the outermost interceptor.
func (e *entry) leave(err error) {
	if e.outermost {
		e.call.sendTrailer(e.ctx, err)
	}
}

// address returns the key by which callers without an identity are told apart.
func (g *guard) address(ctx context.Context) string {
	address := ""
	if g.config.ClientAddr != nil {
		address = g.config.ClientAddr(ctx)
	} else if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		address = p.Addr.String()
	}
	return ratetier.AddressKey(address, g.config.IPv6Prefix)
}

// weigh returns what the call costs.
func (g *guard) weigh(ctx context.Context, method string) int64 {
	if g.config.Cost != nil {
		return g.config.Cost(ctx, method)
	}
	if cost, ok := g.config.MethodCosts[method]; ok {
		return cost
	}
	return 1
}

// route returns the method as events are to name it. The method of a service that is not
// registered, which a handler for unknown services takes, is whatever the client made up.
func (g *guard) route(server any, method string) string {
	if _, listed := g.config.MethodCosts[method]; server == nil && !listed {
		return ""
	}
	return method
}
