// Command reader does what the documentation has its readers do. It runs the commands of
// each page as they are printed, in the order of the page, and compares what they print
// with what the page shows. Modules are got as published. It is run from the root of the
// repository:
//
//	go run ./tools/reader
//
// The services of the pages listen where the pages say, so nobody else may listen there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ratetier/ratetier/tools/internal/proxy"
	"github.com/ratetier/ratetier/tools/internal/repo"
)

// address is where the services of the documentation listen.
const address = "127.0.0.1:3000"

func main() {
	if err := run(context.Background(), ".", address, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run reads every page of the repository at root, and returns everything that is wrong
// with any of them.
func run(ctx context.Context, root, address string, out io.Writer) (err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	r, err := repo.Open(root)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "reader")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	env, err := proxy.Environment(ctx, temp)
	if err != nil {
		return err
	}
	if env, err = proxy.Prefer(r, temp, env); err != nil {
		return err
	}
	env = append(env, "GOFLAGS=-modcacherw") // what a page has not got is missing
	pages, err := pagesOf(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, page := range pages {
		reader := &reader{root: root, address: address, temp: temp, env: env, page: page}
		ran, err := reader.read(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("reader: %s: %w", page, err))
			continue
		}
		fmt.Fprintf(out, "ok\t%s: %d commands\n", page, ran)
	}
	return errors.Join(errs...)
}
