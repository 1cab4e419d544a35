package main

import (
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/repotest"
)

// files is a small repository whose pages do what they say. ADDRESS is where its service
// listens, FENCE is three of what a raw string cannot have.
var files = map[string]string{
	"VERSION":      "v0.2.0\n",
	"go.work":      "go 1.25.0\n\nuse (\n\t./core\n\t./examples\n)\n",
	"Makefile":     "ci: test\ntest:\n\techo tested\nslow:\n\techo slow\n",
	"core/go.mod":  "module github.com/ratetier/ratetier/core\n\ngo 1.25.0\n",
	"core/core.go": "package ratetier\n\nconst Limit = 10\n",

	"examples/go.mod": "module github.com/ratetier/ratetier/examples\n\ngo 1.25.0\n\nrequire github.com/ratetier/ratetier/core v0.2.0\n\nreplace github.com/ratetier/ratetier/core => ../core\n",
	"examples/limit/main.go": `// It prints the limit.
//
//	go run ./examples/limit
package main

import (
	"fmt"

	ratetier "github.com/ratetier/ratetier/core"
)

func main() {
	fmt.Println("the limit is", ratetier.Limit)
}
`,
	"examples/count/main.go": `package main

import (
	"fmt"
	"net/http"
)

func main() {
	n := 0
	_ = http.ListenAndServe("ADDRESS", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		fmt.Fprintln(w, "answer", n)
	}))
}
`,

	"README.md": `
Run ‘make test‘, or

FENCEconsole
$ go run ./examples/limit   # as a remark says
the limit is 10
$ go run ./examples/count
$ curl -s ADDRESS
answer 1
FENCE

and the fourth time

FENCEconsole
answer 4
FENCE
`,
	"docs/start.md": `
FENCEconsole
$ mkdir new && cd new
$ go mod init new
$ go get github.com/ratetier/ratetier/core
FENCE

Copy [this](../examples/limit/main.go) and ‘go run .‘:

FENCEtext
nobody has to read this
FENCE
`,
	"stores/memory/README.md": `
FENCEconsole
$ go get github.com/ratetier/ratetier/core
FENCE
`,
}

// read has the repository read, with services on a port that is free.
func read(t *testing.T, files map[string]string) (string, error) {
	t.Helper()
	t.Setenv("GOWORK", "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	written, printed := map[string]string{}, strings.NewReplacer("ADDRESS", address, "FENCE", "```", "‘", "`")
	for name, text := range files {
		written[name] = printed.Replace(text)
	}
	root := t.TempDir()
	repotest.Write(t, root, written)
	var out strings.Builder
	err = run(t.Context(), root, address, &out)
	return out.String(), err
}

func TestPagesThatAreTruePass(t *testing.T) {
	printed, err := read(t, files)
	if err != nil {
		t.Fatal(err)
	}
	const want = `ok	README.md: 4 commands
ok	docs/start.md: 4 commands
ok	stores/memory/README.md: 1 commands
ok	examples/count/main.go: 0 commands
ok	examples/limit/main.go: 1 commands
`
	if printed != want {
		t.Errorf("printed\n%s\nwant\n%s", printed, want)
	}
}

func TestReadersStumbleOver(t *testing.T) {
	for name, test := range map[string]struct {
		file, old, new string
		want           string
	}{
		"a command that fails":                {"README.md", "$ curl -s", "$ false; curl -s", "README.md: false; curl -s"},
		"a part of a pipe that fails":         {"README.md", "$ curl -s ADDRESS", "$ false | curl -s ADDRESS", "exit status 1"},
		"an output that is another":           {"README.md", "the limit is 10", "the limit is 11", "prints\nthe limit is 10\n\nwhere the page shows\nthe limit is 11"},
		"an output that never comes":          {"README.md", "answer 4", "answer 3.5", "repeated, never prints\nanswer 3.5"},
		"an output of nothing":                {"stores/memory/README.md", "$ go get github.com/ratetier/ratetier/core", "downloading", "no command prints"},
		"a program that is not there":         {"README.md", "./examples/limit ", "./examples/limits ", "examples/limits"},
		"a program that says another":         {"examples/limit/main.go", "go run ./examples/limit", "go run ./examples/limits", "examples/limit/main.go: go run ./examples/limits"},
		"a module that is not there":          {"stores/memory/README.md", "ratetier/core", "ratetier/cores", "ratetier/cores"},
		"a module that the program needs":     {"docs/start.md", "$ go get github.com/ratetier/ratetier/core\n", "", "docs/start.md: go run ."},
		"a program to copy, but which":        {"docs/start.md", "../examples/limit/main.go", "../examples/limit", "no program to copy"},
		"code in a language nobody runs":      {"docs/start.md", "FENCEtext", "FENCEsh", `a block of "sh"`},
		"code in a language that is not told": {"docs/start.md", "FENCEtext", "FENCE", `a block of ""`},
		"a target that is not there":          {"Makefile", "test:\n", "tests:\n", "make test: exit status 2"},
		"a target that CI does not make":      {"README.md", "make test", "make slow", "make slow: CI does not run it"},
		"a place that is not there":           {"README.md", "make test", "make bench", "docs/benchmarks.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(files)
			if !strings.Contains(files[test.file], test.old) {
				t.Fatalf("%s has no %q", test.file, test.old)
			}
			files[test.file] = strings.Replace(files[test.file], test.old, test.new, 1)
			_, err := read(t, files)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	reader := &reader{root: t.TempDir(), address: listener.Addr().String(), temp: t.TempDir()}
	reader.dir = reader.root
	_, err = reader.command(t.Context(), "go run ./examples/count")
	if err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("got error %v", err)
	}
}
