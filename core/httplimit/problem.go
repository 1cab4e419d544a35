package httplimit

import (
	"fmt"
	"net/http"

	ratetier "github.com/ratetier/ratetier/core"
)

// quotaExceeded is the problem type of draft-ietf-httpapi-ratelimit-headers.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem is the body of a refusal as a problem detail of RFC 9457. A refusal for
// which no type is registered has about:blank, whose title is the status in words.
func (r *Refusal) problem() []byte {
	d := &r.Decision
	details := struct {
		Type       string   `json:"type"`
		Title      string   `json:"title"`
		Status     int      `json:"status"`
		Detail     string   `json:"detail,omitempty"`
		Violated   []string `json:"violated-policies,omitempty"`
		RetryAfter int64    `json:"retry_after,omitempty"`
	}{Type: "about:blank", Title: statusText(r.Status), Status: r.Status}
	switch d.Outcome {
	case ratetier.OutcomeLimited:
		details.Type = quotaExceeded
		details.Title = http.StatusText(http.StatusTooManyRequests)
		details.Violated = []string{policyName(d, d.Rate())}
		details.RetryAfter, _ = r.retryAfter()
		details.Detail = fmt.Sprintf("The quota of tier %q allows this request in %d s.", d.Tier, details.RetryAfter)
	case ratetier.OutcomeCostTooHigh:
		details.Detail = fmt.Sprintf("The request costs %d, and tier %q never allows more than %d at once.", d.Cost, d.Tier, d.Limit)
	default:
	}
	return encode(details)
}
