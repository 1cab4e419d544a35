package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

// environment returns what makes the go command take modules from where it has them
// already, or else from where it usually gets them.
//
// The cache is a new one: in the usual one, an unpublished version would be taken for
// the published one ever after.
func environment(ctx context.Context, cache string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return nil, err
	}
	usual := strings.Split(strings.TrimSpace(string(out)), "\n")
	downloads := filepath.Join(usual[0], "cache", "download")
	return append(os.Environ(),
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw -trimpath", // writable can be removed, trimmed can be cached
		"GOMODCACHE="+cache,
		"GOPROXY="+fileURL(downloads)+","+usual[1],
	), nil
}

// preferring returns the environment with our modules taken from that proxy.
func preferring(proxy string, env []string) []string {
	for i, variable := range env {
		if others, ok := strings.CutPrefix(variable, "GOPROXY="); ok {
			env[i] = "GOPROXY=" + fileURL(proxy) + "," + others
		}
	}
	return append(env,
		"GONOSUMDB="+repo.Prefix+"*",
		"GOPRIVATE=", "GONOPROXY=none", // or the proxy would be passed by
	)
}

func fileURL(dir string) string {
	return "file://" + filepath.ToSlash(dir)
}
