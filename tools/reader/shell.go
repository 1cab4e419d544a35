package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// shell runs the line to its end. The reader is then where the line has led.
func (r *reader) shell(ctx context.Context, line string) (string, error) {
	where := filepath.Join(r.temp, "where")
	cmd, output := r.bash(ctx, line+"\npwd >"+where)
	if err := cmd.Run(); err != nil {
		return output.String(), err
	}
	dir, err := os.ReadFile(where)
	r.dir = strings.TrimSpace(string(dir))
	return output.String(), err
}

// bash returns the line as a command, and where its output will be.
func (r *reader) bash(ctx context.Context, line string) (*exec.Cmd, *buffer) {
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", line)
	cmd.Dir = r.dir
	if r.dir != r.root {
		cmd.Env = r.env
	}
	output := &buffer{}
	cmd.Stdout, cmd.Stderr = output, &bytes.Buffer{}
	if !strings.HasPrefix(line, "curl ") {
		cmd.Stderr = output // not the progress that curl shows
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd, output
}

// A service is a program that listens.
type service struct {
	program string
	cmd     *exec.Cmd
	ended   chan error
}

// programOf returns the program that a line runs, "" if it is none of ours.
func programOf(line string) string {
	if line == "make run" {
		return "./examples/nethttp"
	}
	arguments, ok := strings.CutPrefix(line, "go run ")
	if !ok {
		return ""
	}
	program, _, _ := strings.Cut(arguments, " ")
	return program
}

// program runs the program to its end, or, if it is a service, until it listens. Then it
// is left alone until another program is run: the same once more is its client.
func (r *reader) program(ctx context.Context, program, line string) (string, error) {
	if r.service != nil && r.service.program == program {
		return r.shell(ctx, line)
	}
	if err := r.stop(); err != nil {
		return "", err
	}
	if r.listens(ctx) {
		return "", fmt.Errorf("something listens on %s already: stop it first", r.address)
	}
	cmd, output := r.bash(context.WithoutCancel(ctx), "exec "+strings.TrimSuffix(line, " &"))
	if err := cmd.Start(); err != nil {
		return "", err
	}
	s := &service{program: program, cmd: cmd, ended: make(chan error, 1)}
	go func() { s.ended <- cmd.Wait() }()
	for {
		select {
		case err := <-s.ended:
			return output.String(), err
		case <-ctx.Done():
			return output.String(), errors.Join(ctx.Err(), cmd.Cancel(), <-s.ended)
		case <-time.After(20 * time.Millisecond):
			if r.listens(ctx) {
				r.service = s
				return output.String(), nil
			}
		}
	}
}

func (r *reader) listens(ctx context.Context) bool {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", r.address)
	if err != nil {
		return false
	}
	return connection.Close() == nil
}

// stop interrupts the service, if there is one, and waits until it has ended.
func (r *reader) stop() error {
	s := r.service
	if s == nil {
		return nil
	}
	r.service = nil
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return nil // as an interrupted program does
		}
		return err
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s goes on, though interrupted", s.program), s.cmd.Cancel(), <-s.ended)
	}
}

// buffer is written to by a program while it is read.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
