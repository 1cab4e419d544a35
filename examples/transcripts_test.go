package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What each request to the service on every framework gets: status, limit,
// remaining, Retry-After, type and body. A dash is a header that is not there.
const service = `
key_ana  /data    200  10   9   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   8   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   7   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   6   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   5   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   4   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   3   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   2   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   1   -  text/plain; charset=utf-8  data
key_ana  /data    200  10   0   -  text/plain; charset=utf-8  data
key_ana  /data    429  10   0   6  application/json  {"error":"rate limit exceeded","tier":"free","retry_after":6}
key_bea  /data    200  100  99  -  text/plain; charset=utf-8  data
key_bea  /report  200  100  94  -  text/plain; charset=utf-8  report
key_eva  /data    200  10   9   -  text/plain; charset=utf-8  data
key_eva  /backup  403  -    -   -  application/json  {"error":"request cost exceeds tier limit","tier":"free","cost":50,"limit":10}
-        /data    401  -    -   -  application/json  {"error":"Unauthorized"}
key_zoe  /data    401  -    -   -  application/json  {"error":"Unauthorized"}
`

// What the service says about them on standard error.
const serviceErrors = `
unknown tier "gold" for key_eva
unknown tier "gold" for key_eva
`

// What the programs print.
var programs = map[string]string{
	"burst": `
fixed window: 20 of 20 allowed in 2 seconds
GCRA:         10 of 20 allowed in 2 seconds
`,
	"gcra": `
t= 0s  200  remaining 9
t= 0s  200  remaining 8
t= 0s  200  remaining 7
t= 0s  200  remaining 6
t= 0s  200  remaining 5
t= 0s  200  remaining 4
t= 0s  200  remaining 3
t= 0s  200  remaining 2
t= 0s  200  remaining 1
t= 0s  200  remaining 0
t= 0s  429  retry after 6 s
t= 6s  200  remaining 0
t= 6s  429  retry after 6 s
t=36s  200  remaining 4
t=36s  200  remaining 3
t=36s  200  remaining 2
t=36s  200  remaining 1
t=36s  200  remaining 0
t=36s  429  retry after 6 s
`,
}

func TestExamplesAnswerAsTheirTranscriptsSay(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./burst", "./gcra", "./nethttp", "./gin", "./echo", "./chi")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	for name, want := range programs {
		t.Run(name, func(t *testing.T) {
			output, err := exec.CommandContext(t.Context(), filepath.Join(dir, name)).Output()
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "\n"+string(output), want)
		})
	}
	for _, name := range []string{"nethttp", "gin", "echo", "chi"} {
		t.Run(name, func(t *testing.T) { replay(t, filepath.Join(dir, name)) })
	}
}

// replay runs the service and sends it the requests of the transcript. The service
// goes by the real clock, so a replay that took a second or more proves nothing, and
// is repeated.
func replay(t *testing.T, program string) {
	t.Helper()
	for range 10 {
		s := start(t, program)
		began := time.Now()
		var got strings.Builder
		for line := range strings.Lines(service[1:]) {
			fields := strings.Fields(line)
			got.WriteString(s.get(t, fields[0], fields[1]))
		}
		took := time.Since(began)
		stderr := s.stop(t)
		if took < time.Second {
			compare(t, got.String(), squeeze(service))
			compare(t, "\n"+stderr, serviceErrors)
			return
		}
	}
	t.Fatal("no replay took less than a second")
}

// running is a service that listens.
type running struct {
	url     string
	command *exec.Cmd
	stderr  bytes.Buffer
}

func start(t *testing.T, program string, flags ...string) *running {
	t.Helper()
	flags = append([]string{"-addr", "127.0.0.1:0"}, flags...)
	s := &running{command: exec.CommandContext(t.Context(), program, flags...)}
	s.command.Stderr = &s.stderr
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the service said %q, %v, and not where it listens", line, err)
	}
	s.url = url
	return s
}

// stop returns what the service wrote on standard error.
func (s *running) stop(t *testing.T) string {
	t.Helper()
	if err := s.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := s.command.Wait(); err != nil {
		t.Errorf("interrupted, the service ended with %v", err)
	}
	return s.stderr.String()
}

// get sends one request and returns its line of the transcript.
func (s *running) get(t *testing.T, key, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if key != "-" {
		request.Header.Set("X-Api-Key", key)
	}
	sent := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	header := func(name string) string {
		switch values := response.Header.Values(name); len(values) {
		case 0:
			return "-"
		case 1:
			return values[0]
		default:
			t.Errorf("%s %s: %s is there %d times", key, path, name, len(values))
			return strings.Join(values, ",")
		}
	}
	limit, reset := header("X-RateLimit-Limit"), header("X-RateLimit-Reset")
	if at, err := strconv.ParseInt(reset, 10, 64); (limit == "-") != (reset == "-") ||
		limit != "-" && (err != nil || at < sent.Unix() || at > time.Now().Add(time.Minute).Unix()+1) {
		t.Errorf("%s %s: X-RateLimit-Reset is %q", key, path, reset)
	}
	line := fmt.Sprintln(key, path, response.StatusCode, limit, header("X-RateLimit-Remaining"),
		header("Retry-After"), header("Content-Type"), string(body))
	return squeeze(line)
}

// squeeze makes the space between fields, and at the end of lines, one character.
func squeeze(text string) string {
	var squeezed strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		squeezed.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return squeezed.String()
}

// compare compares line by line.
func compare(t *testing.T, got, want string) {
	t.Helper()
	gots, wants := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(gots), len(wants)) {
		g, w := "nothing", "nothing"
		if i < len(gots) {
			g = gots[i]
		}
		if i < len(wants) {
			w = wants[i]
		}
		if g != w {
			t.Errorf("line %d:\n got %s\nwant %s", i, g, w)
		}
	}
}
