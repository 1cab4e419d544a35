package storetest

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
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
	store   ratetier.Store
	model   ratetier.Store // knows what the store has to answer
	now     time.Time

	mu   sync.Mutex // tests report from many goroutines
	errs []error
}

// test runs the test with a new store.
func (t *trial) test(test func(*trial)) {
	defer t.caught()
	store, closeStore, err := open(t.subject.New)
	if err != nil {
		t.errorf("New: %w", err)
		return
	}
	t.store = store
	t.setTime(start)
	test(t)
	if err := closeStore(); err != nil {
		t.errorf("Close: %w", err)
	}
}

// caught makes a panic an error: it breaks the promise, not the process.
func (t *trial) caught() {
	if p := recover(); p != nil {
		t.errorf("panic: %v\n%s", p, debug.Stack())
	}
}

func (t *trial) errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
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

// What a step does.
const (
	take   = ratetier.ModeTake
	charge = ratetier.ModeCharge
	refund = ratetier.ModeRefund
)

// step is one request and its outcome.
type step struct {
	at      time.Duration // since the start
	mode    ratetier.Mode
	cost    int64
	allowed bool
	left    cells
}

// cells is how many whole cells are left of each rate.
type cells []int64

// rates are the rates of a request.
type rates []gcra.Limit

// every is the rate of one cell per interval, with room for burst.
func every(interval time.Duration, burst int64) gcra.Limit {
	return gcra.Limit{Interval: int64(interval), Offset: int64(interval) * burst}
}

// user is the key of a user of a tier named free.
func user(name string) ratetier.Key { return ratetier.Key{Tier: "free", User: name} }

// ana is whose bucket it is where that does not matter.
var ana = user("ana")

// run takes the steps, up to the first that goes wrong.
func (t *trial) run(key ratetier.Key, limits rates, steps ...step) {
	for _, s := range steps {
		if d := t.now.Sub(start); s.at != d {
			t.at(s.at)
		}
		if !t.step(key, limits, s) {
			return
		}
	}
}

// step takes one step now, and returns false if it goes wrong.
func (t *trial) step(key ratetier.Key, limits rates, s step) bool {
	request := t.request(s.mode, key, limits, s.cost)
	result, ok := t.ask(&request)
	if !ok {
		return false
	}
	left := make(cells, len(limits))
	for i, limit := range limits {
		left[i] = limit.Remaining(result.Used[i])
	}
	if result.Allowed != s.allowed || !slices.Equal(left, s.left) {
		t.errorf("%s: %s with %v left, want %s with %v left", t.describe(&request), verdict(result.Allowed), left, verdict(s.allowed), s.left)
		return false
	}
	return true
}

func (t *trial) request(mode ratetier.Mode, key ratetier.Key, limits rates, cost int64) ratetier.Request {
	return ratetier.Request{Mode: mode, Key: key, Limits: limits, Cost: cost, Now: t.now.UnixNano()}
}

// ask has the store answer the request, and returns false if that is not what the
// model answers.
func (t *trial) ask(request *ratetier.Request) (ratetier.Result, bool) {
	got, ok := t.apply(t.store, request)
	if !ok {
		return got, false
	}
	if want := t.expect(request); got != want {
		t.errorf("%s: %s, want %s", t.describe(request), describe(&got), describe(&want))
		return got, false
	}
	return got, true
}

// apply applies the request to a store, and returns false if that fails.
func (t *trial) apply(store ratetier.Store, request *ratetier.Request) (result ratetier.Result, ok bool) {
	if err := store.Apply(t.ctx, request, &result); err != nil {
		t.errorf("%s: %w", t.describe(request), err)
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

func (t *trial) describe(r *ratetier.Request) string {
	return fmt.Sprintf("%v after the start, %v %d of %s for %s",
		time.Duration(r.Now-start.UnixNano()), r.Mode, r.Cost, describeLimits(r.Limits), describeKey(r.Key))
}

func describe(r *ratetier.Result) string {
	used := make([]time.Duration, len(r.Used))
	for i := range used {
		used[i] = time.Duration(r.Used[i])
	}
	text := fmt.Sprintf("%s and used %v", verdict(r.Allowed), used)
	if r.Degraded {
		text += ", degraded"
	}
	return text
}

func verdict(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "refused"
}

func describeLimits(limits []gcra.Limit) string {
	texts := make([]string, len(limits))
	for i, limit := range limits {
		texts[i] = fmt.Sprintf("%v per cell and %v in all", time.Duration(limit.Interval), time.Duration(limit.Offset))
	}
	return strings.Join(texts, ", ")
}

func describeKey(key ratetier.Key) string {
	text := fmt.Sprintf("tier %q, user %.40q", key.Tier, key.User)
	if key.Anonymous {
		text += ", anonymous"
	}
	return text
}
