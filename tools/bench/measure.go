package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

// measurement says how to run the benchmarks.
type measurement struct {
	rounds  int
	time    time.Duration
	pattern string
}

// write runs the benchmarks, and replaces the file by their results when all rounds
// are done. What was measured, and on what, comes first, in the format of Go's
// benchmarks, as "key: value".
func (m measurement) write(ctx context.Context, file string) (err error) {
	r, err := repo.Open(".")
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	program := filepath.Join(temp, "bench.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, ".")
	build.Dir, build.Env, build.Stderr = benchmarks, append(os.Environ(), "GOWORK=off"), os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	var results strings.Builder
	if err := m.describe(ctx, r, &results); err != nil {
		return err
	}
	for round := range m.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, m.rounds)
		cmd := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.shuffle", "on",
			"-test.bench", m.pattern, "-test.benchtime", m.time.String(), "-test.timeout", "30m")
		cmd.Dir = benchmarks
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&results, os.Stderr), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("bench: a benchmark failed, nothing is kept: %w", err)
		}
	}
	return os.WriteFile(file, []byte(results.String()), 0o644)
}

// describe writes the versions and the machine. The peers are the modules that the
// benchmarks require and use.
func (m measurement) describe(ctx context.Context, r *repo.Repo, out io.Writer) error {
	commit, err := r.Git(ctx, "rev-parse", "--short", "HEAD")
	if err != nil {
		return err
	}
	redis, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "date: %s\n", time.Now().UTC().Format(time.DateOnly))
	fmt.Fprintf(out, "commit: %s\n", commit)
	fmt.Fprintf(out, "go: %s\n", runtime.Version())
	fmt.Fprintf(out, "cores: %d\n", runtime.NumCPU())
	fmt.Fprintf(out, "rounds: %d\n", m.rounds)
	fmt.Fprintf(out, "time: %s\n", m.time)
	for word := range strings.FieldsSeq(string(redis)) {
		if version, ok := strings.CutPrefix(word, "v="); ok {
			fmt.Fprintf(out, "redis: %s\n", version)
		}
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-f",
		"{{with .Module}}{{if not (or .Main .Indirect .Replace)}}"+required+"{{.Path}}: {{.Version}}{{end}}{{end}}", ".")
	list.Dir, list.Env = benchmarks, append(os.Environ(), "GOWORK=off")
	modules, err := list.Output()
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(modules)), "\n")
	slices.Sort(lines)
	fmt.Fprintln(out, strings.Join(slices.Compact(lines), "\n"))
	return nil
}

// benchmarks is the folder of their module.
const benchmarks = "bench"

// required begins the key of a module that the benchmarks require.
const required = "module/"
