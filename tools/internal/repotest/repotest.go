// Package repotest makes small repositories for tests.
package repotest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

// Write writes the files, given by their path below root, into their folders.
func Write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Commit lays the files out as a git repository of one commit.
func Commit(t *testing.T, files map[string]string) *repo.Repo {
	t.Helper()
	root := t.TempDir()
	Write(t, root, files)
	r, err := repo.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"config", "user.name", "tester"},
		{"config", "user.email", "tester@example.com"},
		{"config", "commit.gpgSign", "false"},
		{"config", "tag.gpgSign", "false"},
		{"add", "."},
		{"commit", "--quiet", "--message", "first"},
	} {
		Git(t, r, args...)
	}
	return r
}

// Git runs git in the repository, and returns what it prints.
func Git(t *testing.T, r *repo.Repo, args ...string) string {
	t.Helper()
	out, err := r.Git(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
