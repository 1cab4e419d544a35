package httplimit_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
)

// The race detector watches what these tests do: a handler that outlives its
// request uses a request that nobody else writes to.

func TestAHandlerMayOutliveItsRequestUnderATimeout(t *testing.T) {
	limiter := newLimiter("10/min")
	limit := httplimit.Middleware(guard(limiter, config{}))
	timeout := func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Hour, "") }
	for name, use := range map[string][]middleware{
		"outside the limiter": {timeout, limit},
		"inside the limiter":  {limit, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			answered, done := make(chan struct{}), make(chan string)
			ctx, giveUp := context.WithCancel(t.Context())
			mux := http.NewServeMux()
			mux.HandleFunc("GET /{$}", func(_ http.ResponseWriter, r *http.Request) {
				giveUp() // ends the wait of TimeoutHandler before its time
				<-answered
				admission, _ := ratetier.FromContext(r.Context())
				_ = admission.Settle(r.Context(), 0)
				done <- r.Pattern
			})
			outside := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r)
					_, _ = io.WriteString(io.Discard, r.Pattern) // as a logger does
				})
			}
			w := httptest.NewRecorder()
			chain(mux, append([]middleware{outside}, use...)...).ServeHTTP(w, request(http.MethodGet, "").WithContext(ctx))
			close(answered)
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("status %d, want %d", w.Code, http.StatusServiceUnavailable)
			}
			if pattern := <-done; pattern != "GET /{$}" {
				t.Errorf("the handler has the pattern %q", pattern)
			}
		})
	}
}

func TestAHandlerMayOutliveItsRequestInAGoroutine(t *testing.T) {
	limiter := newLimiter("10/min")
	started, answered, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	limited := httplimit.Middleware(guard(limiter, config{}))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-answered
		r.Pattern = "GET /inner" // as another mux does
	}))
	r := request(http.MethodGet, "GET /")
	go func() {
		defer close(done)
		limited.ServeHTTP(httptest.NewRecorder(), r)
	}()
	<-started
	close(answered)
	if r.Pattern != "GET /" {
		t.Errorf("the pattern became %q", r.Pattern)
	}
	<-done
}

func TestDoneIsCalledWithTheRequestThatAdmitReturned(t *testing.T) {
	g := &gate{admitted: request(http.MethodGet, "/")}
	handler := httplimit.Middleware(g)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r != g.admitted || g.done != nil {
			t.Errorf("the handler got %p after Done(%p), want %p first", r, g.done, g.admitted)
		}
	}))
	handler.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "/"))
	if g.done != g.admitted {
		t.Errorf("Done(%p), want %p", g.done, g.admitted)
	}
	g.done, g.refusal = nil, &httplimit.Refusal{Status: http.StatusTooManyRequests}
	handler.ServeHTTP(httptest.NewRecorder(), request(http.MethodGet, "/"))
	if g.done != nil {
		t.Error("Done was called for a refused request")
	}
}

type gate struct {
	admitted, done *http.Request
	refusal        *httplimit.Refusal
}

func (g *gate) Admit(*http.Request, *http.Request, http.Header) (*http.Request, *httplimit.Refusal) {
	return g.admitted, g.refusal
}

func (g *gate) Done(r *http.Request) { g.done = r }
