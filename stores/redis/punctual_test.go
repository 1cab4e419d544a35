package redisstore_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// punctual has the client keep to the deadlines of contexts, and be patient otherwise.
func punctual(o *redis.Options) {
	o.ContextTimeoutEnabled = true
	o.ReadTimeout = time.Minute
}

// stacks is a hook that notes in what goroutine commands are sent.
type stacks struct {
	redis.Hook
	last string
}

func (*stacks) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *stacks) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		buffer := make([]byte, 64<<10)
		s.last = string(buffer[:runtime.Stack(buffer, false)])
		return next(ctx, cmd)
	}
}
func (*stacks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A caller goes to Redis itself only if that cannot make it miss what would call it back.
func TestWhoTakesACheckToRedis(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		name string
		ctx  context.Context
		rdb  *redis.Client
		self bool
	}{
		{"nothing can cancel it", context.Background(), s.client(t, punctual), true},
		{"it can be canceled", t.Context(), s.client(t, punctual), false},
		{"the client does not keep to deadlines", context.Background(), s.client(t), false},
		{"it sets none when it reads", context.Background(), s.client(t, punctual, func(o *redis.Options) { o.ReadTimeout = -2 }), false},
		{"it sets none when it writes", context.Background(), s.client(t, punctual, func(o *redis.Options) { o.WriteTimeout = -2 }), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var hook stacks
			test.rdb.AddHook(&hook)
			store := redisstore.New(test.rdb, redisstore.Config{Timeout: time.Minute})
			if _, err := take(test.ctx, store, ana, 1); err != nil {
				t.Fatal(err)
			}
			if self := strings.Contains(hook.last, "TestWhoTakesACheckToRedis"); self != test.self {
				t.Errorf("by the caller: %t, want %t", self, test.self)
			}
		})
	}
}

// Callers that go to Redis themselves are back at the deadline, and what they did not
// hear of was charged once.
func TestACallerThatGoesToRedisItselfKeepsTheDeadline(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.Addr())
	rdb := newClient(t, p.addr, punctual)
	store := redisstore.New(rdb, redisstore.Config{Timeout: 100 * time.Millisecond})
	if _, err := take(context.Background(), store, ana, 1); err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]struct{ begin, end func() }{
		"frozen": {func() { s.Signal(syscall.SIGSTOP) }, func() { s.Signal(syscall.SIGCONT) }},
		"lost":   {func() { p.set(loseReplies) }, func() { p.set(none) }},
		"silent": {func() { p.set(silent) }, func() { p.set(none) }},
	} {
		t.Run(name, func(t *testing.T) {
			before := used(t, s.client(t), ana)
			sent, late := p.commands("evalsha"), store.Stats().Late
			fault.begin()
			_, err := take(context.Background(), store, ana, 1)
			fault.end()
			if !errors.Is(err, os.ErrDeadlineExceeded) || store.Stats().Late != late+1 {
				t.Errorf("error %v, want that of the deadline", err)
			}
			if sent = p.commands("evalsha") - sent; sent > 1 {
				t.Errorf("sent %d times", sent)
			}
			if n := used(t, s.client(t), ana) - before; n > 1 {
				t.Errorf("1 check charged %d", n)
			}
		})
	}
}
