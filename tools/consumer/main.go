// Command consumer sees the modules of this repository as their users will: it
// publishes them to a module proxy in a temporary folder, and has an outsider without
// workspace or replacements build, vet and run each of them, together with its
// examples. Nobody may get the framework or database of somebody else. It is run from
// the root of the repository:
//
//	go run ./tools/consumer              # the modules as they are here
//	go run ./tools/consumer -published   # those of the same version that the world gets
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/ratetier/ratetier/tools/internal/proxy"
	"github.com/ratetier/ratetier/tools/internal/repo"
)

func main() {
	published := flag.Bool("published", false, "use the modules that are published already")
	flag.Parse()
	if err := run(context.Background(), ".", *published, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run checks every released module of the repository at root, and returns everything
// that is wrong with any of them.
func run(ctx context.Context, root string, published bool, out io.Writer) (err error) {
	r, err := repo.Open(root)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "consumer")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	env, err := proxy.Environment(ctx, temp)
	if err != nil {
		return err
	}
	if !published {
		if env, err = proxy.Prefer(r, temp, env); err != nil {
			return err
		}
	}
	var errs []error
	for _, m := range r.Released() {
		o := outsider{dir: filepath.Join(temp, "outsiders", m.Dir), env: env}
		pulled, err := o.try(ctx, r, m)
		if err == nil {
			err = checkPulled(m.Dir, pulled)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("consumer: %s: %w", m.Dir, err))
			continue
		}
		fmt.Fprintf(out, "ok\t%s links %d other modules, out of %d it knows of\n", m.Dir, len(pulled.linked), len(pulled.known))
	}
	return errors.Join(errs...)
}
