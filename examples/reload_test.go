package examples_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The plans are changed in every way that editors and deployments change a file, while
// one process serves.
func TestPlansAreReloadedFromTheirFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tiers.yaml")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	put(path, "free: 10/min\n")
	s := startTelling(t, "./reload", "-tiers", path)
	if got := s.get(t, "key_ana", "/data"); !strings.HasPrefix(got, "key_ana /data 200 10 ") {
		t.Errorf("got %s", got)
	}

	put(path, "free: 20/min\n")
	s.waitFor(t, "now map[free:20/min]")
	if got := s.get(t, "key_ana", "/data"); !strings.HasPrefix(got, "key_ana /data 200 20 ") {
		t.Errorf("got %s", got)
	}

	put(filepath.Join(dir, "new"), "free: 30/min\n")
	must(os.Rename(filepath.Join(dir, "new"), path))
	s.waitFor(t, "now map[free:30/min]")

	// As Kubernetes mounts a ConfigMap: the file is a link through a directory that is
	// one itself, and is replaced.
	for _, version := range []string{"40", "50"} {
		must(os.Mkdir(filepath.Join(dir, ".."+version), 0o700))
		put(filepath.Join(dir, ".."+version, "tiers.yaml"), "free: "+version+"/min\n")
		must(os.Symlink(".."+version, filepath.Join(dir, "..data_tmp")))
		must(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		if version == "40" {
			must(os.Symlink(filepath.Join("..data", "tiers.yaml"), filepath.Join(dir, "link")))
			must(os.Rename(filepath.Join(dir, "link"), path))
		}
		s.waitFor(t, "now map[free:"+version+"/min]")
	}

	must(s.command.Process.Signal(syscall.SIGHUP))
	s.waitFor(t, "now map[free:50/min]") // read again, though it is the same

	put(filepath.Join(dir, "new"), "free: 60/fortnight\n")
	must(os.Rename(filepath.Join(dir, "new"), path))
	s.waitFor(t, `still on the old plans: ratetier: quota "60/fortnight": window "fortnight"`)
	must(s.command.Process.Signal(syscall.SIGHUP))
	s.waitFor(t, `still on the old plans: ratetier: quota "60/fortnight": window "fortnight"`)
	if got := s.get(t, "key_ana", "/data"); !strings.HasPrefix(got, "key_ana /data 200 50 ") {
		t.Errorf("got %s", got)
	}
	s.stop(t)
}

// telling is a service that runs, and what it says on standard output.
type telling struct {
	running
	lines chan string
}

// startTelling builds the example and starts it.
func startTelling(t *testing.T, example string, flags ...string) *telling {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, example)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	out, in := io.Pipe()
	s := &telling{lines: make(chan string, 100)}
	s.command = exec.CommandContext(t.Context(), program, append([]string{"-addr", "127.0.0.1:0"}, flags...)...)
	s.command.Stdout, s.command.Stderr = in, &s.stderr
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() { _ = in.Close() })
	_, s.url, _ = strings.Cut(s.waitFor(t, "listening on "), "listening on ")
	return s
}

// waitFor returns the next line that holds the text.
func (s *telling) waitFor(t *testing.T, text string) string {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case line, ok := <-s.lines:
			if strings.Contains(line, text) {
				return line
			}
			if !ok {
				t.Fatalf("the service ended and did not say %q", text)
			}
		case <-deadline:
			t.Fatalf("the service did not say %q", text)
		}
	}
}
