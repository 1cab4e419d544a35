package redisstore

import (
	"context"
	"fmt"
	"os"
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
	// patience is how many timeouts the client gets for a batch: a connection may take
	// longer to make than a check waits, and is there for the next.
	patience = 10
	// maxBatch keeps a batch from holding the server up.
	maxBatch = 256
)

// check is one request on its way to Redis. It belongs to the one who made it until it
// is queued, and then to the flight that takes it, until that is finished with it.
type check struct {
	key, ask string
	rates    int
	result   ratetier.Result
	err      error

	finished chan struct{} // receives when result or err is set
	timer    *time.Timer

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

// flight is a goroutine that takes batches of checks to Redis, one after the other.
type flight struct{ since time.Time }

// queue gathers the checks that wait at the same moment into batches. A check that
// finds few batches under way is off at once; one that finds more joins those that
// wait for one to be back. No goroutine is left when nobody waits.
//
// A batch that is not back after the timeout no longer counts as under way, so that
// one lost connection does not hold up the others, up to a number.
type queue struct {
	send    func(ctx context.Context, checks []*check)
	timeout time.Duration
	late    error

	mu      sync.Mutex
	first   *check
	last    *check
	flights []*flight
}

func newQueue(timeout time.Duration, send func(context.Context, []*check)) *queue {
	return &queue{
		send:    send,
		timeout: timeout,
		late:    fmt.Errorf("redisstore: no answer within %v: %w", timeout, os.ErrDeadlineExceeded),
	}
}

// do has the check sent, and returns false if it was given up while under way, and so
// is not to be used again.
func (q *queue) do(ctx context.Context, c *check) (mine bool, err error) {
	now := time.Now()
	c.timer.Reset(q.timeout)
	defer c.timer.Stop()
	q.mu.Lock()
	q.push(c)
	q.launch(now)
	q.mu.Unlock()

	select {
	case <-c.finished:
		return true, c.err
	case <-ctx.Done():
		err = ctx.Err()
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
	q.launch(time.Now())
	q.mu.Unlock()
	return mine, err
}

// launch starts a flight if somebody waits and few are under way.
func (q *queue) launch(now time.Time) {
	if q.first != nil && len(q.flights) < maxFlights && q.underWay(now) < window {
		f := &flight{since: now}
		q.flights = append(q.flights, f)
		go q.fly(f)
	}
}

// underWay returns how many flights may be expected back.
func (q *queue) underWay(now time.Time) (n int) {
	for _, f := range q.flights {
		if now.Sub(f.since) < q.timeout {
			n++
		}
	}
	return n
}

// fly takes one batch after the other, until nobody waits or others do it.
func (q *queue) fly(f *flight) {
	for {
		batch := q.board(f)
		if batch == nil {
			return
		}
		q.deliver(batch, f.since)
	}
}

// board returns the batch that goes next. It ends the flight if there is none, or if
// others have taken its place.
func (q *queue) board(f *flight) (batch []*check) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	f.since = time.Time{}
	if q.first == nil || q.underWay(now) >= window {
		q.flights = slices.DeleteFunc(q.flights, func(other *flight) bool { return other == f })
		return nil
	}
	f.since = now
	for q.first != nil && len(batch) < maxBatch {
		c := q.first
		q.remove(c)
		batch = append(batch, c)
	}
	return batch
}

// deliver sends the batch.
func (q *queue) deliver(batch []*check, now time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), now.Add(patience*q.timeout))
	defer cancel()
	q.send(ctx, batch)
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
