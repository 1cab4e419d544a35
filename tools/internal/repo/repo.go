// Package repo knows the modules of this repository and the version they are released
// as.
package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// Prefix begins the path of every module here. The folder of the module follows.
const Prefix = "github.com/ratetier/ratetier/"

// internal names the folders whose modules are never released.
var internal = []string{"bench", "examples", "tools"}

// Repo is the repository as it lies on disk.
type Repo struct {
	Root    string
	Version string   // of the next release, for all modules: "v0.1.0"
	Modules []Module // by folder
}

// Module is one module of the repository.
type Module struct {
	Dir  string // below the root, with slashes: "adapters/gin"
	File *modfile.File
}

// Open reads the version and every go.mod below root.
func Open(root string) (*Repo, error) {
	version, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return nil, err
	}
	r := &Repo{Root: root, Version: strings.TrimSpace(string(version))}
	if err := checkVersion(r.Version); err != nil {
		return nil, err
	}
	err = fs.WalkDir(os.DirFS(root), ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Name() != "go.mod":
			return nil
		}
		m, err := read(root, file)
		if err == nil {
			r.Modules = append(r.Modules, m)
		}
		return err
	})
	return r, err
}

func read(root, file string) (Module, error) {
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return Module{}, err
	}
	parsed, err := modfile.Parse(file, data, nil)
	if err != nil {
		return Module{}, err
	}
	m := Module{Dir: path.Dir(file), File: parsed}
	if parsed.Module == nil || parsed.Module.Mod.Path != m.Path() {
		return Module{}, fmt.Errorf("repo: %s: the module must be called %s, after its folder", file, m.Path())
	}
	return m, nil
}

func checkVersion(version string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("repo: version %q: must look like v1.2.3", version)
	}
	return nil
}

// Released returns the modules that users can require.
func (r *Repo) Released() []Module {
	return slices.DeleteFunc(slices.Clone(r.Modules), func(m Module) bool {
		top, _, _ := strings.Cut(m.Dir, "/")
		return slices.Contains(internal, top)
	})
}

// CheckSiblings returns an error that names each module which requires another one
// here at a version that is not the next release.
func (r *Repo) CheckSiblings() error {
	var errs []error
	for _, m := range r.Modules {
		for _, require := range m.siblings() {
			if require.Mod.Version != r.Version {
				errs = append(errs, fmt.Errorf("repo: %s/go.mod requires %s %s: must be %s, as VERSION says",
					m.Dir, require.Mod.Path, require.Mod.Version, r.Version))
			}
		}
	}
	return errors.Join(errs...)
}

// SetVersion writes the version of the next release to VERSION and to what the
// modules require of each other.
func (r *Repo) SetVersion(version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	for _, m := range r.Modules {
		for _, require := range m.siblings() {
			if err := m.File.AddRequire(require.Mod.Path, version); err != nil {
				return err
			}
		}
		data, err := m.File.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.Root, m.Dir, "go.mod"), data, 0o644); err != nil {
			return err
		}
	}
	r.Version = version
	return os.WriteFile(filepath.Join(r.Root, "VERSION"), []byte(version+"\n"), 0o644)
}

// Path returns the path by which the module is required.
func (m Module) Path() string { return Prefix + m.Dir }

// siblings returns what the module requires of this repository.
func (m Module) siblings() []*modfile.Require {
	return slices.DeleteFunc(slices.Clone(m.File.Require), func(require *modfile.Require) bool {
		return !strings.HasPrefix(require.Mod.Path, Prefix)
	})
}
