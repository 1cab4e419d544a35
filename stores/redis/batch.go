package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

const (
	// window is how many batches are under way at a time: enough for the server not
	// to wait for us, and few, so that checks gather meanwhile.
	window = 2
	// maxFlights is how many there are at most when earlier ones got no answer in time.
	maxFlights = 32
	// maxBatch keeps a batch from holding the server up.
	maxBatch = 256
)

// check is one request on its way to Redis. It belongs to the one who made it until it
// is queued, and then to the flight that takes it, until that is finished with it.
type check struct {
	ctx      context.Context
	key, ask string
	rates    int
	result   ratetier.Result
	err      error

	finished chan struct{} // receives when result or err is set
	timer    *time.Timer
	until    time.Time // when it is too late for an answer

	queued     bool
	prev, next *check
}

func newCheck() *check {
	c := &check{finished: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	return c
}

// finish lets the one who waits go on.
func (c *check) finish(err error) {
	c.err = err
	c.finished <- struct{}{}
}

// queue gathers the checks that wait at the same moment into batches. A check that
// finds few batches under way is off at once; one that finds more joins those that
// wait for one to be back. No goroutine is left when nobody waits.
//
// A batch that has been under way for longer than anybody waits for it no longer counts,
// so that one lost connection does not hold up the others, up to a number.
type queue struct {
	send    func(ctx context.Context, checks []*check)
	timeout time.Duration
	late    error // for who waits longer

	punctual bool // whether send keeps to the deadline of its context

	mu      sync.Mutex
	first   *check
	last    *check
	flights []*flight // under way
	spares  []*flight // to be used again
}

// do has the check sent, and returns false if it was given up while under way, and so
// is not to be used again.
func (q *queue) do(ctx context.Context, c *check) (mine bool, err error) {
	now := time.Now()
	c.ctx, c.until = ctx, now.Add(q.timeout)
	q.mu.Lock()
	q.push(c)
	f := q.launch(now)
	q.mu.Unlock()

	if f != nil {
		if q.punctual && ctx.Done() == nil && len(f.checks) == 1 {
			return true, q.takeAlong(f, c)
		}
		go q.fly(f)
	}
	return q.wait(c)
}

// takeAlong has the caller of a check take it to Redis itself. That spares the processor
// two changes of goroutines, which can take as long as Redis does. But then the caller
// cannot be called back before the deadline: it is for those whom nobody will.
func (q *queue) takeAlong(f *flight, c *check) error {
	f.start(c.until)
	q.send(f, f.checks)
	<-c.finished
	if next := q.land(f); next != nil {
		go q.fly(next)
	}
	if c.err != nil && !time.Now().Before(c.until) {
		return q.late
	}
	return c.err
}

// wait waits for a check that another goroutine takes to Redis.
func (q *queue) wait(c *check) (mine bool, err error) {
	c.timer.Reset(time.Until(c.until))
	defer c.timer.Stop()
	select {
	case <-c.finished:
		return true, c.err
	case <-c.ctx.Done():
		err = c.ctx.Err()
	case <-c.timer.C:
		select {
		case <-c.finished: // at the same moment
			return true, c.err
		default:
			err = q.late
		}
	}
	q.mu.Lock()
	mine = c.queued
	if mine {
		q.remove(c)
	}
	f := q.launch(time.Now())
	q.mu.Unlock()
	if f != nil {
		go q.fly(f)
	}
	return mine, err
}

// fly takes one batch after the other to Redis, until nobody waits or others do it.
func (q *queue) fly(f *flight) {
	for f != nil {
		f.start(time.Now().Add(patience * q.timeout))
		q.send(f, f.checks)
		f = q.land(f)
	}
}

// launch returns a flight with the batch that goes next; nil if nobody waits or enough
// are under way. Who gets it has to take it to Redis.
func (q *queue) launch(now time.Time) *flight {
	if q.first == nil || len(q.flights) == maxFlights || q.underWay(now) >= window {
		return nil
	}
	f := q.spare()
	for q.first != nil && len(f.checks) < maxBatch {
		c := q.first
		q.remove(c)
		if err := c.ctx.Err(); err != nil {
			c.finish(err)
			continue
		}
		f.board(c)
	}
	if len(f.checks) == 0 {
		return nil
	}
	q.flights = append(q.flights, f)
	return f
}

// spare returns an empty flight.
func (q *queue) spare() *flight {
	last := len(q.spares) - 1
	if last < 0 {
		return newFlight()
	}
	f := q.spares[last]
	q.spares = q.spares[:last]
	return f
}

// underWay returns how many flights may be expected back.
func (q *queue) underWay(now time.Time) (n int) {
	for _, f := range q.flights {
		if now.Before(f.until) {
			n++
		}
	}
	return n
}

// land ends a flight, and returns the next, if there is to be one.
func (q *queue) land(f *flight) *flight {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.flights, f)
	q.flights = slices.Delete(q.flights, i, i+1)
	if f.end() {
		q.spares = append(q.spares, f)
	}
	return q.launch(now)
}

// push appends the check to those that wait.
func (q *queue) push(c *check) {
	c.queued, c.prev = true, q.last
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
}

// remove takes the check out of those that wait.
func (q *queue) remove(c *check) {
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.queued, c.prev, c.next = false, nil, nil
}
