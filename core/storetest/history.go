package storetest

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// histories is what finds the fault that no other case thought of.
var histories = []promise{
	{"Apply is the whole decision", func(t *trial) {
		for seed := range uint64(4) {
			newHistory(t, seed).run(500)
		}
	}},
}

// quotas are what a bucket may be asked with, by number of rates.
var quotas = [ratetier.MaxRates][]rates{
	{{tenPerMinute}, {every(36*second, 100)}, {every(1_764_705_883, 17)}, {every(1112, 9_000_000)}},
	{{tenPerMinute, hundredPerDay}, {every(second, 10), every(minute, 20)}, {every(15_260, 700_000), every(hour, 700_000)}},
	{{every(second, 10), tenPerMinute, hundredPerDay}, {every(2*second, 20), every(minute, 30), every(hour, 40)}},
	{{every(second, 20), tenPerMinute, every(36*second, 100), hundredPerDay}},
}

// history is a random sequence of requests, the same for the same seed. Its clock
// only goes forward: what a clock set back finds of a bucket that was full is for a
// store to choose.
type history struct {
	*trial
	random *rand.Rand
	keys   []ratetier.Key
	rates  []int // how many rates each bucket was last used with
}

func newHistory(t *trial, seed uint64) *history {
	h := &history{trial: t, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range 6 {
		h.keys = append(h.keys, user(strconv.FormatUint(seed, 10)+"/"+strconv.Itoa(i)))
		h.rates = append(h.rates, 1+i%ratetier.MaxRates)
	}
	return h
}

// run takes so many steps, or fewer if one goes wrong.
func (h *history) run(steps int) {
	for range steps {
		h.pass()
		i := h.random.IntN(len(h.keys))
		if h.oneIn(20) {
			h.reset(h.keys[i])
		}
		request := h.next(i)
		if !h.ask(&request) {
			return
		}
	}
}

// pass lets some time pass, or none.
func (h *history) pass() {
	longest := 20 * second
	switch {
	case h.oneIn(2):
		return
	case h.oneIn(10):
		longest = hour
	}
	d := time.Duration(h.random.Int64N(int64(longest))).Truncate(time.Microsecond)
	if h.oneIn(20) {
		h.at(h.now.Add(d).Sub(start))
	} else {
		h.setTime(h.now.Add(d))
	}
}

// next returns a request for a bucket.
func (h *history) next(i int) ratetier.Request {
	mode := []ratetier.Mode{take, take, take, charge, refund}[h.random.IntN(5)]
	rates := h.rates[i]
	if h.oneIn(10) {
		// What charges nothing might leave the old rates in place, or not.
		rates, mode = 1+h.random.IntN(ratetier.MaxRates), charge
		h.rates[i] = rates
	}
	limits := h.quota(rates)
	most := int64(math.MaxInt64)
	for _, limit := range limits {
		most = min(most, limit.Burst())
	}
	if h.oneIn(2) {
		most = min(most, 3)
	}
	cost := 1 + h.random.Int64N(most)
	switch {
	case mode == take && h.oneIn(5):
		cost = 0
	case mode != take && h.oneIn(10):
		cost = math.MaxInt64
	}
	return h.request(mode, h.keys[i], limits, cost)
}

func (h *history) quota(n int) rates {
	choice := quotas[n-1]
	return choice[h.random.IntN(len(choice))]
}

func (h *history) oneIn(n int) bool { return h.random.IntN(n) == 0 }
