package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pagesOf returns the paths of all pages, below root: the documentation, and the
// programs, whose first comment says how to run them.
func pagesOf(root string) ([]string, error) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "*/*/README.md", "examples/*/main.go"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			page, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			pages = append(pages, filepath.ToSlash(page))
		}
	}
	return pages, nil
}

// A step is a command that a page prints, and what the page shows of its output. A step
// without a command is what the one before prints once it has been repeated.
type step struct {
	line  string
	shows string
}

var (
	// fence is a block of a page, or code within a line that begins like a command.
	fence  = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$|`((?:make|(?:go run|go get|git|curl) )[^`]*)`")
	remark = regexp.MustCompile(`\s+# .*$`)
	// unrun are the languages of what is not run: a test of examples looks for the files
	// that code is copied from.
	unrun = []string{"go", "yaml", "text"}
)

// steps returns what a page in Markdown has its reader do.
func steps(text string) ([]step, error) {
	var found []step
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		switch language, body, inline := block[1], block[2], block[3]; {
		case inline != "":
			found = append(found, step{line: inline})
		case language == "console":
			found = append(found, console(body)...)
		case !slices.Contains(unrun, language):
			return nil, fmt.Errorf("a block of %q: nobody has said how to check it; commands are in blocks of console", language)
		}
	}
	return found, nil
}

// console returns the steps of one block. A prompt is a dollar sign.
func console(body string) []step {
	steps := []step{{}}
	for line := range strings.Lines(body) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{line: remark.ReplaceAllString(strings.TrimSpace(command), "")})
		} else {
			steps[len(steps)-1].shows += line
		}
	}
	if steps[0].shows == "" {
		return steps[1:]
	}
	return steps
}

// usage returns the steps in the first comment of a program, which are its code.
func usage(source string) []step {
	comment, _, _ := strings.Cut(source, "\npackage ")
	var steps []step
	for line := range strings.Lines(comment) {
		if command, ok := strings.CutPrefix(line, "//\t"); ok {
			steps = append(steps, step{line: strings.TrimSpace(command)})
		}
	}
	return steps
}

var changing = regexp.MustCompile(`(?m)^Date: .*$|\b\d{10}\b|\r`)

// same tells whether the output is the one that is shown, but for what is never the same
// twice: dates and Unix times.
func same(output, shown string) bool {
	plain := func(text string) string {
		return strings.TrimSpace(changing.ReplaceAllString(text, ""))
	}
	return plain(output) == plain(shown)
}
