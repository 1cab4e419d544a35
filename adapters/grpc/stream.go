package ratetiergrpc

import (
	"context"

	"google.golang.org/grpc"

	ratetier "github.com/ratetier/ratetier/core"
)

// stream is the stream of a call that was admitted. Where its messages cost something,
// they follow the rules of calls: one that passes the same limiter twice is charged the
// higher cost once, and one that any limiter refuses is charged by none.
type stream struct {
	grpc.ServerStream
	entry  entry
	method string

	metered bool
	outer   *stream           // the next metered one further out
	latest  ratetier.Decision // on a message; guarded by call.mu
	charged int64             // for the message in hand
}

// stream returns the stream as the handler is to see it.
func (e *entry) stream(ss grpc.ServerStream, info *grpc.StreamServerInfo) *stream {
	s := &stream{ServerStream: ss, entry: *e, method: info.FullMethod}
	if e.guard.config.MessageCost != nil && info.IsClientStream {
		e.call.meter(s)
	}
	return s
}

// Context returns the context that carries the admission.
func (s *stream) Context() context.Context { return s.entry.ctx }

// RecvMsg receives a message and charges it. As with any stream, it is not to be called
// by two goroutines at once.
func (s *stream) RecvMsg(message any) error {
	s.charged = 0
	err := s.ServerStream.RecvMsg(message)
	if err != nil || !s.metered {
		return err
	}
	g := s.entry.guard
	cost := g.config.MessageCost(s.entry.ctx, s.method, message)
	if cost > 0 {
		cost = max(0, cost-s.chargedFurtherOut())
	}
	if cost == 0 {
		return nil
	}
	decision := s.entry.admission.Take(s.entry.ctx, cost)
	if !decision.Allowed {
		s.giveBackFurtherOut()
		return &Refusal{Decision: decision, MaxPushback: g.config.MaxPushback}
	}
	if decision.Outcome == ratetier.OutcomeAllowed {
		s.charged = cost
	}
	s.entry.call.received(s, decision)
	return nil
}

// chargedFurtherOut returns what the same limiter, mounted further out, has charged for
// the message in hand.
func (s *stream) chargedFurtherOut() (charged int64) {
	for outer := s.outer; outer != nil; outer = outer.outer {
		if outer.entry.admission == s.entry.admission {
			charged += outer.charged
		}
	}
	return charged
}

// giveBackFurtherOut gives back what limiters further out have charged for the message in
// hand.
func (s *stream) giveBackFurtherOut() {
	ctx := context.WithoutCancel(s.entry.ctx)
	for outer := s.outer; outer != nil; outer = outer.outer {
		if outer.charged > 0 {
			outer.entry.guard.limiter.Refund(ctx, outer.entry.identity, outer.charged)
		}
	}
}
