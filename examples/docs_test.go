package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// sourced is a snippet that names the file it was copied from.
	sourced = regexp.MustCompile("(?s)<!-- (\\S+) -->\n```(?:go|yaml)\n(.*?)```")
	snippet = regexp.MustCompile("(?m)^```(?:go|yaml)$")
)

// A snippet in the documentation stands, but for its indentation, in the file of code that the comment above it names. One without such a comment is not allowed.
func TestSnippetsAreCopiedFromCompiledFiles(t *testing.T) {
	for page, text := range pages(t) {
		snippets := sourced.FindAllStringSubmatch(text, -1)
		if all := len(snippet.FindAllString(text, -1)); all != len(snippets) {
			t.Errorf("%s: %d snippets, of which %d name the file they are from", page, all, len(snippets))
		}
		for _, copied := range snippets {
			if file, code := copied[1], copied[2]; !strings.Contains(unindented(read(t, filepath.Join("..", file))), unindented(code)) {
				t.Errorf("%s: this snippet is not in %s:\n%s", page, file, code)
			}
		}
	}
}

// link is a relative one.
var link = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestLinksLeadToFiles(t *testing.T) {
	for page, text := range pages(t) {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, found[1])
			}
		}
	}
}

// pages returns the texts of all documentation by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../adapters/*/*.md", "../metrics/*/*.md", "../stores/*/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no page matches %s: %v", pattern, err)
		}
		for _, path := range paths {
			texts[path] = read(t, path)
		}
	}
	return texts
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
