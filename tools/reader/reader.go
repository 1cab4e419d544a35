package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// patience is how long a command may take.
const patience = 3 * time.Minute

// A reader does what one page says.
type reader struct {
	root    string   // of the repository
	address string   // where the services listen
	temp    string   // for folders of the reader's own
	env     []string // outside the repository
	page    string
	text    string

	dir     string   // where the reader is
	service *service // what the reader has started, nil if nothing runs
}

// read does all steps of the page and returns how many commands there were.
func (r *reader) read(ctx context.Context) (ran int, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, r.page))
	if err != nil {
		return 0, err
	}
	r.text, r.dir = string(text), r.root
	var todo []step
	if path.Ext(r.page) == ".go" {
		todo = usage(r.text)
	} else if todo, err = steps(r.text); err != nil {
		return 0, err
	}
	if slices.ContainsFunc(todo, func(s step) bool { return strings.HasPrefix(s.line, "mkdir ") }) {
		if r.dir, err = os.MkdirTemp(r.temp, "empty"); err != nil {
			return 0, err
		}
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	for i, s := range todo {
		switch {
		case s.line != "":
			ran++
			err = r.do(ctx, s)
		case i > 0:
			err = r.repeat(ctx, todo[i-1].line, s.shows)
		default:
			err = fmt.Errorf("no command prints what is shown:\n%s", s.shows)
		}
		if err != nil {
			return ran, err
		}
	}
	return ran, nil
}

// do runs the command, and compares what it prints with what the page shows of it.
func (r *reader) do(ctx context.Context, s step) error {
	if checked, err := checkElsewhere(ctx, r.root, s.line); checked {
		return err
	}
	output, err := r.command(ctx, s.line)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", s.line, err, output)
	}
	if s.shows != "" && !same(output, s.shows) {
		return fmt.Errorf("%s: prints\n%s\nwhere the page shows\n%s", s.line, output, s.shows)
	}
	return nil
}

// repeat runs the command until it prints what is shown.
func (r *reader) repeat(ctx context.Context, line, shown string) error {
	for range 20 {
		output, err := r.command(ctx, line)
		if err != nil || same(output, shown) {
			return err
		}
	}
	return fmt.Errorf("%s: repeated, never prints\n%s", line, shown)
}

var (
	got     = regexp.MustCompile(`^go get `)
	example = regexp.MustCompile(`\]\(\.\./(examples/\w+/main\.go)\)`)
)

// command runs the line where the reader is.
func (r *reader) command(ctx context.Context, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case got.MatchString(line) && r.dir == r.root:
		return r.inModule(ctx, line)
	case line == "go run .":
		if err := r.copyProgram(); err != nil {
			return "", err
		}
	}
	if program := programOf(line); program != "" {
		return r.program(ctx, program, line)
	}
	return r.shell(ctx, line)
}

// inModule runs the line in a module of the reader's, as everybody who gets one has.
func (r *reader) inModule(ctx context.Context, line string) (string, error) {
	module, err := os.MkdirTemp(r.temp, "module")
	if err != nil {
		return "", err
	}
	defer func() { r.dir = r.root }()
	r.dir = module
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module reader\n"), 0o644); err != nil {
		return "", err
	}
	return r.shell(ctx, line)
}

// copyProgram does what a person does where a page says so: it copies the first program
// that the page links to.
func (r *reader) copyProgram() error {
	link := example.FindStringSubmatch(r.text)
	if link == nil {
		return errors.New("the page links to no program to copy")
	}
	source, err := os.ReadFile(filepath.Join(r.root, link[1]))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir, "main.go"), source, 0o644)
}
