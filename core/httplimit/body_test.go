package httplimit_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ratetier/ratetier/core/httplimit"
)

// body is a body that counts what was read of it and whether it was closed.
type body struct {
	io.Reader
	read   int
	closed int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *body) Close() error {
	b.closed++
	return nil
}

// posted returns a request with that body, its length declared or not.
func posted(b io.ReadCloser, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	r.Body, r.ContentLength = b, length
	return r
}

func TestPeekBodyLeavesTheBodyToTheHandler(t *testing.T) {
	text := strings.Repeat("0123456789", 10)
	const undeclared = -1
	for _, step := range []struct {
		name     string
		limit    int64
		length   int64
		tooLarge bool
		read     int // of the body, by PeekBody
	}{
		{"within the limit", 1000, 100, false, 100},
		{"within the limit, chunked", 1000, undeclared, false, 100},
		{"exactly the limit", 100, 100, false, 100},
		{"exactly the limit, chunked", 100, undeclared, false, 100},
		{"one byte more", 99, 100, true, 0},
		{"one byte more, chunked", 99, undeclared, true, 100},
		{"far more", 10, 100, true, 0},
		{"far more, chunked", 10, undeclared, true, 11},
		{"the default limit", 0, 100, false, 100},
		{"the default limit, chunked", 0, undeclared, false, 100},
		{"any length", math.MaxInt64, undeclared, false, 100},
	} {
		t.Run(step.name, func(t *testing.T) {
			source := &body{Reader: strings.NewReader(text)}
			r := posted(source, step.length)
			peeked, err := httplimit.PeekBody(r, step.limit)
			if tooLarge := (*httplimit.BodyTooLargeError)(nil); errors.As(err, &tooLarge) != step.tooLarge ||
				step.tooLarge && tooLarge.Limit != step.limit {
				t.Fatalf("error %v, too large wanted %t", err, step.tooLarge)
			}
			if !step.tooLarge && string(peeked) != text {
				t.Errorf("peeked at %q", peeked)
			}
			if source.read != step.read {
				t.Errorf("PeekBody read %d bytes, want %d", source.read, step.read)
			}
			for i := range peeked {
				peeked[i] = '!' // the caller's to change
			}
			if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != text {
				t.Errorf("the handler reads %q, %v", rest, err)
			}
			if err := r.Body.Close(); err != nil || source.closed != 1 {
				t.Errorf("closed %d times: %v", source.closed, err)
			}
		})
	}
}

func TestPeekBodyByDefaultReads64KiB(t *testing.T) {
	for size, ok := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		_, err := httplimit.PeekBody(posted(io.NopCloser(bytes.NewReader(make([]byte, size))), -1), 0)
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := (&httplimit.BodyTooLargeError{Limit: 64 << 10}); err.Error() != "ratetier: the body is larger than 65536 bytes" {
		t.Errorf("the error is %q", err)
	}
}

func TestPeekBodyCanBeCalledAgain(t *testing.T) {
	r := posted(io.NopCloser(strings.NewReader("hello")), -1)
	for _, limit := range []int64{5, 1000} {
		if peeked, err := httplimit.PeekBody(r, limit); err != nil || string(peeked) != "hello" {
			t.Errorf("limit %d: %q, %v", limit, peeked, err)
		}
	}
	if _, err := httplimit.PeekBody(r, 4); err == nil {
		t.Error("5 bytes are within a limit of 4")
	}
	if rest, err := io.ReadAll(r.Body); err != nil || string(rest) != "hello" {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
}

func TestPeekBodyOfNoBody(t *testing.T) {
	for _, none := range []io.ReadCloser{nil, http.NoBody} {
		r := posted(none, 0)
		if peeked, err := httplimit.PeekBody(r, 0); peeked != nil || err != nil {
			t.Errorf("%v: %q, %v", none, peeked, err)
		}
		if r.Body != none {
			t.Errorf("the body %v became %v", none, r.Body)
		}
	}
}

func TestPeekBodyReportsABrokenConnection(t *testing.T) {
	reset := errors.New("connection reset")
	r := posted(io.NopCloser(io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(reset))), 5)
	_, err := httplimit.PeekBody(r, 0)
	if !errors.Is(err, reset) || !strings.HasPrefix(err.Error(), "ratetier: reading the body: ") {
		t.Errorf("error %v", err)
	}
	if rest, err := io.ReadAll(r.Body); string(rest) != "hel" || !errors.Is(err, reset) {
		t.Errorf("the handler reads %q, %v", rest, err)
	}
}

func TestPeekBodyUnderAMaxBytesReader(t *testing.T) {
	r := posted(http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("hello")), 4), -1)
	_, err := httplimit.PeekBody(r, 0)
	if tooLarge := (*httplimit.BodyTooLargeError)(nil); !errors.As(err, &tooLarge) || tooLarge.Limit != 4 {
		t.Errorf("error %v, want a body larger than 4 bytes", err)
	}
}
