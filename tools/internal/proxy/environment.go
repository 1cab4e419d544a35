package proxy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

// Environment returns what makes the go command take modules from where it has them
// already, or else from where it usually gets them. What it unpacks goes below temp.
//
// The cache is a new one: in the usual one, an unpublished version would be taken for
// the published one ever after.
func Environment(ctx context.Context, temp string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}
	usual := strings.Split(strings.TrimSpace(string(out)), "\n")
	downloads := filepath.Join(usual[0], "cache", "download")
	return append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw -trimpath", // writable can be removed, trimmed can be cached
		"GOMODCACHE="+filepath.Join(temp, "cache"),
		"GOPROXY="+URL(downloads)+","+usual[1],
	), nil
}

// Prefer publishes the modules of the repository below temp, and returns the environment
// with them taken from there.
func Prefer(r *repo.Repo, temp string, env []string) ([]string, error) {
	folder := filepath.Join(temp, "proxy")
	for _, m := range r.Released() {
		if err := Publish(folder, m.Path(), r.Version, filepath.Join(r.Root, m.Dir)); err != nil {
			return nil, err
		}
	}
	for i, variable := range env {
		if others, ok := strings.CutPrefix(variable, "GOPROXY="); ok {
			env[i] = "GOPROXY=" + URL(folder) + "," + others
		}
	}
	return append(env,
		"GONOSUMDB="+repo.Prefix+"*",
		"GOPRIVATE=", "GONOPROXY=none", // or the proxy would be passed by
	), nil
}

// URL returns the folder as GOPROXY has it.
func URL(folder string) string {
	return "file://" + filepath.ToSlash(folder)
}
