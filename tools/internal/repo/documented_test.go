package repo_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

func TestEveryExportedNameOfAReleasedPackageIsDocumented(t *testing.T) {
	for dir, pkg := range released(t) {
		if pkg.Doc == "" {
			t.Errorf("%s: the package is not documented", dir)
		}
		for _, name := range undocumented(pkg) {
			t.Errorf("%s: %s is not documented", dir, name)
		}
	}
}

func TestEveryReleasedPackageHasARunnableExample(t *testing.T) {
	for dir, pkg := range released(t) {
		examples, funcs := slices.Clone(pkg.Examples), slices.Clone(pkg.Funcs)
		for _, typ := range pkg.Types {
			examples = append(examples, typ.Examples...)
			funcs = append(funcs, typ.Funcs...)
			for _, method := range typ.Methods {
				examples = append(examples, method.Examples...)
			}
		}
		for _, f := range funcs {
			examples = append(examples, f.Examples...)
		}
		if !slices.ContainsFunc(funcs, isForExamples) {
			continue
		}
		if !slices.ContainsFunc(examples, func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }) {
			t.Errorf("%s: no Example function with // Output:", dir)
		}
	}
}

// isForExamples tells whether an Example can call the function: it has no testing.TB to
// hand on.
func isForExamples(f *doc.Func) bool {
	for _, param := range f.Decl.Type.Params.List {
		if named, ok := param.Type.(*ast.SelectorExpr); ok && named.Sel.Name == "TB" {
			return false
		}
	}
	return true
}

func TestWhatIsNotDocumentedIsFound(t *testing.T) {
	const source = `package p
func F() {}
// G is.
func G() {}
const C = 1
// T is.
type T struct {
	A int
	B int // is
	c int
}
func (T) M() {}
// I is.
type I interface { N() }
type hidden struct { D int }
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := doc.NewFromFiles(files, []*ast.File{file}, "p")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := undocumented(pkg), []string{"C", "F", "I.N", "T.M", "T.A"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// released returns the documentation of all packages that users can import, by folder.
func released(t *testing.T) map[string]*doc.Package {
	t.Helper()
	r, err := repo.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	pkgs := map[string]*doc.Package{}
	for _, m := range r.Released() {
		top := filepath.Join(root, m.Dir)
		err := filepath.WalkDir(top, func(dir string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if name := entry.Name(); name == "internal" || name == "testdata" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != top {
				return fs.SkipDir
			}
			if pkg := read(t, dir); pkg != nil {
				pkgs[pkg.ImportPath] = pkg
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pkgs
}

// read returns the documentation of the package in the folder, nil if there is none.
func read(t *testing.T, dir string) *doc.Package {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files, parsed := token.NewFileSet(), []*ast.File{}
	for _, path := range paths {
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	if len(parsed) == 0 {
		return nil
	}
	name, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := doc.NewFromFiles(files, parsed, filepath.ToSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

// undocumented returns the exported names without a comment: of functions, methods,
// types, fields, methods of interfaces, constants and variables.
func undocumented(pkg *doc.Package) (names []string) {
	add := func(name, text string) {
		if text == "" {
			names = append(names, name)
		}
	}
	values := func(values []*doc.Value) {
		for _, value := range values {
			for _, spec := range value.Decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok && ast.IsExported(spec.Names[0].Name) {
					add(spec.Names[0].Name, value.Doc+spec.Doc.Text()+spec.Comment.Text())
				}
			}
		}
	}
	funcs := func(prefix string, funcs []*doc.Func) {
		for _, f := range funcs {
			add(prefix+f.Name, f.Doc)
		}
	}
	values(slices.Concat(pkg.Consts, pkg.Vars))
	funcs("", pkg.Funcs)
	for _, typ := range pkg.Types {
		add(typ.Name, typ.Doc)
		values(slices.Concat(typ.Consts, typ.Vars))
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		for _, field := range members(typ.Decl) {
			for _, name := range field.Names {
				if ast.IsExported(name.Name) {
					add(typ.Name+"."+name.Name, field.Doc.Text()+field.Comment.Text())
				}
			}
		}
	}
	return names
}

// members returns the fields of a struct or the methods of an interface.
func members(decl *ast.GenDecl) []*ast.Field {
	for _, spec := range decl.Specs {
		if spec, ok := spec.(*ast.TypeSpec); ok {
			switch typ := spec.Type.(type) {
			case *ast.StructType:
				return typ.Fields.List
			case *ast.InterfaceType:
				return typ.Methods.List
			}
		}
	}
	return nil
}
