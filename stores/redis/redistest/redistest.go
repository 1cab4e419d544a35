// Package redistest starts a real redis-server for a test: one of the test's own, on a
// free port of this machine, which ends with the test. It needs redis-server on the PATH,
// or the command that REDIS_SERVER names, such as valkey-server, and fails the test where
// there is none.
//
//	server := redistest.Start(t)
//	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
package redistest

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Server is a process of redis-server. It is not safe for concurrent use, but for Addr.
type Server struct {
	t         testing.TB
	addr      string
	ready     string
	arguments []string
	process   *exec.Cmd
}

// Start starts a server, with options as on its command line, and returns when it accepts
// connections. It keeps nothing on disk.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	return StartAs(t, "eady to accept connections", append([]string{"--save", ""}, options...)...)
}

// StartAs starts what else redis-server can be, such as a Sentinel, and returns when it
// has logged that text.
func StartAs(t testing.TB, ready string, arguments ...string) *Server {
	t.Helper()
	s := &Server{t: t, addr: FreeAddr(t), ready: ready, arguments: arguments}
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	s.arguments = append(s.arguments, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--daemonize", "no")
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// Addr returns the address, as host:port.
func (s *Server) Addr() string { return s.addr }

// Kill ends the server as a crash would, if it runs.
func (s *Server) Kill() {
	if s.process.Process == nil {
		return // it could not be started
	}
	_ = s.process.Process.Kill() // it may have ended
	_ = s.process.Wait()         // says that it was killed
}

// Restart starts the server anew after a [Server.Kill], at the same address and empty,
// and returns when it accepts connections.
func (s *Server) Restart() {
	s.t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		s.t.Fatalf("%v: install it, as with apt-get install redis-server", err)
	}
	s.process = exec.CommandContext(context.Background(), path, s.arguments...)
	stdout, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	var log strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.Contains(lines.Text(), s.ready) {
			go func() {
				for lines.Scan() { // lest the pipe fills
				}
			}()
			return
		}
		log.WriteString(lines.Text() + "\n")
	}
	s.Kill()
	s.t.Fatalf("redis-server did not start:\n%s", log.String())
}

// Signal sends the process a signal, as to freeze it.
func (s *Server) Signal(signal os.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// FreeAddr returns an address of this machine, as host:port, that nobody listens on.
func FreeAddr(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return addr
}
