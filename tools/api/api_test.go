package main

import (
	"strings"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/repotest"
)

// files is a repository of one module.
var files = map[string]string{
	"VERSION":                "v0.1.0\n",
	"core/go.mod":            "module github.com/ratetier/ratetier/core\n\ngo 1.25.0\n",
	"core/core.go":           "package ratetier\n\nfunc Take(cost int) {}\n",
	"core/internal/i/own.go": "package i\n\nfunc Own() {}\n",
}

func TestChangesSinceTheLastRelease(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		version       string
		printed       string
		refused       bool
	}{
		"nothing":                             {"README.md", "", "v0.1.1", "core since core/v0.1.0:\n\n", false},
		"an addition":                         {"core/more.go", "package ratetier\n\nfunc Peek() {}\n", "v0.1.1", "Peek: added", false},
		"a break in a patch":                  {"core/core.go", "package ratetier\n\nfunc Take() {}\n", "v0.1.1", "Take: changed", true},
		"a break in a minor version":          {"core/core.go", "package ratetier\n\nfunc Take() {}\n", "v0.2.0", "Take: changed", false},
		"a break that only we could notice":   {"core/internal/i/own.go", "package i\n", "v0.1.1", "core since", false},
		"a change that does not even compile": {"core/core.go", "package ratetier\n\nfunc Take(cost count) {}\n", "v0.1.1", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := repotest.Commit(t, files)
			repotest.Git(t, r, "tag", "core/v0.1.0")
			repotest.Write(t, r.Root, map[string]string{test.file: test.content, "VERSION": test.version})
			var out strings.Builder
			err := run(t.Context(), r.Root, &out)
			if refused := err != nil; refused != test.refused {
				t.Errorf("got error %v, want one: %t", err, test.refused)
			}
			if !strings.Contains(out.String(), test.printed) {
				t.Errorf("printed %q, want %q in it", out.String(), test.printed)
			}
			if worktrees := repotest.Git(t, r, "worktree", "list", "--porcelain"); strings.Count(worktrees, "worktree ") != 1 {
				t.Errorf("left behind:\n%s", worktrees)
			}
		})
	}
}

func TestWithoutAReleaseThereIsNothingToCompare(t *testing.T) {
	r := repotest.Commit(t, files)
	var out strings.Builder
	if err := run(t.Context(), r.Root, &out); err != nil {
		t.Fatal(err)
	}
	if want := "core: not released yet\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestWhenUsersMustExpectABreak(t *testing.T) {
	for _, test := range []struct {
		from, to string
		want     bool
	}{
		{"v0.1.0", "v0.1.1", false},
		{"v0.1.0", "v0.2.0", true},
		{"v0.9.0", "v1.0.0", true},
		{"v1.0.0", "v1.1.0", false},
		{"v1.9.0", "v2.0.0", true},
	} {
		if got := mayBreak(test.from, test.to); got != test.want {
			t.Errorf("mayBreak(%s, %s) = %t", test.from, test.to, got)
		}
	}
}
