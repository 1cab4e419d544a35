package ratetiergrpc

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"

	ratetier "github.com/ratetier/ratetier/core"
)

// call is one call on its way through all interceptors of this package. They share it, as
// metadata that is set twice is sent twice: the outermost sets it for all. It is the
// origin of their admissions, by which the inner ones find it.
type call struct {
	mu        sync.Mutex
	innermost *ratetier.Admission // of those that the call has passed
	metered   *stream             // the innermost one
}

// callOf returns the call of a context, or a new one if this is the first interceptor.
func callOf(ctx context.Context) (c *call, isNew bool) {
	for a, _ := ratetier.FromContext(ctx); a != nil; a = a.Outer() {
		if c, ok := a.Origin().(*call); ok {
			return c, false
		}
	}
	return &call{}, true
}

// passed notes that the call has passed one more limiter.
func (c *call) passed(ctx context.Context) {
	innermost, _ := ratetier.FromContext(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.innermost = innermost
}

// meter has the messages of a stream cost something.
func (c *call) meter(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.metered, s.outer, c.metered = true, c.metered, s
}

// received notes the decision on a message.
func (c *call) received(s *stream, decision ratetier.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.latest = decision
}

// sendTrailer sets the trailer of the call, which ends with err.
func (c *call) sendTrailer(ctx context.Context, err error) {
	if err != nil {
		var refusal *Refusal
		if errors.As(err, &refusal) {
			_ = grpc.SetTrailer(ctx, refusal.trailer()) // an error means that there is no connection
			return
		}
	}
	if least := c.tightest(); least.Measured() {
		_ = grpc.SetTrailer(ctx, figures(&least)) // as above
	}
}

// tightest returns the decision with the least left, of all limiters that the call has
// passed.
func (c *call) tightest() (least ratetier.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a := c.innermost; a != nil; a = a.Outer() {
		if d := c.latest(a); d.Tighter(&least) {
			least = d
		}
	}
	return least
}

// latest returns the decision on the last message, if there is one, or else on the call.
func (c *call) latest(a *ratetier.Admission) ratetier.Decision {
	for s := c.metered; s != nil; s = s.outer {
		if s.entry.admission == a && s.latest.Measured() {
			return s.latest
		}
	}
	return a.Decision()
}
