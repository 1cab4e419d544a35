package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// service is the example behind a socket, on a clock that stands still.
type service struct {
	addr    string
	clock   *clocktest.Clock
	limiter *ratetier.Limiter
	down    atomic.Bool
	stop    func()
}

// store fails when the service says so.
type store struct {
	ratetier.Store
	*service
}

func (s store) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	if s.down.Load() {
		return errors.New("down")
	}
	return s.Store.Apply(ctx, request, result)
}

func start(t *testing.T) *service {
	t.Helper()
	s := &service{clock: clocktest.New(time.Unix(0, 0))}
	limiter, err := ratetier.New(ratetier.Config{
		Store:         store{memorystore.New(), s},
		Tiers:         ratetier.Tiers{"free": ratetier.PerMinute(10), "pro": ratetier.PerMinute(100)},
		OnMissing:     ratetier.Deny(http.StatusUnauthorized),
		OnStoreFailed: ratetier.Deny(http.StatusServiceUnavailable),
		Clock:         s.clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.limiter = limiter
	stopping, stop := context.WithCancel(t.Context())
	var connections sync.WaitGroup
	server := httptest.NewServer(newHandler(stopping, &connections, limiter))
	s.addr = strings.TrimPrefix(server.URL, "http://")
	s.stop = func() {
		stop()
		connections.Wait() // ends, or the test times out
	}
	t.Cleanup(func() {
		s.stop()
		server.Close()
	})
	return s
}

// client is a connection to the service.
type client struct {
	*websocket.Conn
	t   *testing.T
	ctx context.Context
}

func (s *service) connect(t *testing.T, key string) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, "ws://"+s.addr+"/chat", &websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {key}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{conn, t, ctx}
}

// says sends a message, and compares the answer.
func (c *client) says(message, want string) {
	c.t.Helper()
	if err := c.Write(c.ctx, websocket.MessageText, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
	if _, got, err := c.Read(c.ctx); err != nil || string(got) != want {
		c.t.Fatalf("%.20s: got %s, %v, want %s", message, got, err, want)
	}
}

// isClosed sends a message, if there is one, and compares how the connection ends.
func (c *client) isClosed(message string, code websocket.StatusCode, reason string) {
	c.t.Helper()
	if message != "" {
		if err := c.Write(c.ctx, websocket.MessageText, []byte(message)); err != nil {
			c.t.Fatal(err)
		}
	}
	var closed websocket.CloseError
	if _, got, err := c.Read(c.ctx); !errors.As(err, &closed) || closed.Code != code || closed.Reason != reason {
		c.t.Errorf("got %s, %v, want a close with %d %q", got, err, code, reason)
	}
}

const wait6 = `{"error":"rate limit exceeded","retry_after":6}`

func TestEachMessageIsChargedAndAFastClientIsToldToSlowDown(t *testing.T) {
	s := start(t)
	ana := s.connect(t, "key_ana") // is one of ten
	for range 9 {
		ana.says("hello", "HELLO")
	}
	ana.says("hello", wait6)
	ana.says("hello", wait6)
	s.clock.Advance(6 * time.Second)
	ana.says("hello", "HELLO") // and all is forgiven
	for range patience {
		ana.says("hello", wait6)
	}
	ana.isClosed("hello", websocket.StatusPolicyViolation, "rate limit exceeded")
	s.clock.Advance(18 * time.Second)
	again := s.connect(t, "key_ana") // nobody is locked out
	again.says(strings.Repeat("x", 1024), strings.Repeat("X", 1024))
	again.says("hello", wait6)
	s.connect(t, "key_bea").says("hello", "HELLO")
}

func TestAllConnectionsOfAClientShareItsLimit(t *testing.T) {
	s := start(t)
	one, two := s.connect(t, "key_ana"), s.connect(t, "key_ana")
	for range 4 {
		one.says("hello", "HELLO")
		two.says("hello", "HELLO")
	}
	one.says("hello", wait6)
	two.says("hello", wait6)
}

func TestAConnectionIsClosedWithTheCodeThatSaysWhy(t *testing.T) {
	s := start(t)
	s.connect(t, "key_ana").isClosed(strings.Repeat("x", 10*1024), websocket.StatusMessageTooBig, "larger than the plan ever allows")

	conn := s.connect(t, "key_ana")
	if err := s.limiter.SetTiers(ratetier.Tiers{"free": ratetier.Blocked(), "pro": ratetier.PerMinute(100)}); err != nil {
		t.Fatal(err)
	}
	conn.isClosed("hello", websocket.StatusPolicyViolation, "not allowed")

	conn = s.connect(t, "key_bea")
	s.down.Store(true)
	conn.isClosed("hello", websocket.StatusTryAgainLater, "service unavailable")
	s.down.Store(false)

	conn = s.connect(t, "key_bea")
	conn.says("hello", "HELLO")
	go s.stop()
	conn.isClosed("", websocket.StatusGoingAway, "the service is stopping")
}

func TestTheClientPrintsWhatItIsTold(t *testing.T) {
	s := start(t)
	var out strings.Builder
	err := send(t.Context(), s.addr, "key_ana", "hello", 20, &out)
	want := strings.Repeat("HELLO\n", 9) + strings.Repeat(wait6+"\n", patience)
	if out.String() != want || websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("printed %s, ended with %v", out.String(), err)
	}
	for key, want := range map[string]string{"key_ana": "429 Too Many Requests", "": "401 Unauthorized"} {
		out.Reset()
		if err := send(t.Context(), s.addr, key, "hello", 1, &out); err == nil || out.String() != "not connected: "+want+"\n" {
			t.Errorf("key %q: printed %s, %v", key, out.String(), err)
		}
	}
	if err := send(t.Context(), s.addr, "key_bea", "hello", 1, io.Discard); err != nil {
		t.Error(err)
	}
}
