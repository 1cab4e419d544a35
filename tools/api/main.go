// Command api compares what the modules export with their last release. A change that
// breaks users is an error, unless VERSION is raised as far as such a change demands:
// the minor version before v1, the major version from then on. It is run from the root
// of the repository:
//
//	go run ./tools/api
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

func main() {
	if err := run(context.Background(), ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, out io.Writer) error {
	r, err := repo.Open(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range r.Released() {
		tag, err := lastTag(ctx, r, m)
		switch {
		case err != nil:
			return err
		case tag == "":
			fmt.Fprintf(out, "%s: not released yet\n", m.Dir)
			continue
		}
		report, err := compare(ctx, r, m, tag)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s since %s:\n%s\n", m.Dir, tag, report)
		if breaks(report) && !mayBreak(strings.TrimPrefix(tag, m.Dir+"/"), r.Version) {
			errs = append(errs, fmt.Errorf("api: %s breaks users of %s: a release as %s must not; raise VERSION, or keep what was there",
				m.Dir, tag, r.Version))
		}
	}
	return errors.Join(errs...)
}

func breaks(report apidiff.Report) bool {
	return slices.ContainsFunc(report.Changes, func(change apidiff.Change) bool { return !change.Compatible })
}

// mayBreak tells whether users of one version must expect changes to their code when
// they go to the next.
func mayBreak(from, to string) bool {
	if semver.Major(from) == "v0" {
		return semver.MajorMinor(from) != semver.MajorMinor(to)
	}
	return semver.Major(from) != semver.Major(to)
}

// lastTag returns the tag of the module's highest release, "" before the first.
func lastTag(ctx context.Context, r *repo.Repo, m repo.Module) (string, error) {
	tags, err := r.Git(ctx, "tag", "--list", "--sort=-version:refname", m.Dir+"/v*")
	last, _, _ := strings.Cut(tags, "\n")
	return last, err
}

// compare reports what has changed in the module's exported API since the tag.
func compare(ctx context.Context, r *repo.Repo, m repo.Module, tag string) (report apidiff.Report, err error) {
	temp, err := os.MkdirTemp("", "api")
	if err != nil {
		return report, err
	}
	released := filepath.Join(temp, "released")
	if _, err := r.Git(ctx, "worktree", "add", "--detach", released, tag); err != nil {
		return report, errors.Join(err, os.RemoveAll(temp))
	}
	defer func() {
		_, removed := r.Git(ctx, "worktree", "remove", "--force", released)
		err = errors.Join(err, removed, os.RemoveAll(temp))
	}()
	before, err := load(ctx, filepath.Join(released, m.Dir), m.Path())
	if err != nil {
		return report, err
	}
	now, err := load(ctx, filepath.Join(r.Root, m.Dir), m.Path())
	if err != nil {
		return report, err
	}
	return apidiff.ModuleChanges(before, now), nil
}

// load reads the types of all packages of a module that users can import.
func load(ctx context.Context, dir, path string) (*apidiff.Module, error) {
	loaded, err := packages.Load(&packages.Config{
		Context: ctx,
		Mode:    packages.NeedName | packages.NeedTypes | packages.NeedModule,
		Dir:     dir,
		Env:     append(os.Environ(), "GOWORK=off"),
	}, "./...")
	if err != nil {
		return nil, err
	}
	module := &apidiff.Module{Path: path}
	var errs []error
	for _, p := range loaded {
		for _, err := range p.Errors {
			errs = append(errs, err)
		}
		if !strings.Contains(p.PkgPath+"/", "/internal/") {
			module.Packages = append(module.Packages, p.Types)
		}
	}
	return module, errors.Join(errs...)
}
