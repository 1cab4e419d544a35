package main

import (
	"fmt"
	"strings"
)

// goal is what a figure shall be at most, or at least.
type goal struct {
	text    string
	figure  value
	atLeast bool
	bound   float64
	show    func(float64) string
}

func atMost(text string, figure value, bound float64, show func(float64) string) goal {
	return goal{text, figure, false, bound, show}
}

func atLeast(text string, figure value, bound float64, show func(float64) string) goal {
	return goal{text, figure, true, bound, show}
}

// verdict returns what was measured, and "met", "**missed**" or, without results, "not
// measured".
func (g goal) verdict(r *runs) (measured, verdict string) {
	figure, ok := g.figure(r)
	switch {
	case !ok:
		return "-", "not measured"
	case g.atLeast == (figure >= g.bound) || figure == g.bound:
		return g.show(figure), "met"
	}
	return g.show(figure), "**missed**"
}

func (g goal) row(r *runs) string {
	measured, verdict := g.verdict(r)
	word := "at most"
	if g.atLeast {
		word = "at least"
	}
	return fmt.Sprintf("| %s | %s %s | %s | %s |\n", g.text, word, g.show(g.bound), measured, verdict)
}

// frameworks are those that a middleware is measured on, with the peers there that add at
// least twice what we do.
var frameworks = []struct {
	name  string
	halve []string
}{
	{"net-http", []string{"httprate", "ulule"}},
	{"chi", []string{"httprate"}},
	{"gin", []string{"ulule"}},
	{"echo", nil},
}

// goals are what we want to reach.
func goals() []goal {
	var goals []goal
	add := func(g goal) { goals = append(goals, g) }

	const ns = 1e-9
	for _, cell := range []struct {
		users            string
		serial, parallel float64
		lead             float64 // over the fastest peer
	}{{"1", 75, 60, 1}, {"100000", 200, 100, 1.3}, {"1000000", 450, 230, 1.3}} {
		for _, way := range []struct {
			name  string
			bound float64
		}{{"serial", cell.serial}, {"parallel", cell.parallel}} {
			name, text := "Memory/users="+cell.users+"/by=%/"+way.name, "In memory, "+people(cell.users)+", "+way.name
			mine := median(of(name, ours), seconds)
			add(atMost(text, mine, way.bound*ns, duration))
			add(atLeast(text+", the fastest peer beside it", over(fastest(name), mine), cell.lead, times))
		}
	}
	add(atMost("In memory, allocations of a check", median(of("Memory/users=1000000/by=%/serial", ours), allocations), 0, count))
	add(atMost("In memory, a refused check beside an allowed one", over(median("Refused/answer=refused", seconds), median("Refused/answer=allowed", seconds)), 1.1, times))

	redis := func(callers, peer string) value { return median("Redis/callers="+callers+"/by="+peer, seconds) }
	add(atMost("Redis, 1 caller, time beside redis_rate", over(redis("1", ours), redis("1", "redis_rate")), 1, times))
	add(atLeast("Redis, 64 callers, checks a second beside redis_rate", over(redis("64", "redis_rate"), redis("64", ours)), 2.5, times))
	add(atLeast("Redis, 256 callers, checks a second beside redis_rate", over(redis("256", "redis_rate"), redis("256", ours)), 3.5, times))
	add(atMost("Redis, allocations of a check", median("Redis/callers=1/by="+ours, allocations), 8, count))
	add(atLeast("Redis, refused again beside a round trip", over(redis("1", ours), median("RedisRefused", seconds)), 100, times))

	for _, framework := range frameworks {
		columns := addedTo(framework.name)
		time, allocs := columns[0].figure, columns[1].figure
		on := "On " + framework.name + ", "
		add(atMost(on+"added time", time(ours), 400*ns, duration))
		add(atMost(on+"added allocations", allocs(ours), 5, count))
		for _, peer := range framework.halve {
			add(atMost(on+"added time beside "+peer, over(time(ours), time(peer)), 0.5, times))
		}
	}
	echo := addedTo("echo")[0].figure
	add(atMost("On echo, added time beside echo's own, which sends no headers", over(echo(ours), echo("echo")), 2, times))

	add(atMost("In memory, 10 million users beside 1 million, time", over(median("Growth/users=10000000", seconds), median("Growth/users=1000000", seconds)), 1.5, times))
	add(atMost("In memory, bytes for each of 1 million users", median("Growth/users=1000000", bytesPerKey), 56, size))
	add(atMost("In memory, bytes for each of 10 million users", median("Growth/users=10000000", bytesPerKey), 56, size))
	add(atMost("In memory, while 1 million buckets are swept, all checks but 1 in 10 000", median("Sweep", held), 100e-6, duration))
	add(atMost("1000 tiers beside 3, time", over(median("Tiers/tiers=1000", seconds), median("Tiers/tiers=3", seconds)), 1.1, times))
	return goals
}

// people reads a number of users as a person does.
func people(users string) string {
	return strings.NewReplacer("1000000", "1 million users", "100000", "100 000 users", "1", "1 user").Replace(users)
}
