package fallbackstore_test

import (
	"context"
	"errors"
	"sync/atomic"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
)

var errDown = errors.New("the primary is down")

// fakePrimary is a primary that fails when it is told to. Its answer, or failure, can also
// wait for the end of the context.
type fakePrimary struct {
	ratetier.Store
	failure  atomic.Pointer[error]
	hang     atomic.Bool  // until the context ends
	panics   atomic.Bool  // on any request
	asked    atomic.Int64 // requests so far
	readOnly atomic.Bool  // fails what would change a bucket
}

func newFakePrimary() *fakePrimary { return &fakePrimary{Store: storetest.Reference()} }

// failWith has it fail from now on; nil ends that.
func (p *fakePrimary) failWith(err error) { p.failure.Store(&err) }

func (p *fakePrimary) failing() error {
	if err := p.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *fakePrimary) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	p.asked.Add(1)
	if p.panics.Load() {
		panic("the primary is broken")
	}
	if p.hang.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := p.failing(); err != nil {
		result.Used[0] = 1 // what fails may have begun to answer
		return err
	}
	err := p.Store.Apply(ctx, request, result)
	if p.readOnly.Load() && result.Allowed && request.Cost > 0 {
		return errDown
	}
	return err
}

func (p *fakePrimary) Reset(ctx context.Context, key ratetier.Key) error {
	if err := p.failing(); err != nil {
		return err
	}
	return p.Store.Reset(ctx, key)
}

// limits returns the limits of the quota.
func limits(quota ratetier.Quota) []gcra.Limit {
	var all []gcra.Limit
	for _, r := range quota.Rates() {
		limit, err := gcra.New(r.Count, r.Period, r.Burst)
		if err != nil {
			panic(err)
		}
		all = append(all, limit)
	}
	return all
}
