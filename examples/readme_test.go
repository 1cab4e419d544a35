package examples_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var consoles = regexp.MustCompile("(?s)```console\n(.*?)```")

// The first and the eleventh answer are what the README shows, but for the time.
func TestTheServiceAnswersAsTheREADMEShows(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./nethttp")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	service := start(t, filepath.Join(dir, "nethttp"))
	defer service.stop(t)

	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, console := range consoles.FindAllStringSubmatch(string(readme), -1) {
		if _, answer, ok := strings.Cut(console[1], "HTTP/1.1 "); ok {
			shown = append(shown, "HTTP/1.1 "+answer)
		}
	}
	if len(shown) != 2 {
		t.Fatalf("the README shows %d answers, want 2", len(shown))
	}
	for i := range 11 {
		answer := service.curl(t, "key_ana", "/data")
		for line := range strings.Lines(shown[i/10]) {
			line = strings.TrimSpace(line)
			name, _, _ := strings.Cut(line, " ")
			if name == "X-Ratelimit-Reset:" || name == "Date:" {
				line = "\n" + name
			}
			if (i == 0 || i == 10) && !strings.Contains(answer, line) {
				t.Errorf("answer %d has no %q:\n%s", i+1, line, answer)
			}
		}
	}
}

// curl returns what curl -i prints.
func (s *running) curl(t *testing.T, key, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var printed strings.Builder
	fmt.Fprintf(&printed, "%s %s\n", response.Proto, response.Status)
	if err := response.Header.Write(&printed); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&printed, response.Body); err != nil {
		t.Fatal(err)
	}
	return printed.String()
}
