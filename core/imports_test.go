package ratetier_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A queue worker carries no HTTP server with it, and no user a dependency.
func TestThePackageLinksNoHTTPAndTheModuleRequiresNothing(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range strings.Lines(string(out)) {
		pkg = strings.TrimSpace(pkg)
		if pkg == "net/http" || pkg == "testing" {
			t.Errorf("the package links %s", pkg)
		}
		if first, _, _ := strings.Cut(pkg, "/"); strings.Contains(first, ".") && !strings.HasPrefix(pkg, "github.com/ratetier/ratetier/core") {
			t.Errorf("the package links %s, which is not of the standard library", pkg)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mod), "require") {
		t.Errorf("go.mod requires something:\n%s", mod)
	}
}
