package examples_test

import (
	"bufio"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Two instances of a service on one Redis share one limit: of eleven requests that
// alternate between them, ten pass.
func TestInstancesShareOneLimitInRedis(t *testing.T) {
	port := startRedis(t)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./nethttp", "./gin", "./echo", "./chi")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	// The limit is one for all frameworks, too.
	var instances []*running
	for _, name := range []string{"nethttp", "gin", "echo", "chi"} {
		instances = append(instances, start(t, filepath.Join(dir, name), "-redis", "redis://127.0.0.1:"+port))
	}
	passed := 0
	for i := range 11 {
		if strings.HasPrefix(instances[i%len(instances)].get(t, "key_ana", "/data"), "key_ana /data 200") {
			passed++
		}
	}
	for _, instance := range instances {
		instance.stop(t)
	}
	if passed != 10 {
		t.Errorf("%d of 11 passed, want 10", passed)
	}
}

// startRedis starts a redis-server that stops with the test, and returns its port.
func startRedis(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("%v: install it, as with apt-get install redis-server", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	port := strconv.Itoa(address.Port)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	server := exec.CommandContext(t.Context(), path, "--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "")
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended it
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.Contains(lines.Text(), "eady to accept connections") {
			return port
		}
	}
	t.Fatal("redis-server did not start")
	return ""
}
