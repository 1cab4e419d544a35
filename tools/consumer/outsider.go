package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

// pulled is what an outsider gets with a module, by module path.
type pulled struct {
	linked []string // into its program
	known  []string // to its go.mod, directly or through others
}

// program imports every package of a module and prints the modules it is made of.
var program = template.Must(template.New("main.go").Parse(`package main

import (
	"fmt"
	"runtime/debug"

{{range .}}	_ "{{.}}"
{{end}})

func main() {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		fmt.Println(module.Path)
	}
}
`))

// outsider is a module in a folder of its own, which uses one of ours.
type outsider struct {
	dir string
	env []string
}

// try writes the outsider, and builds, vets and runs it.
func (o outsider) try(ctx context.Context, r *repo.Repo, m repo.Module) (pulled, error) {
	if err := o.write(r, m); err != nil {
		return pulled{}, err
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"vet", "./..."}, {"test", "./..."}} {
		if _, err := o.command(ctx, args...); err != nil {
			return pulled{}, err
		}
	}
	linked, err := o.command(ctx, "run", ".")
	if err != nil {
		return pulled{}, err
	}
	known, err := o.command(ctx, "list", "-m", "-f", "{{if not .Main}}{{.Path}}{{end}}", "all")
	if err != nil {
		return pulled{}, err
	}
	return pulled{linked: others(linked, m), known: others(known, m)}, nil
}

// others returns the module paths that are listed, but for the module's own.
func others(list string, m repo.Module) []string {
	return slices.DeleteFunc(strings.Fields(list), func(path string) bool { return path == m.Path() })
}

// write lays out go.mod, the program, and the module's examples, which see no more of
// the module than a user does.
func (o outsider) write(r *repo.Repo, m repo.Module) error {
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	source := filepath.Join(r.Root, m.Dir)
	packages, err := packagesOf(source, m.Path())
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("there is no package to import")
	}
	var main bytes.Buffer
	if err := program.Execute(&main, packages); err != nil {
		return err
	}
	files := map[string][]byte{
		"go.mod":  fmt.Appendf(nil, "module example.com/outsider\n\ngo %s\n\nrequire %s %s\n", m.File.Go.Version, m.Path(), r.Version),
		"main.go": main.Bytes(),
	}
	// The sums of what others have published are those that we have been tested with.
	if sum, err := os.ReadFile(filepath.Join(source, "go.sum")); err == nil {
		files["go.sum"] = sum
	}
	examples, err := filepath.Glob(filepath.Join(source, "example*_test.go"))
	if err != nil {
		return err
	}
	for _, example := range examples {
		content, err := os.ReadFile(example)
		if err != nil {
			return err
		}
		files[filepath.Join("examples", filepath.Base(example))] = content
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(o.dir, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packagesOf returns the import paths of the packages of a module that a user can
// import.
func packagesOf(source, modulePath string) ([]string, error) {
	var packages []string
	err := fs.WalkDir(os.DirFS(source), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(source, file, "go.mod"))
			if file != "." && (nested == nil || slices.Contains([]string{"internal", "testdata"}, entry.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if pkg := path.Join(modulePath, path.Dir(file)); strings.HasSuffix(file, ".go") &&
			!strings.HasSuffix(file, "_test.go") && !slices.Contains(packages, pkg) {
			packages = append(packages, pkg)
		}
		return nil
	})
	return packages, err
}

// command runs the go command in the outsider's folder.
func (o outsider) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = o.dir, o.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), nil
}
