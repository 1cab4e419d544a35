// Package proxy has the go command take the modules of this repository as if they were
// published.
package proxy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// Publish adds the module in dir to a module proxy that is a folder, laid out as the
// go command asks for it.
func Publish(folder, path, version, dir string) error {
	escaped, err := module.EscapePath(path)
	if err != nil {
		return err
	}
	base := filepath.Join(folder, escaped, "@v")
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
