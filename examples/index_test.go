package examples

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheIndexListsEveryPage(t *testing.T) {
	index := read(t, "../docs/README.md")
	for page := range pages(t) {
		dir, name := filepath.Split(page)
		if dir == "../docs/" && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}
