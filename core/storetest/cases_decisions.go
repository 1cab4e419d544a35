package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// decisions are the promises about what is charged.
var decisions = []promise{
	{"ModeTake charges the cost if it fits all rates, else nothing", takes},
	{"ModeCharge charges the cost whether it fits or not, down to an empty bucket", charges},
	{"ModeRefund gives the cost back, up to a full bucket", refunds},
	{"In ModeCharge and ModeRefund, an Interval may be 0", intervalsOfZero},
	{"A request that is refused changes nothing, for any number of rates", refusals},
	{"A peek, which is a take of cost 0, is always allowed, and creates nothing", peeks},
	{"Used is the use of each of the request's limits after it, in nanoseconds", precision},
}

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

var (
	tenPerMinute  = every(6*second, 10)
	hundredPerDay = every(864*second, 100)
)

func takes(t *trial) {
	t.steps(ana, rates{tenPerMinute},
		step{0, take, 3, true, cells{7}},
		step{0, take, 7, true, cells{0}},
		step{0, take, 1, false, cells{0}},
		step{6 * second, take, 1, true, cells{0}},
		step{6 * second, take, 1, false, cells{0}},
		step{36 * second, take, 5, true, cells{0}},
		step{36 * second, take, 1, false, cells{0}},
		step{2 * minute, take, 10, true, cells{0}},
	)
	t.steps(user("two"), rates{tenPerMinute, hundredPerDay},
		step{2 * minute, take, 10, true, cells{0, 90}},
		step{2 * minute, take, 1, false, cells{0, 90}},
		step{3 * minute, take, 10, true, cells{0, 80}},
	)
	t.steps(user("four"), rates{every(second, 20), tenPerMinute, every(36*second, 100), hundredPerDay},
		step{3 * minute, take, 4, true, cells{16, 6, 96, 96}},
		step{3 * minute, take, 7, false, cells{16, 6, 96, 96}},
		step{3 * minute, take, 6, true, cells{10, 0, 90, 90}},
	)
}

func charges(t *trial) {
	t.steps(ana, rates{tenPerMinute},
		step{0, charge, 3, true, cells{7}},
		step{0, charge, 20, true, cells{0}},
		step{0, charge, 1, true, cells{0}},
		step{0, charge, math.MaxInt64, true, cells{0}},
		step{6 * second, take, 1, true, cells{0}}, // it was forgiven, not owed
		step{6 * second, charge, 0, true, cells{0}},
	)
	t.steps(user("two"), rates{tenPerMinute, hundredPerDay},
		step{6 * second, charge, 30, true, cells{0, 70}},
		step{6 * second, charge, 60, true, cells{0, 10}},
		step{6 * second, take, 1, false, cells{0, 10}},
	)
}

func refunds(t *trial) {
	t.steps(ana, rates{tenPerMinute},
		step{0, take, 8, true, cells{2}},
		step{0, refund, 3, true, cells{5}},
		step{0, refund, 0, true, cells{5}},
		step{12 * second, refund, 2, true, cells{9}},
		step{12 * second, refund, 50, true, cells{10}},
		step{12 * second, refund, math.MaxInt64, true, cells{10}},
		step{12 * second, take, 10, true, cells{0}},
		step{12 * second, take, 1, false, cells{0}}, // nothing was saved up
	)
	t.steps(user("two"), rates{tenPerMinute, hundredPerDay},
		step{12 * second, refund, 5, true, cells{10, 100}},
		step{12 * second, take, 10, true, cells{0, 90}},
		step{30 * second, refund, 8, true, cells{10, 98}},
		step{30 * second, take, 10, true, cells{0, 88}},
		step{30 * second, take, 1, false, cells{0, 88}},
	)
}

// intervalsOfZero spells what time to charge as a cell of that length, as
// [ratetier.Admission.Settle] does.
func intervalsOfZero(t *trial) {
	move := func(mode ratetier.Mode, perMinute, perDay time.Duration) {
		request := t.request(mode, ana, rates{
			{Interval: int64(perMinute), Offset: tenPerMinute.Offset},
			{Interval: int64(perDay), Offset: hundredPerDay.Offset},
		}, 1)
		t.ask(&request)
	}
	find := func(left cells) { t.steps(ana, rates{tenPerMinute, hundredPerDay}, step{0, take, 0, true, left}) }

	move(refund, 6*second, 0)
	find(cells{10, 100})
	move(charge, 24*second, 0)
	find(cells{6, 100})
	move(charge, 0, 6*864*second)
	find(cells{6, 94})
	move(refund, 12*second, 0)
	find(cells{8, 94})
	move(charge, 2*minute, 0) // more than the rate has
	find(cells{0, 94})
	move(charge, 0, 0)
	find(cells{0, 94})
}

