package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const docs = "../../docs"

// A page that somebody edits, or that belongs to other runs, is no longer what was
// measured. The page is there as soon as the index of the documentation lists it.
func TestThePageIsWhatTheRunsSay(t *testing.T) {
	dirs := []string{"testdata"}
	index, err := os.ReadFile(filepath.Join(docs, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(docs, kept)); err == nil || bytes.Contains(index, []byte("("+page+")")) {
		dirs = append(dirs, docs)
	}
	for _, dir := range dirs {
		files, err := pageOf(filepath.Join(dir, kept))
		if err != nil {
			t.Errorf("%v: measure with make bench", err)
			continue
		}
		for name, content := range files {
			committed, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Error(err)
			} else if !bytes.Equal(committed, content) {
				t.Errorf("%s/%s is not what is made of the runs: run go run ./tools/bench -render -dir %[1]s, from the root", strings.TrimPrefix(dir, "../../"), name)
			}
		}
		charts, err := filepath.Glob(filepath.Join(dir, "benchmarks", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, chart := range charts {
			if files["benchmarks/"+filepath.Base(chart)] == nil {
				t.Errorf("%s: no run is drawn there: remove it", chart)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	r := results(t,
		"BenchmarkX/by=ratetier-2 1 50 ns/op 0 allocs/op",
		"BenchmarkX/by=slow-2 1 100 ns/op 2 allocs/op",
		"BenchmarkX/by=quick-2 1 40 ns/op 0 allocs/op")
	mine := median("X/by=ratetier", seconds)
	for _, test := range []struct {
		goal           goal
		measured, want string
	}{
		{atMost("", mine, 51e-9, duration), "50 ns", "met"},
		{atMost("", mine, 49e-9, duration), "50 ns", "**missed**"},
		{atLeast("", over(median("X/by=slow", seconds), mine), 2, times), "2.00×", "met"},
		{atLeast("", over(fastest("X/by=%"), mine), 1, times), "0.80×", "**missed**"},
		{atMost("", median("Y", seconds), 1, duration), "-", "not measured"},
		{atMost("", minus(mine, median("Y", seconds)), 1, duration), "-", "not measured"},
	} {
		if measured, got := test.goal.verdict(r); got != test.want || measured != test.measured {
			t.Errorf("got %s, %s, want %s, %s", measured, got, test.measured, test.want)
		}
	}
}

func TestACellThatIsLostSaysSo(t *testing.T) {
	r := results(t,
		"BenchmarkX/by=ratetier-2 1 50 ns/op",
		"BenchmarkX/by=slow-2 1 100 ns/op",
		"BenchmarkX/by=quick-2 1 40 ns/op",
		"BenchmarkX/by=context-2 1 10 ns/op")
	c := took("", "X/by=%", duration)
	for peer, want := range map[string]string{
		"ratetier": "50 ns",
		"slow":     "100 ns, 2.00×",
		"quick":    "40 ns **lost**, 0.80×",
		"context":  "10 ns", // limits nobody
		"absent":   "-",
	} {
		if got := c.cell(r, peer); got != want {
			t.Errorf("%s: %q, want %q", peer, got, want)
		}
	}
}

func TestAFigureIsTheMedianOfTheRounds(t *testing.T) {
	r := results(t, "BenchmarkX-2 1 50 ns/op", "BenchmarkX-2 1 900 ns/op", "BenchmarkX-2 1 40 ns/op")
	if got, ok := r.median("X", seconds); !ok || duration(got) != "50 ns" {
		t.Errorf("got %v, %t", got, ok)
	}
}

func TestRunsThatCannotBeReadAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":           "",
		"no results":        "go: go1.26.8\n",
		"a line that broke": "BenchmarkX-2 1 50 ns/op\nBenchmarkX-2 many\n",
	} {
		if _, err := read(strings.NewReader(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func results(t *testing.T, lines ...string) *runs {
	t.Helper()
	r, err := read(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
