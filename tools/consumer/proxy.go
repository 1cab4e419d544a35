package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/repo"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// publish adds the module in dir to a module proxy that is a folder, laid out as the
// go command asks for it.
func publish(proxy, path, version, dir string) error {
	escaped, err := module.EscapePath(path)
	if err != nil {
		return err
	}
	base := filepath.Join(proxy, escaped, "@v")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q}`, version),
		version + ".mod":  string(mod),
	} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(base, version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(
		zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, dir),
		archive.Close(),
	)
}

// environment returns what makes the go command take our modules from the proxy and
// all others from where it has them already, or else from where it usually gets them.
//
// The cache is a new one: in the usual one, an unpublished version would be taken for
// the published one ever after.
func environment(ctx context.Context, proxy, cache string) ([]string, error) {
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
		"GOPROXY="+fileURL(proxy)+","+fileURL(downloads)+","+usual[1],
		"GONOSUMDB="+repo.Prefix+"*",
		"GOPRIVATE=", "GONOPROXY=none", // or the proxy would be passed by
	), nil
}

func fileURL(dir string) string {
	return "file://" + filepath.ToSlash(dir)
}
