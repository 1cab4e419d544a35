// Command release tags the next release of every module on the commit that is checked
// out, as RELEASING.md tells. It is run from the root of the repository:
//
//	go run ./tools/release -set v0.2.0   # write the version to VERSION and every go.mod
//	go run ./tools/release               # check, and show the tags
//	go run ./tools/release -write        # check, and write them
//	go run ./tools/release -notes        # print what the changelog says about it
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

func main() {
	set := flag.String("set", "", "the `version` to prepare")
	write := flag.Bool("write", false, "write the tags, instead of showing them")
	notes := flag.Bool("notes", false, "print what the changelog says about the version")
	flag.Parse()

	r, err := repo.Open(".")
	switch {
	case err != nil:
	case *set != "":
		err = r.SetVersion(*set)
	case *notes:
		var section string
		section, err = changes(r)
		fmt.Print(section)
	default:
		err = release(context.Background(), r, *write, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// release shows or writes the tags, unless something speaks against the release. It
// then says everything that does, and writes none.
func release(ctx context.Context, r *repo.Repo, write bool, out io.Writer) error {
	tags := make([]string, 0, len(r.Modules))
	for _, m := range r.Released() {
		tags = append(tags, m.Dir+"/"+r.Version)
	}
	err := errors.Join(
		r.CheckSiblings(),
		checkTree(ctx, r),
		checkChangelog(r),
		checkTags(ctx, r, tags),
	)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		fmt.Fprintln(out, tag)
		if !write {
			continue
		}
		if _, err := r.Git(ctx, "tag", "--annotate", "--message", tag, tag); err != nil {
			return err
		}
	}
	if write {
		// GitHub tells workflows nothing of tags that come by more than three at once.
		core := "core/" + r.Version
		others := slices.DeleteFunc(tags, func(tag string) bool { return tag == core })
		fmt.Fprintf(out, "\ngit push origin %s\ngit push origin %s\n", strings.Join(others, " "), core)
	}
	return nil
}

func checkTree(ctx context.Context, r *repo.Repo) error {
	changes, err := r.Git(ctx, "status", "--porcelain")
	if err == nil && changes != "" {
		err = fmt.Errorf("release: the working tree is not clean: commit or remove\n%s", changes)
	}
	return err
}

func checkChangelog(r *repo.Repo) error {
	_, err := changes(r)
	return err
}

// changes returns what CHANGELOG.md says about the version, without the heading.
func changes(r *repo.Repo) (string, error) {
	changelog, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	heading := fmt.Sprintf("## [%s] - ", strings.TrimPrefix(r.Version, "v"))
	_, section, found := strings.Cut(string(changelog), "\n"+heading)
	if !found {
		return "", fmt.Errorf("release: CHANGELOG.md has no section %q: give what is under Unreleased its version and date", heading)
	}
	_, section, _ = strings.Cut(section, "\n") // the date
	section, _, _ = strings.Cut(section, "\n## ")
	section, _, _ = strings.Cut(section, "\n[") // the links
	return strings.TrimSpace(section) + "\n", nil
}

func checkTags(ctx context.Context, r *repo.Repo, tags []string) error {
	taken, err := r.Git(ctx, append([]string{"tag", "--list"}, tags...)...)
	if err == nil && taken != "" {
		err = fmt.Errorf("release: %s is tagged already: raise VERSION, a published version never changes\n%s",
			r.Version, taken)
	}
	return err
}
