package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// server is a redis-server of the test's own.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// startServer starts a redis-server on a free port, which stops with the test.
func startServer(t testing.TB, options ...string) *server {
	t.Helper()
	return startServerAt(t, freePort(t), options...)
}

func startServerAt(t testing.TB, port int, options ...string) *server {
	t.Helper()
	return run(t, port, "eady to accept connections", append([]string{"--save", ""}, options...)...)
}

// run starts a redis-server, and returns when it has logged that it is ready.
func run(t testing.TB, port int, ready string, arguments ...string) *server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("%v: install it, as with apt-get install redis-server", err)
	}
	arguments = append(arguments, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", t.TempDir(), "--daemonize", "no")
	s := &server{addr: "127.0.0.1:" + strconv.Itoa(port)}
	s.cmd = exec.CommandContext(context.Background(), path, arguments...)
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.Contains(lines.Text(), ready) {
			go func() {
				for lines.Scan() { // lest the pipe fills
				}
			}()
			return s
		}
	}
	t.Fatal("redis-server did not start")
	return nil
}

// stop kills the server, as a crash would.
func (s *server) stop() {
	if s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// signal sends the server a signal.
func (s *server) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// client returns a client of the server with all defaults but those in change.
func (s *server) client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, s.addr, change...)
}

func newClient(t testing.TB, addr string, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: addr}
	for _, c := range change {
		c(options)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func freePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	addr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(fmt.Errorf("listening on %v", listener.Addr()))
	}
	return addr.Port
}
