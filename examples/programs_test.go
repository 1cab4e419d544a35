package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The programs that have no transcript start as their first lines say, answer the first
// request that they propose, and end when interrupted.
func TestProgramsServeUntilInterrupted(t *testing.T) {
	for _, program := range []struct {
		example, path, want string
		flags               []string
	}{
		{"./database", "/data", "key_ana /data 200 10 9 - text/plain; charset=utf-8 data\n", []string{"-db", filepath.Join(t.TempDir(), "plans.db")}},
		{"./llm", "/usage", "key_ana /usage 200 1000 1000 - text/plain; charset=utf-8 see the headers\n", nil},
		{"./metrics", "/data/1", "key_ana /data/1 200 10 9 - text/plain; charset=utf-8 data\n", []string{"-metrics", "127.0.0.1:0"}},
	} {
		s := startTelling(t, program.example, program.flags...)
		if got := s.get(t, "key_ana", program.path); got != program.want {
			t.Errorf("%s: got %s", program.example, got)
		}
		if stderr := s.stop(t); stderr != "" {
			t.Errorf("%s said %s", program.example, stderr)
		}
	}
}

func TestTheWebSocketProgramServesAndSends(t *testing.T) {
	s := startTelling(t, "./websocket")
	client := exec.CommandContext(t.Context(), s.command.Path, "-addr", strings.TrimPrefix(s.url, "http://"), "-key", "key_ana", "-send", "hello", "-times", "2")
	if output, err := client.CombinedOutput(); err != nil || string(output) != "HELLO\nHELLO\n" {
		t.Errorf("the client printed %s, %v", output, err)
	}
	if stderr := s.stop(t); stderr != "" {
		t.Errorf("the service said %s", stderr)
	}
}
