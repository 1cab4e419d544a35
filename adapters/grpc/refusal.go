package ratetiergrpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	ratetier "github.com/ratetier/ratetier/core"
)

// Refusal is the error of a call that may not go on. A handler that has taken a decision
// of its own, with [ratetier.Admission.Take] or Revise, returns one as well:
//
//	if d := admission.Take(ctx, 5); !d.Allowed {
//		return nil, &ratetiergrpc.Refusal{Decision: d}
//	}
//
// Clients see ResourceExhausted with RetryInfo and QuotaFailure if the call was limited.
// If it costs more than the tier ever allows, they see FailedPrecondition with
// QuotaFailure, the code for what is not to be tried again as it is: after
// ResourceExhausted many clients do, which here would never end. A call whose context was
// done ends with Canceled or DeadlineExceeded. Any other refusal has the code that stands
// for the status of the decision: Unauthenticated for 401, PermissionDenied for 403,
// Unavailable for 503 and so on. None names a user.
type Refusal struct {
	// Decision is why.
	Decision ratetier.Decision

	// MaxPushback is that of the [Config].
	MaxPushback time.Duration
}

// Error says what was refused and why.
func (r *Refusal) Error() string {
	return fmt.Sprintf("ratetier: refused with %v: %v (tier %q)", r.code(), r.Decision.Outcome, r.Decision.Tier)
}

// Unwrap returns what went wrong, if that is why.
func (r *Refusal) Unwrap() error { return r.Decision.Err }

// GRPCStatus returns the status that clients see.
func (r *Refusal) GRPCStatus() *status.Status {
	d := &r.Decision
	switch d.Outcome {
	case ratetier.OutcomeLimited:
		return r.status("rate limit exceeded",
			&errdetails.RetryInfo{RetryDelay: durationpb.New(d.RetryAfter)},
			r.quotaFailure(fmt.Sprintf("a cost of %d, with %d of %d left", d.Cost, d.Remaining, d.Limit)))
	case ratetier.OutcomeCostTooHigh:
		return r.status("request cost exceeds tier limit",
			r.quotaFailure(fmt.Sprintf("a cost of %d, where the tier never allows more than %d at once", d.Cost, d.Limit)))
	default:
		return r.status(r.text())
	}
}

func (r *Refusal) status(text string, details ...protoadapt.MessageV1) *status.Status {
	plain := status.New(r.code(), text)
	detailed, err := plain.WithDetails(details...)
	if err != nil { // a detail that cannot be marshaled, which these all can
		return plain
	}
	return detailed
}

// quotaFailure names the tier and the rate with the least left, and no user.
func (r *Refusal) quotaFailure(description string) *errdetails.QuotaFailure {
	violation := &errdetails.QuotaFailure_Violation{
		Subject:     "tier:" + strings.ToValidUTF8(r.Decision.Tier, "\uFFFD"),
		Description: description,
		QuotaValue:  r.Decision.Limit,
	}
	if r.Decision.Measured() {
		violation.QuotaId = r.Decision.Rate().String()
	}
	return &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{violation}}
}

// code returns the code that clients see.
func (r *Refusal) code() codes.Code {
	switch r.Decision.Outcome {
	case ratetier.OutcomeLimited:
		return codes.ResourceExhausted
	case ratetier.OutcomeCostTooHigh:
		return codes.FailedPrecondition
	case ratetier.OutcomeCanceled:
		if errors.Is(r.Decision.Err, context.DeadlineExceeded) {
			return codes.DeadlineExceeded
		}
		return codes.Canceled
	default:
		return codeOf(r.Decision.Status)
	}
}

// codeOf returns the code that stands for the HTTP status of a policy, which is the
// google.rpc.Code that is documented to map to it.
func codeOf(httpStatus int) codes.Code {
	switch httpStatus {
	case http.StatusBadRequest:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusNotFound:
		return codes.NotFound
	case http.StatusConflict:
		return codes.Aborted
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusNotImplemented:
		return codes.Unimplemented
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return codes.Unavailable
	}
	if httpStatus >= 400 && httpStatus < 500 {
		return codes.PermissionDenied
	}
	return codes.Internal
}

// text is the message of a refusal that has nothing more to say than its code.
func (r *Refusal) text() string {
	switch r.code() {
	case codes.Canceled:
		return "context canceled"
	case codes.DeadlineExceeded:
		return "context deadline exceeded"
	case codes.Unauthenticated:
		return "unauthenticated"
	case codes.PermissionDenied:
		return "permission denied"
	case codes.Unavailable:
		return "service unavailable"
	case codes.Internal:
		return "internal error"
	default:
		return "refused"
	}
}
