package httplimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
)

// DefaultPeekLimit is how much of a body [PeekBody] reads where it is not told: 64
// KiB.
const DefaultPeekLimit = 64 << 10

// BodyTooLargeError is the error of [PeekBody] for a body beyond the limit. Returned
// from Identify, it makes the answer 413, whatever the policy.
type BodyTooLargeError struct {
	Limit int64 // bytes
}

// Error names the limit.
func (e *BodyTooLargeError) Error() string {
	return fmt.Sprintf("ratetier: the body is larger than %d bytes", e.Limit)
}

// isTooLarge tells whether the error is a [*BodyTooLargeError].
func isTooLarge(err error) bool {
	if err == nil {
		return false // before anything is allocated
	}
	var tooLarge *BodyTooLargeError
	return errors.As(err, &tooLarge)
}

// PeekBody returns the whole body of the request and puts it back, so that the
// handler reads it too, byte for byte: for an Identify that finds the tenant in the
// JSON or the form that was sent. The limit is in bytes; 0 is [DefaultPeekLimit].
//
// A body beyond the limit is a [*BodyTooLargeError]: a declared length is checked
// before anything is read, and else reading stops at the first byte past the limit.
// So is one beyond the limit of an [http.MaxBytesReader]. Any other error is the
// client's connection.
func PeekBody(r *http.Request, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = DefaultPeekLimit
	}
	if r.ContentLength > limit {
		return nil, &BodyTooLargeError{Limit: limit}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	rest := r.Body
	peeked, err := io.ReadAll(io.LimitReader(rest, min(limit, math.MaxInt64-1)+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(peeked), rest), rest}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &BodyTooLargeError{Limit: tooLarge.Limit}
	}
	if err != nil {
		return nil, fmt.Errorf("ratetier: reading the body: %w", err)
	}
	if int64(len(peeked)) > limit {
		return nil, &BodyTooLargeError{Limit: limit}
	}
	return bytes.Clone(peeked), nil
}
