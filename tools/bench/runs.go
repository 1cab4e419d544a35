package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// The units of the results, in base units: benchfmt makes seconds of nanoseconds.
const (
	seconds     = "sec/op"
	allocations = "allocs/op"
	bytesPerKey = "B/key"
	held        = "held-sec"
)

// runs are the results of all rounds.
type runs struct {
	setup  []benchfmt.Config               // what was measured, and on what
	names  []string                        // of the benchmarks, as they come in the first round
	values map[string]map[string][]float64 // by name and unit
}

// read reads results in the format of Go's benchmarks. What it cannot read is an error,
// and so is a file without results.
func read(from io.Reader) (*runs, error) {
	r := &runs{values: map[string]map[string][]float64{}}
	reader := benchfmt.NewReader(from, kept)
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			if r.setup == nil {
				r.setup = record.Clone().Config
			}
			name := nameOf(record)
			if r.values[name] == nil {
				r.names = append(r.names, name)
				r.values[name] = map[string][]float64{}
			}
			for _, v := range record.Values {
				r.values[name][v.Unit] = append(r.values[name][v.Unit], v.Value)
			}
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(r.names) == 0 {
		return nil, errors.New("there are no results")
	}
	// The order of the rounds is shuffled, that of the page is not.
	slices.SortStableFunc(r.names, func(a, b string) int { return strings.Compare(base(a), base(b)) })
	return r, nil
}

// nameOf returns the name of the benchmark, without the number of processors at its
// end.
func nameOf(result *benchfmt.Result) string {
	name := result.Name.String()
	if _, parts := result.Name.Parts(); len(parts) > 0 {
		if last := string(parts[len(parts)-1]); strings.HasPrefix(last, "-") {
			name = strings.TrimSuffix(name, last)
		}
	}
	return name
}

func base(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// get returns a line of the set-up, "" if there is none.
func (r *runs) get(key string) string {
	for _, config := range r.setup {
		if config.Key == key {
			return string(config.Value)
		}
	}
	return ""
}

// median returns the median of a benchmark's results in the unit, and whether there
// are any.
func (r *runs) median(name, unit string) (float64, bool) {
	values := r.values[name][unit]
	if len(values) == 0 {
		return 0, false
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, 0.95).Center, true
}

// peers returns who was measured, in order, where the name of a benchmark has a %.
func (r *runs) peers(name string) []string {
	var found []string
	before, after, _ := strings.Cut(name, "%")
	for _, name := range r.names {
		rest, ok := strings.CutPrefix(name, before)
		peer, ended := strings.CutSuffix(rest, after)
		if ok && ended && peer != "" && !strings.Contains(peer, "/") {
			found = append(found, peer)
		}
	}
	return found
}

// of returns the name of the benchmark of a peer, who stands where the name has a %.
func of(name, peer string) string { return strings.Replace(name, "%", peer, 1) }
