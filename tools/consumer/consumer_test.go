package main

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/proxy"
	"github.com/ratetier/ratetier/tools/internal/repotest"
)

// files is a small repository in which nobody brings what is not theirs.
var files = map[string]string{
	"VERSION":             "v0.2.0\n",
	"core/go.mod":         "module github.com/ratetier/ratetier/core\n\ngo 1.25.0\n",
	"core/core.go":        "package ratetier\n\nfunc Limit() int { return 10 }\n",
	"adapters/gin/go.mod": "module github.com/ratetier/ratetier/adapters/gin\n\ngo 1.25.0\n\nrequire github.com/ratetier/ratetier/core v0.2.0\n\nreplace github.com/ratetier/ratetier/core => ../../core\n",
	"adapters/gin/gin.go": "package ratetiergin\n\nimport ratetier \"github.com/ratetier/ratetier/core\"\n\nvar Limit = ratetier.Limit()\n",
	"adapters/gin/example_test.go": `package ratetiergin_test

import (
	"fmt"

	ratetiergin "github.com/ratetier/ratetier/adapters/gin"
)

func Example() {
	fmt.Println(ratetiergin.Limit)
	// Output: 10
}
`,
}

// outside is where go finds the one module that is not from the repository.
func outside(t *testing.T) {
	t.Helper()
	dir, folder := t.TempDir(), t.TempDir()
	repotest.Write(t, dir, map[string]string{
		"go.mod":  "module github.com/labstack/echo/v4\n\ngo 1.25.0\n",
		"echo.go": "package echo\n",
	})
	if err := proxy.Publish(folder, "github.com/labstack/echo/v4", "v4.0.0", dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOPROXY", proxy.URL(folder))
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOSUMDB", "off")
}

func TestCleanModulesPass(t *testing.T) {
	outside(t)
	root := t.TempDir()
	repotest.Write(t, root, files)
	var out strings.Builder
	if err := run(t.Context(), root, false, &out); err != nil {
		t.Fatal(err)
	}
	want := "ok\tadapters/gin links 1 other modules, out of 1 it knows of\n" +
		"ok\tcore links 0 other modules, out of 0 it knows of\n"
	if out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestOutsidersCatch(t *testing.T) {
	const requireEcho = "\nrequire github.com/labstack/echo/v4 v4.0.0\n"
	const importEcho = "\nimport _ \"github.com/labstack/echo/v4\"\n"
	for name, test := range map[string]struct {
		file string
		edit func(string) string
		want string
	}{
		"a foreign framework in an adapter": {
			"adapters/gin/echo.go",
			func(string) string { return "package ratetiergin\n" + importEcho },
			"adapters/gin: links github.com/labstack/echo/v4",
		},
		"a foreign framework that only the tests of an adapter use": {
			"adapters/gin/gin_test.go",
			func(string) string { return "package ratetiergin\n" + importEcho },
			"adapters/gin: requires github.com/labstack/echo/v4",
		},
		"any dependency in core": {
			"core/echo.go",
			func(string) string { return "package ratetier\n" + importEcho },
			"core: links github.com/labstack/echo/v4",
		},
		"a sibling required at a version that is not released": {
			"adapters/gin/go.mod",
			func(s string) string { return strings.Replace(s, "v0.2.0", "v0.1.0", 1) },
			"core@v0.1.0",
		},
		"an example that is wrong": {
			"adapters/gin/example_test.go",
			func(s string) string { return strings.Replace(s, "Output: 10", "Output: 11", 1) },
			"got:\n10\nwant:\n11",
		},
		"a package that reaches into another module": {
			"core/core.go",
			func(s string) string { return strings.Replace(s, "Limit", "Unlimited", 1) },
			"undefined: ratetier.Limit",
		},
		"a module without a package": {
			"stores/empty/go.mod",
			func(string) string { return "module github.com/ratetier/ratetier/stores/empty\n\ngo 1.25.0\n" },
			"stores/empty: there is no package to import",
		},
	} {
		t.Run(name, func(t *testing.T) {
			outside(t)
			files := maps.Clone(files)
			files[test.file] = test.edit(files[test.file])
			if strings.Contains(files[test.file], "echo/v4") {
				mod := filepath.Dir(test.file) + "/go.mod"
				files[mod] += requireEcho
			}
			root := t.TempDir()
			repotest.Write(t, root, files)
			err := run(t.Context(), root, false, &strings.Builder{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestPublishedModulesAreNotThoseOfTheRepository(t *testing.T) {
	outside(t)
	root := t.TempDir()
	repotest.Write(t, root, files)
	err := run(t.Context(), root, true, &strings.Builder{})
	if want := "core@v0.2.0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q, which is not published", err, want)
	}
}
