// Package storetest tests a store of ratetier against the promises of
// [ratetier.Store]. A store that passes can take the place of any other.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, storetest.Subject{
//			New: func() (ratetier.Store, error) { return mystore.New(), nil },
//		})
//	}
//
// Each case is a sentence of the contract: it is the name of the case, and the
// beginning of its failure. What a store has to answer is also compared with
// [Reference], the plainest store there is. A [ratetier.QuickStore] has each case twice:
// with Apply alone, and as a limiter asks it.
//
// # Time
//
// The suite never waits. The time it says in [ratetier.Request] starts in the year
// 2027, moves when a case wants it to, backwards too, and is always in whole
// microseconds. A store that goes by another clock, such as that of a database,
// needs [Subject.SetTime].
//
// What cannot be told the time, such as the expiry of keys in a real Redis, may go
// on by itself: every bucket of the suite takes at least [MinRefill] to fill, which
// no case takes to run.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// MinRefill is how long every bucket of the suite takes to fill, at least.
const MinRefill = 10 * time.Second

// Subject is a store under test. Only New is required; each of the other fields
// has the suite test more. They are about what New returned last, and are not
// called concurrently.
type Subject struct {
	// New returns a store without buckets. Each case has its own, and is done with
	// it before the next begins; a store that is an [io.Closer] is closed then.
	New func() (ratetier.Store, error)

	// Peer returns a second store on the same buckets, as another process would
	// have. It is closed like the first. Leave it nil if the store shares nothing.
	Peer func() (ratetier.Store, error)

	// SetTime sets whatever the store goes by other than Request.Now: the clock of
	// a server, of the expiry of its keys, of a cache. It is called at the start
	// of each case and whenever the time changes. What can only go forward, as keys
	// that expire, may stay where it is when the time goes back.
	SetTime func(now time.Time)

	// Collect has the store forget what it may forget, where it does so now and
	// then, or at a cap on buckets.
	Collect func(now time.Time)

	// Buckets returns how many buckets the store holds.
	Buckets func() (int, error)

	// Fail has the store fail from now on, as by stopping its server, which New then
	// starts again.
	Fail func()
}

// Run tests the subject, each promise in a test of its own.
func Run(t *testing.T, subject Subject) {
	t.Helper()
	for _, p := range subject.promises() {
		t.Run(p.text, func(t *testing.T) {
			if err := subject.keeps(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
}

// Check tests the subject, and returns an error that joins one for each promise it
// breaks, nil if it breaks none.
func Check(ctx context.Context, subject Subject) error {
	var errs []error
	for _, p := range subject.promises() {
		errs = append(errs, subject.keeps(ctx, p))
	}
	return errors.Join(errs...)
}

// promises are those that the suite can put to the test.
func (s Subject) promises() []promise {
	all := slices.Concat(decisions, keeping, callers, histories)
	if s.Fail != nil {
		all = append(all, failing...)
	}
	return all
}

// keeps returns an error if the subject breaks the promise.
func (s Subject) keeps(ctx context.Context, p promise) error {
	t := &trial{ctx: ctx, subject: s, model: Reference()}
	err := t.test(p.test)
	if _, ok := t.store.(ratetier.QuickStore); ok && err == nil {
		quick := &trial{ctx: ctx, subject: s, model: Reference(), quick: true}
		err = quick.test(p.test)
	}
	if err != nil {
		return fmt.Errorf("broken promise: %s:\n%w", p.text, err)
	}
	return nil
}

// open returns a store and what closes it.
func open(from func() (ratetier.Store, error)) (ratetier.Store, func() error, error) {
	store, err := from()
	if err != nil {
		return nil, nil, err
	}
	if closer, ok := store.(io.Closer); ok {
		return store, closer.Close, nil
	}
	return store, func() error { return nil }, nil
}
