package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// ask sends one request, with time standing still, and returns the answer.
func ask(t *testing.T, handler http.Handler, method, path, body string) (w *httptest.ResponseRecorder) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("X-Api-Key", "key_ana")
	w = httptest.NewRecorder()
	defer func() { _ = recover() }() // as net/http does
	handler.ServeHTTP(w, r)
	return w
}

func left(t *testing.T, handler http.Handler) string {
	t.Helper()
	return ask(t, handler, http.MethodGet, "/usage", "").Header().Get("X-RateLimit-Remaining")
}

func newService(t *testing.T, complete model) http.Handler {
	t.Helper()
	handler, err := newHandler(complete)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestWhatWasReservedIsSettled(t *testing.T) {
	for _, step := range []struct {
		name, body string
		complete   model
		status     int
		left       string
	}{
		{"less than reserved", `{"prompt": "hello"}`, uses(25), 200, "975"},
		{"all of it", `{"prompt": "hello"}`, uses(405), 200, "595"},
		{"more than reserved", `{"prompt": "hello"}`, uses(500), 200, "500"},
		{"more than there is", `{"prompt": "hello"}`, uses(5000), 200, "0"},
		{"nothing", `{"prompt": "hello", "max_tokens": 1}`, uses(0), 200, "1000"},
		{"a failure", `{"prompt": "hello"}`, func(context.Context, prompt) (string, int64, error) { return "", 0, errors.New("broken") }, 502, "1000"},
		{"a panic", `{"prompt": "hello"}`, func(context.Context, prompt) (string, int64, error) { panic("broken") }, 200, "1000"},
		{"a prompt that never fits", `{"prompt": "` + strings.Repeat("x", 601) + `"}`, uses(1), 403, "1000"},
		{"no prompt", `hello`, uses(1), 400, "999"},
		{"an estimate below 0", `{"prompt": "hello", "max_tokens": -400}`, uses(1), 400, "999"},
		{"an estimate that overflows", `{"prompt": "hello", "max_tokens": 9223372036854775807}`, uses(1), 400, "999"},
		{"a body that is too large", `{"prompt": "` + strings.Repeat("x", 16<<10) + `"}`, uses(1), 413, "999"},
	} {
		synctest.Test(t, func(t *testing.T) {
			handler := newService(t, step.complete)
			if w := ask(t, handler, http.MethodPost, "/chat", step.body); w.Code != step.status {
				t.Errorf("%s: status %d, want %d: %s", step.name, w.Code, step.status, w.Body)
			}
			if got := left(t, handler); got != step.left {
				t.Errorf("%s: %s left, want %s", step.name, got, step.left)
			}
		})
	}
}

func uses(tokens int64) model {
	return func(context.Context, prompt) (string, int64, error) { return "answer", tokens, nil }
}

// Twenty requests are under way at the same moment. Had they been charged afterwards,
// all would have passed; of 1000 tokens, two reservations of 405 are all that fits.
func TestRequestsSideBySideGetNoMoreThanTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		handler := newService(t, func(_ context.Context, p prompt) (string, int64, error) {
			<-finish
			return "answer", tokens(p.Text) + p.MaxTokens, nil
		})
		var mu sync.Mutex
		statuses := map[int]int{}
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				w := ask(t, handler, http.MethodPost, "/chat", `{"prompt": "hello"}`)
				mu.Lock()
				defer mu.Unlock()
				statuses[w.Code]++
			})
		}
		synctest.Wait() // until all are refused or at work
		close(finish)
		clients.Wait()
		if statuses[200] != 2 || statuses[429] != 18 {
			t.Errorf("statuses %v, want two 200 and eighteen 429", statuses)
		}
		if got := left(t, handler); got != "190" {
			t.Errorf("%s left, want 190", got)
		}
	})
}

// A client that goes away gets no work for nothing, and keeps no reservation.
func TestAClientThatHasGoneIsSettledFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		handler := newService(t, func(context.Context, prompt) (string, int64, error) {
			leave()
			return "half an ans", 30, nil
		})
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/chat", strings.NewReader(`{"prompt": "hello"}`))
		r.Header.Set("X-Api-Key", "key_ana")
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if got := left(t, handler); got != "970" {
			t.Errorf("%s left, want 970", got)
		}
	})
}
