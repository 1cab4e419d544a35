package storetest

import (
	"slices"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

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

// steps takes the steps, up to the first that goes wrong.
func (t *trial) steps(key ratetier.Key, limits rates, steps ...step) {
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
	got, ok := t.apply(t.store, &request)
	if !ok {
		return false
	}
	want, left := t.expect(&request), make(cells, len(limits))
	for i, limit := range limits {
		left[i] = limit.Remaining(got.Used[i])
	}
	if got.Allowed != s.allowed || !slices.Equal(left, s.left) {
		t.errorf("%s: %s with %v left, want %s with %v left", describe(&request), verdict(got.Allowed), left, verdict(s.allowed), s.left)
		return false
	}
	return t.judge(&request, got, want)
}
