package redisstore

import (
	"context"
	"time"
)

// patience is how many timeouts the client gets for a batch: a connection may take
// longer to make than a check waits, and is there for the next.
const patience = 10

// flight is one batch of checks on its way to Redis. It is the context of that, too: one
// that can be used again, as those of package context cannot.
type flight struct {
	checks []*check
	until  time.Time // when nobody waits for it any more

	deadline time.Time
	over     chan struct{} // closed at the deadline
	timer    *time.Timer
}

func newFlight() *flight {
	f := &flight{over: make(chan struct{})}
	f.timer = time.AfterFunc(time.Hour, func() { close(f.over) })
	f.timer.Stop()
	return f
}

// board takes the check along.
func (f *flight) board(c *check) {
	f.checks = append(f.checks, c)
	if c.until.After(f.until) {
		f.until = c.until
	}
}

// start sets the deadline.
func (f *flight) start(deadline time.Time) {
	f.deadline = deadline
	f.timer.Reset(time.Until(deadline))
}

// end empties the flight, and returns whether it can be used again: not if its deadline
// has passed.
func (f *flight) end() (again bool) {
	clear(f.checks)
	f.checks, f.until = f.checks[:0], time.Time{}
	return f.timer.Stop()
}

func (f *flight) Deadline() (time.Time, bool) { return f.deadline, true }
func (f *flight) Done() <-chan struct{}       { return f.over }
func (f *flight) Value(any) any               { return nil }

func (f *flight) Err() error {
	select {
	case <-f.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
