package ratetier

import (
	"sync/atomic"
	"time"
)

// Clock tells a [Limiter] the time. Tests use [clocktest.Clock], which stands still
// until told.
//
// [clocktest.Clock]: https://pkg.go.dev/github.com/ratetier/ratetier/core/clocktest
type Clock interface {
	// Now returns the time. It is called once per check, or twice where there is an
	// Observer, from many goroutines at once.
	Now() time.Time
}

// timeline turns a clock into the two times a check needs, both in nanoseconds
// since the Unix epoch.
type timeline struct {
	clock Clock // nil: the system's

	start   time.Time
	startAt int64 // in nanoseconds since the Unix epoch

	// skew is what the wall clock has been stepped by since start.
	skew      atomic.Int64
	skewAsked atomic.Int64
}

func newTimeline(clock Clock) *timeline {
	start := time.Now()
	return &timeline{clock: clock, start: start, startAt: start.UnixNano()}
}

// now is the time limits are reckoned in. On the system's clock it is monotonic,
// so that setting the wall clock neither refills a bucket nor freezes one; and
// [time.Since] costs little more than half of [time.Now].
func (t *timeline) now() int64 {
	if t.clock != nil {
		return t.clock.Now().UnixNano()
	}
	return t.startAt + int64(time.Since(t.start))
}

// wall turns a time from now into the one people and headers read. It follows a
// step of the wall clock within a second.
func (t *timeline) wall(now int64) int64 {
	if t.clock != nil {
		return now
	}
	asked := t.skewAsked.Load()
	if now-asked > int64(time.Second) && t.skewAsked.CompareAndSwap(asked, now) {
		wall := time.Now()
		t.skew.Store(wall.UnixNano() - t.startAt - int64(wall.Sub(t.start)))
	}
	return now + t.skew.Load()
}
