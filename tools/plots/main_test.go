package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheCommittedPlotsAreThoseThatTheProgramDraws(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "plots")
	for name, draw := range plots {
		committed, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(committed, draw()) {
			t.Errorf("docs/plots/%s is not what the program draws: run go run ./tools/plots", name)
		}
	}
}