func refusals(t *trial) {
	t.steps(ana, rates{tenPerMinute},
		step{0, take, 8, true, cells{2}},
		step{0, take, 5, false, cells{2}},
		step{0, take, 3, false, cells{2}},
		step{0, take, 2, true, cells{0}},
	)

	// Asking more often than the rate delays nothing.
	var eager []step
	for i := range 40 {
		eager = append(eager, step{time.Duration(i) * second, take, 1, i%10 == 0, cells{0}})
	}
	t.steps(user("eager"), rates{every(10*second, 1)}, eager...)

	// What one rate refuses is charged to none, whichever it is.
	all := rates{every(second, 10), every(minute, 500), every(hour, 100), every(day/1000, 1000)}
	spent := cells{0, 490, 90, 990}
	for n := 2; n <= ratetier.MaxRates; n++ {
		for tight := range n {
			limits, left := make(rates, n), make(cells, n)
			for i := range n { // the tight one is the first of all
				from := (i + n - tight) % n
				limits[i], left[i] = all[from], spent[from]
			}
			key := user(fmt.Sprintf("%d rates, %d before the tight one", n, tight))
			t.steps(key, limits, step{hour, take, 10, true, left})
			t.steps(key, limits, slices.Repeat([]step{{hour, take, 1, false, left}}, 21)...)
		}
	}
}

func peeks(t *trial) {
	t.steps(ana, rates{tenPerMinute},
		step{0, take, 0, true, cells{10}},
		step{0, take, 10, true, cells{0}},
		step{0, take, 0, true, cells{0}},
		step{0, take, 0, true, cells{0}},
	)

	// A bucket that was created, though full, would seem used to an earlier time.
	t.steps(user("bea"), rates{tenPerMinute},
		step{hour, take, 0, true, cells{10}},
		step{0, take, 0, true, cells{10}},
	)

	if t.subject.Buckets == nil {
		return
	}
	before := t.buckets()
	for _, name := range []string{"c", "d", "e", "f"} {
		t.steps(user(name), rates{tenPerMinute}, step{0, take, 0, true, cells{10}})
	}
	if after := t.buckets(); after != before {
		t.errorf("%d buckets before peeking at 4 that did not exist, %d after", before, after)
	}
}

// precision uses odd and extreme intervals. Since times are whole microseconds, a
// cell is back at the first of them that is not too early.
func precision(t *trial) {
	for _, limit := range []gcra.Limit{
		every(1_764_705_883, 17),         // 17 in 30 seconds
		every(1300*time.Millisecond, 10), // 10 in 13 seconds
		every(3_333_333_334, 3),          // 3 in 10 seconds
		every(250*time.Millisecond, 40),  // 2 in half a second
		every(166_667, 60_000),           // 6000 a second
		every(15_260, 1_000_000),         // 65535 a second
		every(1112, 9_000_000),           // 900000 a second
		every(1500, 10_000_000),          // 40 million a minute
		every(1, 20_000_000_000),         // a billion a second, the most there is
		every(12_342_857_142_858, 7),     // 7 a day
		every(10*365*day, 1),             // 1 in 10 years
		every(gcra.MaxOffset, 1),         // the least there is
	} {
		interval, burst := time.Duration(limit.Interval), limit.Burst()
		back := (interval + time.Microsecond - 1).Truncate(time.Microsecond)
		t.steps(user(fmt.Sprint(limit)), rates{limit},
			step{0, take, 1, true, cells{burst - 1}},
			step{0, take, burst - 1, true, cells{0}},
			step{0, take, 1, false, cells{0}},
			step{back - time.Microsecond, take, 1, false, cells{0}},
			step{back, take, 1, true, cells{int64(back/interval) - 1}},
		)
	}
}
