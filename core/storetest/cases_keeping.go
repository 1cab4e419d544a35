package storetest

import (
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

// keeping are the promises about what is kept of a bucket.
var keeping = []promise{
	{"A bucket never asked for, or reset, is full", fullBuckets},
	{"A bucket is kept until it is full again", usedBuckets},
	{"What it is kept under is all three fields of the Key, never confused", keys},
	{"A use above a full bucket counts as an empty one", changedQuotas},
	{"So a request that comes late gives nothing back", lateRequests},
	{"a clock set back or a lowered quota costs nobody more than one refill and that", clocksSetBack},
	{"A request with a different number of rates than the bucket was last used with finds the highest use of them in each", changedRates},
}

func fullBuckets(t *trial) {
	limits := rates{tenPerMinute, hundredPerDay, every(hour, 50), every(second, 20)}
	full, used := cells{10, 100, 50, 20}, cells{0, 90, 40, 10}
	others := []ratetier.Key{user("bea"), {Tier: "pro", User: "ana"}, {Tier: "free", User: "ana", Anonymous: true}}
	for _, key := range others {
		t.steps(key, limits, step{0, take, 10, true, used})
	}
	for n := 1; n <= ratetier.MaxRates; n++ {
		t.reset(ana)
		t.steps(ana, limits[:n],
			step{0, take, 0, true, full[:n]},
			step{0, take, 10, true, used[:n]},
			step{0, take, 1, false, used[:n]},
		)
	}
	t.reset(ana)
	t.reset(user("nobody"))
	t.steps(ana, limits, step{0, take, 0, true, full})
	t.steps(user("nobody"), limits, step{0, take, 0, true, full})
	for _, key := range others {
		t.steps(key, limits, step{0, take, 1, false, used})
	}
}

func usedBuckets(t *trial) {
	t.steps(user("one"), rates{every(10*second, 1)},
		step{0, take, 1, true, cells{0}},
		step{2 * second, take, 1, false, cells{0}},
		step{5 * second, take, 1, false, cells{0}},
		step{9 * second, take, 1, false, cells{0}},
		step{10*second - time.Microsecond, take, 1, false, cells{0}},
		step{10 * second, take, 1, true, cells{0}},
		step{19 * second, take, 1, false, cells{0}},
	)

	// It is the slowest rate that counts, and what was charged last.
	t.steps(user("two"), rates{every(2*second, 5), every(20*second, 5)},
		step{20 * second, take, 5, true, cells{0, 0}},
		step{30 * second, take, 1, false, cells{5, 0}},
		step{40 * second, take, 1, true, cells{4, 0}},
		step{121 * second, take, 1, true, cells{4, 3}},
	)
	t.steps(user("later"), rates{tenPerMinute},
		step{121 * second, take, 1, true, cells{9}},
		step{125 * second, take, 9, true, cells{0}},
		step{128 * second, take, 2, false, cells{1}},
		step{180 * second, take, 10, false, cells{9}},
		step{180 * second, refund, 1, true, cells{10}},
		step{180 * second, take, 10, true, cells{0}},
		step{239 * second, take, 10, false, cells{9}},
	)

	// Neither milliseconds nor seconds are rounded down.
	t.steps(user("odd"), rates{every(10*second+500*time.Microsecond, 1)},
		step{240 * second, take, 1, true, cells{0}},
		step{250*second + 300*time.Microsecond, take, 1, false, cells{0}},
		step{250*second + 500*time.Microsecond, take, 1, true, cells{0}},
	)

	// A clock set back does not make it old.
	t.steps(user("back"), rates{every(10*second, 1)},
		step{260 * second, take, 1, true, cells{0}},
		step{200 * second, take, 1, false, cells{0}},
	)
}

// keys has pairs that are told apart only by those who neither join, trim, fold,
// cut nor parse them.
func keys(t *trial) {
	long := strings.Repeat("long", 1<<12)
	keys := []ratetier.Key{
		{Tier: "a", User: "b:c"},
		{Tier: "a:b", User: "c"},
		{Tier: "1:a", User: "b"},
		{Tier: "1", User: "a:b"},
		{Tier: "ab", User: "c"},
		{Tier: "a", User: "bc"},
		{Tier: "a", User: ""},
		{Tier: "a", User: "", Anonymous: true},
		{Tier: "a", User: "10.0.0.1"},
		{Tier: "a", User: "10.0.0.1", Anonymous: true},
		{Tier: "ip", User: "10.0.0.1"},
		{Tier: "a", User: "anonymous"},
		{Tier: "a", User: "ana"},
		{Tier: "a", User: "Ana"},
		{Tier: "A", User: "ana"},
		{Tier: "a", User: "ana "},
		{Tier: "a", User: "ana\n"},
		{Tier: "a", User: "ana\x00"},
		{Tier: "a", User: "{ana}"},
		{Tier: "a", User: "{ana"},
		{Tier: "a", User: "}{"},
		{Tier: "a}", User: "{"},
		{Tier: "a", User: "*"},
		{Tier: "a", User: "%s"},
		{Tier: "a", User: "\xff"},
		{Tier: "a", User: "\xfe"},
		{Tier: "a", User: "\u00e9"},
		{Tier: "a", User: "e\u0301"},
		{Tier: "a", User: long + "1"},
		{Tier: "a", User: long + "2"},
		{Tier: long, User: "1"},
	}
	limits := rates{tenPerMinute}
	for _, key := range keys {
		t.steps(key, limits, step{0, take, 10, true, cells{0}})
	}
	for i, key := range keys {
		t.reset(key)
		t.steps(key, limits, step{0, take, 0, true, cells{10}})
		for _, other := range keys[i+1:] {
			t.steps(other, limits, step{0, take, 1, false, cells{0}})
		}
	}
}

func changedQuotas(t *trial) {
	tenPerHour, hundredPerHour := rates{every(6*minute, 10)}, rates{every(36*second, 100)}
	onePerHour, onePerSecond := rates{every(hour, 10)}, rates{every(second, 10)}

	// The use is a share of the bucket: 95 of 100 are 95 % of 10.
	t.steps(user("lowered"), hundredPerHour, step{0, take, 95, true, cells{5}})
	t.steps(user("lowered"), tenPerHour,
		step{0, take, 0, true, cells{0}},
		step{0, take, 1, false, cells{0}},
		step{3 * minute, take, 1, true, cells{0}},
	)

	// Who is exhausted stays so, and is back as soon as the new rate allows.
	t.steps(user("raised"), tenPerHour, step{3 * minute, take, 10, true, cells{0}})
	t.steps(user("raised"), hundredPerHour,
		step{3 * minute, take, 1, false, cells{0}},
		step{3*minute + 36*second, take, 1, true, cells{0}},
		step{3*minute + 36*second, take, 1, false, cells{0}},
	)

	// Years of one rate are no more than a full bucket of the next, and the lateness.
	t.steps(user("repriced"), onePerHour, step{hour, take, 10, true, cells{0}})
	t.steps(user("repriced"), onePerSecond,
		step{90 * minute, take, 1, false, cells{0}},
		step{90*minute + 2*second, take, 1, true, cells{0}},
		step{90*minute + 2*second, take, 1, false, cells{0}},
		step{90*minute + 12*second, take, 10, true, cells{0}},
	)
	for _, change := range []struct {
		name  string
		step  step
		after cells // 5 s
	}{
		{"charged", step{2 * hour, charge, 1, true, cells{0}}, cells{4}},
		{"peeked at", step{2 * hour, take, 0, true, cells{0}}, cells{4}},
		{"refunded", step{2 * hour, refund, 2, true, cells{1}}, cells{6}},
	} {
		t.steps(user(change.name), onePerHour, step{2 * hour, take, 10, true, cells{0}})
		t.steps(user(change.name), onePerSecond, change.step,
			step{2*hour + 5*second, take, 0, true, change.after})
	}
}

func lateRequests(t *trial) {
	for _, late := range []time.Duration{time.Microsecond, 200 * time.Millisecond, gcra.Lateness} {
		t.steps(user("one, late by "+late.String()), rates{every(second, 10)},
			step{hour, take, 10, true, cells{0}},
			step{hour - late, take, 1, false, cells{0}},
			step{hour - late, charge, 1, true, cells{0}},
			step{hour, take, 1, false, cells{0}},
			step{hour + second, take, 2, false, cells{1}},
		)
		t.steps(user("two, late by "+late.String()), rates{every(second, 10), hundredPerDay},
			step{hour, take, 10, true, cells{0, 90}},
			step{hour - late, take, 1, false, cells{0, 89}},
			step{hour - late, charge, 1, true, cells{0, 88}},
			step{hour, take, 1, false, cells{0, 89}},
			step{hour + second, take, 2, false, cells{1, 89}},
		)
	}
}

func clocksSetBack(t *trial) {
	// Refusals on the way do not keep it from refilling.
	steps := []step{{hour, take, 1, true, cells{9}}, {0, take, 1, false, cells{0}}, {second, take, 1, false, cells{0}}}
	for i := range 12 {
		now := time.Duration(i+2) * second
		steps = append(steps, step{now, take, 1, true, cells{0}}, step{now, take, 1, false, cells{0}})
	}
	t.steps(ana, rates{every(second, 10)}, steps...)

	t.steps(user("two"), rates{every(second, 10), hundredPerDay},
		step{2 * hour, take, 10, true, cells{0, 90}},
		step{hour, take, 1, false, cells{0, 85}},
		step{hour + 2*second, take, 1, true, cells{0, 84}},
		step{hour + 12*second, take, 10, true, cells{0, 74}},
	)

	// A lowered quota lets as much time pass.
	t.steps(user("lowered"), rates{hundredPerDay}, step{3 * hour, take, 100, true, cells{0}})
	t.steps(user("lowered"), rates{tenPerMinute},
		step{3 * hour, take, 1, false, cells{0}},
		step{3*hour + 31*second, take, 6, false, cells{5}},
		step{3*hour + 61*second, take, 10, true, cells{0}},
	)
}

func changedRates(t *trial) {
	limits := rates{tenPerMinute, hundredPerDay, every(36*second, 100), every(second, 60)}

	t.steps(user("more"), limits[:1],
		step{0, take, 7, true, cells{3}}) // 42 s
	t.steps(user("more"), limits[:2],
		step{0, take, 4, false, cells{3, 99}},
		step{0, take, 3, true, cells{0, 96}}) // 60 s and 2634 s
	t.steps(user("more"), limits,
		step{0, take, 1, false, cells{0, 96, 26, 0}}) // each as much as it can of 2634 s

	t.steps(user("fewer"), limits,
		step{0, take, 1, true, cells{9, 99, 99, 59}}) // 864 s is the highest
	t.steps(user("fewer"), limits[1:],
		step{0, charge, 1, true, cells{98, 75, 0}}) // 1728 s
	t.steps(user("fewer"), limits[2:],
		step{0, charge, 1, true, cells{51, 0}}) // 1764 s
	t.steps(user("fewer"), limits[:1],
		step{0, take, 1, false, cells{0}},
		step{7 * second, take, 1, true, cells{0}},
	)

	// Full is full in any number.
	t.steps(user("full"), limits[:2], step{minute, take, 1, true, cells{9, 99}})
	t.steps(user("full"), limits[:3], step{minute + 864*second, take, 10, true, cells{0, 90, 90}})
	t.reset(user("full"))
	t.steps(user("full"), limits[:1], step{minute + 864*second, take, 10, true, cells{0}})
}
