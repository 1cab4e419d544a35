package repo_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratetier/ratetier/tools/internal/repo"
	"github.com/ratetier/ratetier/tools/internal/repotest"
)

// root is this repository.
const root = "../../.."

func TestSiblingsAreRequiredAtTheVersionOfTheNextRelease(t *testing.T) {
	r, err := repo.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CheckSiblings(); err != nil {
		t.Error(err)
	}
}

func TestDependabotWatchesEveryModule(t *testing.T) {
	r, err := repo.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	watched := regexp.MustCompile(`(?m)^ +- /(\S+)$`).FindAllStringSubmatch(string(config), -1)
	for _, m := range r.Modules {
		found := false
		for _, line := range watched {
			match, err := path.Match(line[1], m.Dir)
			if err != nil {
				t.Fatal(err)
			}
			found = found || match
		}
		if !found {
			t.Errorf("%s: no line of .github/dependabot.yml matches", m.Dir)
		}
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	const mod = "module github.com/ratetier/ratetier/core\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no version":           {map[string]string{"core/go.mod": mod}, "VERSION"},
		"an odd version":       {map[string]string{"VERSION": "0.1\n"}, `"0.1": must look like v1.2.3`},
		"a go.mod that lies":   {map[string]string{"VERSION": "v0.1.0", "stores/core/go.mod": mod}, "must be called github.com/ratetier/ratetier/stores/core"},
		"a go.mod of nonsense": {map[string]string{"VERSION": "v0.1.0", "core/go.mod": "modul x\n"}, "unknown directive: modul"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			repotest.Write(t, root, test.files)
			_, err := repo.Open(root)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestReleasedModulesAreThoseForUsers(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{"VERSION": "v0.1.0"}
	for _, dir := range []string{"core", "adapters/gin", "bench", "examples", "tools", "tools/golangci", ".cache/x"} {
		files[dir+"/go.mod"] = "module github.com/ratetier/ratetier/" + dir + "\n"
	}
	repotest.Write(t, root, files)
	r, err := repo.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	released := r.Released()
	if len(r.Modules) != 6 || len(released) != 2 || released[0].Dir != "adapters/gin" || released[1].Dir != "core" {
		t.Errorf("of %d modules, %v are released", len(r.Modules), released)
	}
}
