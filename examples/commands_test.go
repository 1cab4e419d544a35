package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	consoles = regexp.MustCompile("(?s)```console\n(.*?)```")
	prompts  = regexp.MustCompile(`(?m)^\$ (.+?)(?:\s+#.*)?$`)
	inline   = regexp.MustCompile("`((?:make|go run|go get) [^`]+)`")
)

// commands says how to check those that begin with a word or two.
var commands = map[string]func(t *testing.T, arguments string) error{
	"make ":   makes,
	"go run ": runs,
	"go get ": gets,
	// What a shell, git and Go do by themselves.
	"git clone https://github.com/ratetier/ratetier": nothing,
	"mkdir ":                nothing,
	"go mod init ":          nothing,
	"curl ":                 nothing, // readme_test.go sends the same
	"for i in {1..11}; do ": nothing, // is what examples/start tests
}

// A command in the documentation names targets, programs and modules that there are.
func TestCommandsNameWhatExists(t *testing.T) {
	for page, text := range pages(t) {
		for _, command := range commandsOf(text) {
			checked := false
			for prefix, check := range commands {
				if arguments, ok := strings.CutPrefix(command+" ", prefix); ok {
					checked = true
					if err := check(t, arguments); err != nil {
						t.Errorf("%s: %s: %v", page, command, err)
					}
				}
			}
			if !checked {
				t.Errorf("%s: %s: nobody has said how to check this", page, command)
			}
		}
	}
}

func commandsOf(page string) (found []string) {
	for _, console := range consoles.FindAllStringSubmatch(page, -1) {
		for _, prompt := range prompts.FindAllStringSubmatch(console[1], -1) {
			found = append(found, prompt[1])
		}
	}
	for _, code := range inline.FindAllStringSubmatch(page, -1) {
		found = append(found, code[1])
	}
	return found
}

func nothing(*testing.T, string) error { return nil }

// makes has make say what it would do.
func makes(t *testing.T, arguments string) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"-n"}, strings.Fields(arguments)...)...)
	command.Dir = ".."
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// runs looks for the program, which is run from the root of the repository, or, as ".",
// from a folder of the reader's own.
func runs(_ *testing.T, arguments string) error {
	_, err := os.Stat(filepath.Join("..", strings.Fields(arguments)[0], "main.go"))
	if arguments == ". " {
		return nil
	}
	return err
}

// gets looks for the modules.
func gets(_ *testing.T, arguments string) error {
	for module := range strings.FieldsSeq(arguments) {
		dir := strings.TrimPrefix(module, "github.com/ratetier/ratetier/")
		mod, err := os.ReadFile(filepath.Join("..", dir, "go.mod"))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(mod), "module "+module+"\n") {
			return fmt.Errorf("%s is another module", dir)
		}
	}
	return nil
}
