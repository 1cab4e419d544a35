package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// What a client sees, as examples/nethttp and its siblings answer: after each call the
// answer, but for the time of the reset.
const transcript = `
key_ana Data
OK: data
x-ratelimit-limit: 10
x-ratelimit-remaining: 9
key_ana Report
OK: report
x-ratelimit-limit: 10
x-ratelimit-remaining: 4
key_ana Report
ResourceExhausted: rate limit exceeded
x-ratelimit-limit: 10
x-ratelimit-remaining: 4
grpc-retry-pushback-ms: -1
retry after 6s
tier:free: a cost of 5, with 4 of 10 left
key_bea Data
OK: data
x-ratelimit-limit: 100
x-ratelimit-remaining: 99
key_bea Backup
OK: backup
x-ratelimit-limit: 100
x-ratelimit-remaining: 49
key_bea Backup
ResourceExhausted: rate limit exceeded
x-ratelimit-limit: 100
x-ratelimit-remaining: 49
grpc-retry-pushback-ms: 600
retry after 600ms
tier:pro: a cost of 50, with 49 of 100 left
key_eva Data
OK: data
x-ratelimit-limit: 10
x-ratelimit-remaining: 9
key_eva Backup
FailedPrecondition: request cost exceeds tier limit
grpc-retry-pushback-ms: -1
tier:free: a cost of 50, where the tier never allows more than 10 at once
 Data
Unauthenticated: unauthenticated
key_zoe Data
Unauthenticated: unauthenticated
`

// Time stands still for the service, as it does in a bubble of package synctest.
func TestTheServiceAnswersAsItsTranscriptSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := newServer(memorystore.New())
		if err != nil {
			t.Fatal(err)
		}
		conn := connect(t, server)
		var got strings.Builder
		got.WriteString("\n")
		for line := range strings.Lines(transcript) {
			key, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if ok && (name == "Data" || name == "Report" || name == "Backup") {
				got.WriteString(line)
				if err := call(t.Context(), conn, key, name, &got); err != nil {
					t.Error(err)
				}
			}
		}
		if got := without("x-ratelimit-reset", got.String()); got != transcript {
			t.Errorf("got:%s\nwant:%s", got, transcript)
		}
	})
}

func TestACallToNobodyIsAnError(t *testing.T) {
	var listener net.ListenConfig
	nobody, err := listener.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := nobody.Addr().String()
	if err := nobody.Close(); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	err = dial(addr, "key_ana", "Data", &printed)
	if err == nil || !strings.Contains(err.Error(), "is the server running at "+addr) || printed.Len() > 0 {
		t.Errorf("error %v, printed %q", err, &printed)
	}
}

// without leaves out the lines that begin with a word.
func without(word, text string) string {
	var rest strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, word) {
			rest.WriteString(line)
		}
	}
	return rest.String()
}

// connect serves until the test ends, and returns a connection.
func connect(t testing.TB, server *grpc.Server, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///service", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// From the command line to the client's terminal, over a port of this machine.
func TestTheProgramServesAndCalls(t *testing.T) {
	out, in := io.Pipe()
	ended := make(chan error)
	go func() { ended <- run("127.0.0.1:0", "", in) }()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the program said %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()

	var seen strings.Builder
	if err := dial(addr, "key_ana", "Data", &seen); err != nil || !strings.HasPrefix(seen.String(), "OK: data\nx-ratelimit-limit: 10\n") {
		t.Errorf("saw %q, %v", seen.String(), err)
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("interrupted, the program ended with %v", err)
	}
}

func TestTheProgramSaysWhatItCannotDo(t *testing.T) {
	for _, step := range []struct{ addr, redis, want string }{
		{"nowhere", "redis://:sec ret@localhost", "redisstore: the URL cannot be read: write it as redis://user:password@host:6379/0, with %40 for an @ in the password, and so on"},
		{"nowhere", "", "listen tcp: address nowhere: missing port in address"},
	} {
		if err := run(step.addr, step.redis, io.Discard); err == nil || err.Error() != step.want {
			t.Errorf("got %v, want %s", err, step.want)
		}
	}
}
