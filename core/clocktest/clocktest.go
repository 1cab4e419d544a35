// Package clocktest has a clock that moves only when told, for tests that need
// minutes to pass at once and the same way every time.
package clocktest

import (
	"sync"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

var _ ratetier.Clock = (*Clock)(nil)

// Clock is a [ratetier.Clock] that stands still between calls. It is safe for
// concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// New returns a clock that stands at start.
func New(start time.Time) *Clock { return &Clock{now: start} }

// Now returns where the clock stands.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, backwards if d is negative, and returns the new
// time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

// Set moves the clock to t, which may be earlier than where it stands.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}
