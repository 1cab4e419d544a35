package httplimit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	ratetier "github.com/ratetier/ratetier/core"
)

// Refusal is the answer to a request that may not go on, ready to be sent. It is an
// error, for frameworks whose handlers return one; its text names no user.
type Refusal struct {
	// Decision is why.
	Decision ratetier.Decision

	// Status is the HTTP status, 400 to 599. What Respond sets instead must be 200 to
	// 599; anything else is not used.
	Status int

	// ContentType is the media type of Body.
	ContentType string

	// Body is one JSON value.
	Body []byte
}

// newRefusal renders the decision as JSON, or as problem+json.
func newRefusal(decision ratetier.Decision, problem bool) *Refusal {
	r := &Refusal{Decision: decision, Status: decision.Status}
	if problem {
		r.ContentType, r.Body = "application/problem+json", r.problem()
	} else {
		r.ContentType, r.Body = "application/json", r.plain()
	}
	return r
}

// plain is the body of a refusal by default.
func (r *Refusal) plain() []byte {
	d := &r.Decision
	switch {
	case d.Outcome == ratetier.OutcomeLimited:
		seconds, _ := r.retryAfter()
		return encode(struct {
			Error      string `json:"error"`
			Tier       string `json:"tier"`
			RetryAfter int64  `json:"retry_after"`
		}{"rate limit exceeded", d.Tier, seconds})
	case d.Outcome == ratetier.OutcomeCostTooHigh:
		return encode(struct {
			Error string `json:"error"`
			Tier  string `json:"tier"`
			Cost  int64  `json:"cost"`
			Limit int64  `json:"limit"`
		}{"request cost exceeds tier limit", d.Tier, d.Cost, d.Limit})
	case r.Status == http.StatusServiceUnavailable:
		return encode(errorBody{"service unavailable"})
	default:
		return encode(errorBody{statusText(r.Status)})
	}
}

type errorBody struct {
	Error string `json:"error"`
}

// retryAfter returns the seconds to wait, if waiting helps.
func (r *Refusal) retryAfter() (int64, bool) {
	if r.Decision.Outcome != ratetier.OutcomeLimited {
		return 0, false
	}
	return max(1, seconds(r.Decision.RetryAfter)), true
}

// Error says what was refused and why.
func (r *Refusal) Error() string {
	return fmt.Sprintf("ratetier: refused with %d: %v (tier %q)", r.Status, r.Decision.Outcome, r.Decision.Tier)
}

// Unwrap returns what went wrong, if that is why.
func (r *Refusal) Unwrap() error { return r.Decision.Err }

// Write sends the refusal. The answer to a HEAD request has no body.
func (r *Refusal) Write(w http.ResponseWriter, request *http.Request) {
	header := w.Header()
	header.Set("Content-Type", r.ContentType)
	header.Set("Content-Length", strconv.Itoa(len(r.Body)))
	w.WriteHeader(r.Status)
	if request.Method != http.MethodHead {
		_, _ = w.Write(r.Body) // the client has gone: nothing is left to do
	}
}

// encode renders a body made of strings and integers, which cannot fail.
func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return text
}

// statusText returns the status in words, also of one that has no name.
func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "refused"
}
