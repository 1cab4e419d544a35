package storetest

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// Bench measures the subject's Apply, the same for all stores: one user or many,
// one goroutine or as many as there are processors, allowed or refused. Each answer
// is checked.
func Bench(b *testing.B, subject Subject) {
	b.Helper()
	inexhaustible := rates{every(1, int64(gcra.MaxOffset))}
	for _, w := range []workload{
		{"one user", 1, inexhaustible, true},
		{"100000 users", 100_000, inexhaustible, true},
		{"one user refused", 1, rates{tenPerMinute}, false},
	} {
		b.Run(w.name, func(b *testing.B) { w.run(b, subject) })
	}
}

// workload is one kind of traffic: takes of 1, all allowed or all refused.
type workload struct {
	name    string
	users   int
	limits  rates
	allowed bool
}

func (w workload) run(b *testing.B, subject Subject) {
	b.Helper()
	store, closeStore, err := open(subject.New)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := closeStore(); err != nil {
			b.Error(err)
		}
	}()
	if subject.SetTime != nil {
		subject.SetTime(start)
	}
	c := caller{workload: w, store: store}
	for i := range w.users {
		c.keys = append(c.keys, user("user-"+strconv.Itoa(i)))
	}
	if !w.allowed {
		empty := ratetier.Request{Mode: charge, Key: c.keys[0], Limits: w.limits, Cost: 10, Now: start.UnixNano()}
		if err := store.Apply(b.Context(), &empty, new(ratetier.Result)); err != nil {
			b.Fatal(err)
		}
	}

	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		mine, i := c, 0
		for b.Loop() {
			if err := mine.call(b.Context(), i); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		var callers atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			mine, i := c, int(callers.Add(1))*w.users/3
			for pb.Next() {
				if err := mine.call(b.Context(), i); err != nil {
					b.Error(err)
					return
				}
				i++
			}
		})
	})
}

// caller is one goroutine, which uses its memory again as a limiter does.
type caller struct {
	workload
	store   ratetier.Store
	keys    []ratetier.Key
	request ratetier.Request
	result  ratetier.Result
}

// call takes 1 for the next user, and returns an error if that is not answered as
// it has to be.
func (c *caller) call(ctx context.Context, i int) error {
	c.request = ratetier.Request{Key: c.keys[i%len(c.keys)], Limits: c.limits, Cost: 1, Now: start.UnixNano()}
	c.result = ratetier.Result{}
	if err := c.store.Apply(ctx, &c.request, &c.result); err != nil {
		return err
	}
	if c.result.Allowed != c.allowed {
		return fmt.Errorf("take %d is %s", i, describeResult(&c.result))
	}
	return nil
}
