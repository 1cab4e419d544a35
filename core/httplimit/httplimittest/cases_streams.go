package httplimittest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// streams are the promises about answers that are not written in one go.
var streams = []promise{
	{"the ResponseWriter can do behind a limiter what it can do without", func(t *trial) {
		lists := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Join(abilities(w), ", ")) }
		handler := http.HandlerFunc(lists)
		bare := t.serve(nil, t.routeTo(handler, "GET /")).get("/").is(http.StatusOK)
		limited := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})}, t.routeTo(handler, "GET /", cost(2))).get("/", ana).left(8)
		if limited.body != bare.body {
			limited.errorf("the writer can do %s; without a limiter: %s", limited.body, bare.body)
		}
	}},

	{"an event stream reaches the client as it is written, and holds up nobody meanwhile", func(t *trial) {
		first, second := make(chan struct{}), make(chan struct{})
		events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range []struct {
				flush func() error
				seen  chan struct{}
			}{
				{func() error { return flush(w) }, first},
				{http.NewResponseController(w).Flush, second},
			} {
				fmt.Fprint(w, "data: tick\n\n")
				if err := event.flush(); err != nil {
					t.errorf("flush: %v", err)
					return
				}
				select {
				case <-event.seen:
				case <-r.Context().Done():
					return
				}
			}
		})
		s := t.serve([]layer{limit(t.limiter(ratetier.Config{}), config{})}, t.routeTo(events, "GET /events"), t.route("GET /"))
		response, err := s.open(http.MethodGet, "/events", http.NoBody, ana)
		if err != nil {
			t.errorf("no answer: %v", err)
			return
		}
		defer func() { _ = response.Body.Close() }()
		if got := response.Header.Get("X-RateLimit-Remaining"); got != "9" {
			t.errorf("X-RateLimit-Remaining of the stream is %q, want %q", got, "9")
		}
		lines := bufio.NewReader(response.Body)
		for i, seen := range []chan struct{}{first, second} {
			line, err := lines.ReadString('\n')
			if err != nil || line != "data: tick\n" {
				t.errorf("event %d is %q: %v", i+1, line, err)
				return
			}
			_, _ = lines.ReadString('\n')
			s.get("/", ana).left(8 - i)
			close(seen)
		}
	}},

	{"a connection can be hijacked, and its messages charged", func(t *trial) {
		limiter := t.limiter(ratetier.Config{Tiers: ratetier.Tiers{"free": ratetier.PerMinute(3)}})
		upgrade := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admission, ok := ratetier.FromContext(r.Context())
			if !ok {
				t.errorf("ratetier.FromContext finds nothing in the handler")
				return
			}
			hijacker, ok := w.(http.Hijacker)
			if !ok {
				t.errorf("%T is no http.Hijacker", w)
				return
			}
			conn, rw, err := hijacker.Hijack()
			if err != nil {
				t.errorf("hijack: %v", err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
			for {
				if _, err := rw.ReadString('\n'); err != nil {
					return
				}
				d := admission.Take(t.context, 1)
				fmt.Fprintf(conn, "%v, %d left\n", d.Outcome, d.Remaining)
			}
		})
		s := t.serve([]layer{limit(limiter, config{})}, t.routeTo(upgrade, "GET /"))
		response, err := s.open(http.MethodGet, "/", http.NoBody, ana, "Connection: Upgrade", "Upgrade: lines")
		if err != nil {
			t.errorf("no answer: %v", err)
			return
		}
		defer func() { _ = response.Body.Close() }()
		conn, ok := response.Body.(io.ReadWriter)
		if !ok || response.StatusCode != http.StatusSwitchingProtocols {
			t.errorf("status %d, want %d", response.StatusCode, http.StatusSwitchingProtocols)
			return
		}
		lines := bufio.NewReader(conn)
		for _, want := range []string{"allowed, 1 left\n", "allowed, 0 left\n", "limited, 0 left\n"} {
			fmt.Fprintln(conn, "message")
			if line, err := lines.ReadString('\n'); line != want {
				t.errorf("the message was answered %q (%v), want %q", line, err, want)
			}
		}
	}},
}

// flush flushes as code does that knows no http.ResponseController.
func flush(w http.ResponseWriter) error {
	flusher, ok := w.(http.Flusher)
	if !ok {
		return errors.New("the writer is no http.Flusher")
	}
	flusher.Flush()
	return nil
}

// abilities lists what a writer can do besides writing.
func abilities(w http.ResponseWriter) []string {
	var can []string
	add := func(name string, ok bool) {
		if ok {
			can = append(can, name)
		}
	}
	_, ok := w.(http.Flusher)
	add("http.Flusher", ok)
	_, ok = w.(http.Hijacker)
	add("http.Hijacker", ok)
	_, ok = w.(io.ReaderFrom) // sendfile
	add("io.ReaderFrom", ok)
	_, ok = w.(io.StringWriter)
	add("io.StringWriter", ok)
	controller := http.NewResponseController(w)
	add("SetReadDeadline", controller.SetReadDeadline(time.Time{}) == nil)
	add("SetWriteDeadline", controller.SetWriteDeadline(time.Time{}) == nil)
	add("EnableFullDuplex", controller.EnableFullDuplex() == nil)
	return can
}
