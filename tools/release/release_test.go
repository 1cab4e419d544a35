package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/repo"
	"github.com/ratetier/ratetier/tools/internal/repotest"
)

const changelog = `# Changelog

## [Unreleased]

- core: not yet.

## [0.2.0] - 2027-01-31

### Added

- core: a quota.

## [0.1.0] - 2026-12-24

- core: the first.

[Unreleased]: https://example.com
`

// files is a repository that is ready to be released.
var files = map[string]string{
	"VERSION":      "v0.2.0\n",
	"CHANGELOG.md": changelog,
	"core/go.mod":  "module github.com/ratetier/ratetier/core\n\ngo 1.25.0\n",
	"adapters/gin/go.mod": `module github.com/ratetier/ratetier/adapters/gin

go 1.25.0

require github.com/ratetier/ratetier/core v0.2.0
`,
	"examples/go.mod": `module github.com/ratetier/ratetier/examples

go 1.25.0

require github.com/ratetier/ratetier/core v0.2.0
`,
}

func TestDryRunShowsTheTagsAndWritesNone(t *testing.T) {
	r := repotest.Commit(t, files)
	var out strings.Builder
	if err := release(t.Context(), r, false, &out); err != nil {
		t.Fatal(err)
	}
	if want := "adapters/gin/v0.2.0\ncore/v0.2.0\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if tags := repotest.Git(t, r, "tag"); tags != "" {
		t.Errorf("wrote the tags %q", tags)
	}
}

func TestWriteTagsEveryReleasedModule(t *testing.T) {
	r := repotest.Commit(t, files)
	var out strings.Builder
	if err := release(t.Context(), r, true, &out); err != nil {
		t.Fatal(err)
	}
	if tags := repotest.Git(t, r, "tag"); tags != "adapters/gin/v0.2.0\ncore/v0.2.0" {
		t.Errorf("wrote the tags %q", tags)
	}
	if !strings.HasSuffix(out.String(), "\ngit push origin adapters/gin/v0.2.0\ngit push origin core/v0.2.0\n") {
		t.Errorf("printed %q", out.String())
	}
}

func TestReleaseIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(map[string]string)
		after  func(*repo.Repo)
		want   string
	}{
		"a sibling at another version": {
			change: func(files map[string]string) {
				files["examples/go.mod"] = strings.ReplaceAll(files["examples/go.mod"], "v0.2.0", "v0.1.0")
			},
			want: "examples/go.mod requires github.com/ratetier/ratetier/core v0.1.0: must be v0.2.0",
		},
		"no section in the changelog": {
			change: func(files map[string]string) { files["CHANGELOG.md"] = "# Changelog\n\n## [Unreleased]\n" },
			want:   `no section "## [0.2.0] - "`,
		},
		"a file that is not committed": {
			after: func(r *repo.Repo) { repotest.Write(t, r.Root, map[string]string{"stray.txt": ""}) },
			want:  "not clean: commit or remove\n?? stray.txt",
		},
		"a tag that is taken": {
			after: func(r *repo.Repo) { repotest.Git(t, r, "tag", "core/v0.2.0") },
			want:  "v0.2.0 is tagged already",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(files)
			if test.change != nil {
				test.change(files)
			}
			r := repotest.Commit(t, files)
			if test.after != nil {
				test.after(r)
			}
			before := repotest.Git(t, r, "tag")
			err := release(t.Context(), r, true, &strings.Builder{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
			if tags := repotest.Git(t, r, "tag"); tags != before {
				t.Errorf("wrote the tags %q", tags)
			}
		})
	}
}

func TestNotesAreTheSectionOfTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v0.2.0": "### Added\n\n- core: a quota.\n",
		"v0.1.0": "- core: the first.\n",
	} {
		r := repotest.Commit(t, files)
		r.Version = version
		if notes, err := changes(r); err != nil || notes != want {
			t.Errorf("the notes of %s are %q, %v, want %q", version, notes, err, want)
		}
	}
}

func TestSetVersionReachesEveryRequirement(t *testing.T) {
	r := repotest.Commit(t, files)
	if err := r.SetVersion("v0.3.0"); err != nil {
		t.Fatal(err)
	}
	changed := strings.Fields(repotest.Git(t, r, "diff", "--name-only"))
	if want := []string{"VERSION", "adapters/gin/go.mod", "examples/go.mod"}; !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q", changed, want)
	}
	r, err := repo.Open(r.Root)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckSiblings(); err != nil || r.Version != "v0.3.0" {
		t.Errorf("version %s, siblings: %v", r.Version, err)
	}
}

func TestVersionMustBeComplete(t *testing.T) {
	r := repotest.Commit(t, files)
	for _, version := range []string{"0.3.0", "v0.3", "v1", "next"} {
		if err := r.SetVersion(version); err == nil {
			t.Errorf("SetVersion(%q) was accepted", version)
		}
	}
}
