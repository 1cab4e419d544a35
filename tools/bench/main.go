// Command bench compares ratetier with its peers. It runs the benchmarks of the bench
// module in rounds, each of which runs every benchmark once, in another order, so that
// what else the machine does falls on all alike. It keeps the runs in
// docs/benchmarks.txt, and makes of them docs/benchmarks.md, which it also prints, and
// the charts in docs/benchmarks. It is run from the root of the repository:
//
//	go run ./tools/bench            # run, and make the page
//	go run ./tools/bench -render    # make the page again from the runs that are kept
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// kept is the file of the runs, in the folder of the documentation.
const kept = "benchmarks.txt"

func main() {
	render := flag.Bool("render", false, "make the page again from the runs that are kept")
	dir := flag.String("dir", "docs", "the `folder` to keep the runs and the page in")
	var m measurement
	flag.IntVar(&m.rounds, "rounds", 6, "how often each benchmark is run")
	flag.DurationVar(&m.time, "time", 300*time.Millisecond, "how long it is run")
	flag.StringVar(&m.pattern, "pattern", ".", "which benchmarks to run, a regular expression")
	flag.Parse()

	if err := run(context.Background(), *dir, *render, m); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, render bool, m measurement) error {
	if !render {
		if err := m.write(ctx, filepath.Join(dir, kept)); err != nil {
			return err
		}
	}
	files, err := pageOf(filepath.Join(dir, kept))
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	_, err = os.Stdout.Write(files[page])
	return err
}

// pageOf returns the files that are made from the file of the runs: the page and its
// charts, by their path in the folder of the documentation.
func pageOf(file string) (map[string][]byte, error) {
	results, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := read(bytes.NewReader(results))
	if err != nil {
		return nil, fmt.Errorf("bench: %s: %w", file, err)
	}
	files := map[string][]byte{page: r.page()}
	maps.Copy(files, r.charts())
	return files, nil
}
