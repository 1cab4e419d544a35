package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// start is when each case begins. As in real life, it takes more bits in
// nanoseconds than a float64 has.
var start = time.Unix(1_800_000_000, 123_456_000)

// promise is one case.
type promise struct {
	text string
	test func(*trial)
}

// trial is one promise being tested.
type trial struct {
	ctx     context.Context
	subject Subject
	quick   bool // ask a quick store as a limiter does
	store   ratetier.Store
	model   ratetier.Store // knows what the store has to answer
	now     time.Time
	closers []func()

	mu     sync.Mutex // tests report from many goroutines
	errs   []error
	untold int
}

// test runs the test with a new store, and returns what went wrong.
func (t *trial) test(test func(*trial)) error {
	t.run(test)
	for _, c := range slices.Backward(t.closers) {
		c()
	}
	if t.untold > 0 {
		t.errs = append(t.errs, fmt.Errorf("and %d more", t.untold))
	}
	return errors.Join(t.errs...)
}

func (t *trial) run(test func(*trial)) {
	defer t.caught()
	store, ok := t.open("New", t.subject.New)
	if !ok {
		return
	}
	t.store = store
	t.setTime(start)
	test(t)
}

// open returns a store that is closed after the test.
func (t *trial) open(name string, from func() (ratetier.Store, error)) (ratetier.Store, bool) {
	store, closeStore, err := open(from)
	if err != nil {
		t.errorf("%s: %w", name, err)
		return nil, false
	}
	t.closers = append(t.closers, func() {
		if err := closeStore(); err != nil {
			t.errorf("closing what %s returned: %w", name, err)
		}
	})
	if quick, ok := store.(ratetier.QuickStore); ok && t.quick {
		if quick.Itself() != store {
			t.errorf("%s: Itself returns another store", name)
		}
		store = takeFirst{quick}
	}
	return store, true
}

// caught makes a panic an error: it breaks the promise, not the process.
func (t *trial) caught() {
	if p := recover(); p != nil {
		t.errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// errorf adds an error, or counts it where there are enough to see what is wrong.
func (t *trial) errorf(format string, args ...any) {
	const enough = 10
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.errs) == enough {
		t.untold++
		return
	}
	t.errs = append(t.errs, fmt.Errorf(format, args...))
}

func (t *trial) setTime(now time.Time) {
	t.now = now
	if t.subject.SetTime != nil {
		t.subject.SetTime(now)
	}
}

// at moves the time to d after the start, and has the store forget what it may.
func (t *trial) at(d time.Duration) {
	t.setTime(start.Add(d))
	if t.subject.Collect != nil {
		t.subject.Collect(t.now)
	}
}

func (t *trial) request(mode ratetier.Mode, key ratetier.Key, limits rates, cost int64) ratetier.Request {
	return ratetier.Request{Mode: mode, Key: key, Limits: limits, Cost: cost, Now: t.now.UnixNano()}
}

// ask has the store answer the request, and returns false if that goes wrong.
func (t *trial) ask(request *ratetier.Request) bool {
	got, ok := t.apply(t.store, request)
	return ok && t.judge(request, got, t.expect(request))
}

// judge returns whether the result is, to the nanosecond, the one wanted.
func (t *trial) judge(request *ratetier.Request, got, want ratetier.Result) bool {
	if got != want {
		t.errorf("%s: %s, want %s", describe(request), describeResult(&got), describeResult(&want))
	}
	return got == want
}

// apply applies the request to a store, and returns false if that fails.
func (t *trial) apply(store ratetier.Store, request *ratetier.Request) (result ratetier.Result, ok bool) {
	if err := store.Apply(t.ctx, request, &result); err != nil {
		t.errorf("%s: %w", describe(request), err)
		return result, false
	}
	return result, true
}

// expect returns what the model answers.
func (t *trial) expect(request *ratetier.Request) (result ratetier.Result) {
	_ = t.model.Apply(t.ctx, request, &result) // the reference never fails
	return result
}

// buckets returns how many the store says it holds.
func (t *trial) buckets() int {
	n, err := t.subject.Buckets()
	if err != nil {
		t.errorf("Buckets: %w", err)
	}
	return n
}

// reset resets the bucket in the store and in the model.
func (t *trial) reset(key ratetier.Key) {
	if err := t.store.Reset(t.ctx, key); err != nil {
		t.errorf("reset of %s: %w", describeKey(key), err)
	}
	_ = t.model.Reset(t.ctx, key) // the reference never fails
}

// together calls f from n goroutines at once, and waits for them.
func (t *trial) together(n int, f func(i int)) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			defer t.caught()
			ready.Done()
			ready.Wait()
			f(i)
		})
	}
	done.Wait()
}
