package redisstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// SetClock has the store go by that clock instead of the server's and its own.
func (s *Store) SetClock(now func() time.Time) {
	if s.denials != nil {
		s.denials.now = func() time.Duration { return time.Duration(now().UnixNano()) }
	}
	s.script.clock = func() string { return strconv.FormatInt(now().UnixMicro(), 10) }
}

// Keep has Redis keep buckets ten minutes longer than they need, since its keys expire
// by another clock than that of [Store.SetClock].
func (s *Store) Keep() {
	const expiry = "math.ceil(last / 1000)"
	if !strings.Contains(source, expiry) {
		panic("the script sets no such expiry: " + expiry)
	}
	s.script.set(strings.Replace(source, expiry, expiry+" + 600000", 1))
}

// Quiet waits until no check of the store is under way.
func (s *Store) Quiet() {
	for s.Flights() > 0 {
		runtime.Gosched()
	}
}

// Flights returns how many goroutines the store has.
func (s *Store) Flights() (n int) {
	for _, q := range s.lanes.queues.Range {
		q, _ := q.(*queue)
		q.mu.Lock()
		n += len(q.flights)
		q.mu.Unlock()
	}
	return n
}

// Waiting returns how many checks wait to be sent.
func (s *Store) Waiting() (n int) {
	for _, q := range s.lanes.queues.Range {
		q, _ := q.(*queue)
		q.mu.Lock()
		for c := q.first; c != nil; c = c.next {
			n++
		}
		q.mu.Unlock()
	}
	return n
}

// Together has the requests answered by one call of the script.
func (s *Store) Together(ctx context.Context, requests []ratetier.Request) ([]ratetier.Result, error) {
	checks := make([]*check, len(requests))
	for i, r := range requests {
		checks[i] = newCheck()
		checks[i].key, checks[i].ask, checks[i].rates = s.keys.of(&r.Key), ask(&r), len(r.Limits)
	}
	s.script.run(ctx, slices.Clone(checks))
	results := make([]ratetier.Result, len(requests))
	var errs []error
	for i, c := range checks {
		<-c.finished
		results[i] = c.result
		errs = append(errs, c.err)
	}
	return results, errors.Join(errs...)
}
