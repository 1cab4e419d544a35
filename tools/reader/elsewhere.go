package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// What a reader is not made to wait for is run elsewhere, at least as often. The target of
// a Makefile is run by CI, or in a place that is named here.
var elsewhere = map[string]string{
	"bench":   "docs/benchmarks.txt", // what it printed
	"release": "tools/release/release_test.go",
	"version": "tools/release/release_test.go",
}

// had is what brings a reader here, or to a release, and cannot be done again.
var had = []string{
	"git clone https://github.com/ratetier/ratetier && cd ratetier",
	"git switch --create release main",
}

var (
	made      = regexp.MustCompile(`(?m)\bmake ([a-z0-9]+)`)
	inCI      = regexp.MustCompile(`(?m)^ci:([^#\n]*)`)
	workflows = []string{".github/workflows/*.yml", ".ci/run"}
)

// checkElsewhere tells whether the command is one that is not run here, and if so,
// returns an error unless it is run elsewhere.
func checkElsewhere(ctx context.Context, root, line string) (bool, error) {
	if slices.Contains(had, line) {
		return true, nil
	}
	target := made.FindStringSubmatch(line)
	if target == nil || line == "make run" {
		return false, nil
	}
	if place, ok := elsewhere[target[1]]; ok {
		if _, err := os.Stat(filepath.Join(root, place)); err != nil {
			return true, fmt.Errorf("%s: %w", line, err)
		}
	} else if tested, err := testedByCI(root); err != nil || !slices.Contains(tested, target[1]) {
		return true, fmt.Errorf("%s: CI does not run it: %w", line, err)
	}
	dry := exec.CommandContext(ctx, "bash", "-c", strings.Replace(line, "make", "make --dry-run", 1))
	dry.Dir = root
	if output, err := dry.CombinedOutput(); err != nil {
		return true, fmt.Errorf("%s: %w\n%s", line, err, output)
	}
	return true, nil
}

// testedByCI returns the targets that are part of make ci, and those that CI makes.
func testedByCI(root string) ([]string, error) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, prerequisites := range inCI.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, strings.Fields(prerequisites[1])...)
	}
	for _, pattern := range workflows {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			for _, target := range made.FindAllStringSubmatch(string(text), -1) {
				targets = append(targets, target[1])
			}
		}
	}
	return targets, nil
}
