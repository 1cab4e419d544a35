package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// callers are the promises to those who call a store.
var callers = []promise{
	{"However many callers share a key, in one process or many, the outcome is that of some order of their requests, one after the other", sharedKeys},
	{"All methods are safe for concurrent use", ownKeys},
	{"Nothing of the request or the result is kept after Apply returns", reusedMemory},
	{"A context that is done charges nothing, and its error is returned", doneContexts},
}

// failing are the promises that only a store that fails can break.
var failing = []promise{
	{"Errors name neither keys nor users", secrets},
	{"Degraded tells that the store could not reach what instances share", degraded},
}

func sharedKeys(t *trial) {
	stores := []ratetier.Store{t.store}
	if t.subject.Peer != nil {
		peer, ok := t.open("Peer", t.subject.Peer)
		if !ok {
			return
		}
		stores = append(stores, peer)
	}
	for round := range 10 {
		t.takeTogether(stores, user(fmt.Sprint("taker", round)), rates{tenPerMinute, hundredPerDay}[:1+round%2])
	}
	t.chargeTogether(stores, user("spender"))
}

// takeTogether takes 1 of a bucket of 10 from 200 goroutines. In whichever order
// they come, the first ten are allowed, each sees the use of those before it, and
// the others find the bucket empty.
func (t *trial) takeTogether(stores []ratetier.Store, key ratetier.Key, limits rates) {
	const callers = 200
	results := make([]ratetier.Result, callers)
	t.together(callers, func(i int) {
		request := t.request(take, key, limits, 1)
		results[i], _ = t.apply(stores[i%len(stores)], &request)
	})
	slices.SortFunc(results, func(a, b ratetier.Result) int {
		if a.Allowed != b.Allowed {
			return cmp.Compare(verdict(a.Allowed), verdict(b.Allowed)) // allowed first
		}
		return slices.Compare(a.Used[:], b.Used[:])
	})
	for i, got := range results {
		request := t.request(take, key, limits, 1)
		if want := t.expect(&request); got != want {
			t.errorf("%d at once, each %s: the one in place %d is %s, want %s",
				callers, describe(&request), i+1, describeResult(&got), describeResult(&want))
			return
		}
	}
}

// chargeTogether has charges, takes and refunds meet where all of them fit, so that
// their order does not matter to the sum.
func (t *trial) chargeTogether(stores []ratetier.Store, key ratetier.Key) {
	limits := rates{every(second, 1000)}
	t.steps(key, limits, step{0, take, 500, true, cells{500}})
	t.together(150, func(i int) {
		mode := []ratetier.Mode{take, charge, refund}[i%3]
		request := t.request(mode, key, limits, 2)
		t.apply(stores[i%len(stores)], &request)
		t.expect(&request)
	})
	t.steps(key, limits, step{0, take, 0, true, cells{400}})
}

// ownKeys has each goroutine use a bucket of its own.
func ownKeys(t *trial) {
	limits := rates{tenPerMinute, hundredPerDay, every(36*second, 100), every(second, 60)}
	shared := user("shared")
	t.together(16, func(i int) {
		key := user(fmt.Sprint("ana", i))
		mine := limits[:1+i%len(limits)]
		for range 10 {
			for _, mode := range []ratetier.Mode{take, take, refund, charge, take} {
				request := t.request(mode, key, mine, 3)
				if !t.ask(&request) {
					return
				}
			}
			t.reset(shared)
			t.reset(key)
		}
	})
}

// reusedMemory does what a caller may who keeps strings in a buffer that he reads
// the next request into, as fasthttp does.
func reusedMemory(t *trial) {
	buffer := []byte("freeana")
	key := ratetier.Key{Tier: unsafe.String(&buffer[0], 4), User: unsafe.String(&buffer[4], 3)}
	limits := rates{tenPerMinute}
	t.steps(key, limits, step{0, take, 10, true, cells{0}})
	copy(buffer, "plusbea")
	limits[0] = gcra.Limit{Interval: int64(minute), Offset: int64(minute)}

	t.steps(ana, rates{tenPerMinute}, step{0, take, 1, false, cells{0}})
	t.steps(ratetier.Key{Tier: "plus", User: "bea"}, rates{tenPerMinute}, step{0, take, 0, true, cells{10}})
	t.steps(ana, rates{tenPerMinute}, step{6 * second, take, 1, true, cells{0}})

	request := t.request(take, ana, rates{tenPerMinute}, 1)
	var first, second ratetier.Result
	for _, result := range []*ratetier.Result{&first, &second} {
		if err := t.store.Apply(t.ctx, &request, result); err != nil {
			t.errorf("%s: %w", describe(&request), err)
			return
		}
		request = t.request(refund, ana, rates{tenPerMinute}, 5)
	}
	refused := ratetier.Result{Used: [ratetier.MaxRates]int64{tenPerMinute.Offset}}
	if first != refused {
		t.errorf("the result of one request, once another is done: %s, want %s", describeResult(&first), describeResult(&refused))
	}
}

// doneContexts accepts that a store charges as usual: it need not look at contexts
// if it does not wait.
func doneContexts(t *trial) {
	canceled, cancel := context.WithCancel(t.ctx)
	cancel()
	expired, cancel := context.WithDeadline(t.ctx, time.Unix(0, 0))
	defer cancel()
	for _, ctx := range []context.Context{canceled, expired} {
		key := user(ctx.Err().Error())
		request := t.request(take, key, rates{tenPerMinute}, 4)
		left := cells{10}
		var result ratetier.Result
		switch err := t.store.Apply(ctx, &request, &result); {
		case err == nil:
			left = cells{6}
			if want := t.expect(&request); result != want {
				t.errorf("%s: %s, want %s", describe(&request), describeResult(&result), describeResult(&want))
			}
		case !errors.Is(err, ctx.Err()):
			t.errorf("%s: error %q, want one that is %q", describe(&request), err, ctx.Err())
		}
		t.steps(key, rates{tenPerMinute}, step{0, take, 0, true, left})
	}
}

func secrets(t *trial) {
	const tier, name = "t13r", "ana:s3cr3t"
	key := ratetier.Key{Tier: tier, User: name}
	t.steps(key, rates{tenPerMinute}, step{0, take, 1, true, cells{9}})
	t.subject.Fail()
	request := t.request(take, key, rates{tenPerMinute}, 1)
	for _, err := range []error{
		t.store.Apply(t.ctx, &request, new(ratetier.Result)),
		t.store.Reset(t.ctx, key),
	} {
		if err == nil {
			continue
		}
		text := fmt.Sprintf("%v %+v", err, err)
		for _, secret := range []string{tier, name, "s3cr3t"} {
			if strings.Contains(text, secret) {
				t.errorf("error %q has %q in it", err, secret)
			}
		}
	}
}

func degraded(t *trial) {
	t.steps(ana, rates{tenPerMinute}, step{0, take, 1, true, cells{9}})
	t.subject.Fail()
	request := t.request(take, ana, rates{tenPerMinute}, 1)
	var result ratetier.Result
	if err := t.store.Apply(t.ctx, &request, &result); err == nil && !result.Degraded {
		t.errorf("after Fail, %s: neither an error nor degraded", describe(&request))
	}
}
