// Command plots draws how limits behave, for docs/gcra.md. What it draws are the
// decisions of a limiter on a clock that moves when told, so that every run draws the
// same. It is run from the root of the repository:
//
//	go run ./tools/plots
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// plots are the files and what is in them.
var plots = map[string]func() []byte{
	"window.svg": window,
	"burst.svg":  burst,
	"rates.svg":  rates,
}

func main() {
	dir := flag.String("dir", "docs/plots", "the folder to write to")
	flag.Parse()
	for name, draw := range plots {
		if err := os.WriteFile(filepath.Join(*dir, name), draw(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
