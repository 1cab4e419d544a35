package ratetiergrpc

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	ratetier "github.com/ratetier/ratetier/core"
)

const (
	keyLimit     = "x-ratelimit-limit"
	keyRemaining = "x-ratelimit-remaining"
	keyReset     = "x-ratelimit-reset"

	// keyPushback is defined by gRFC A6: after how many milliseconds a client with a
	// retry policy is to try again, or -1 if it is not to.
	keyPushback = "grpc-retry-pushback-ms"
)

// figures returns the figures of a decision that has some. They share one array, as each
// allocation is felt by every call.
func figures(d *ratetier.Decision) metadata.MD {
	limit, remaining, reset := d.Figures()
	values := [...]string{limit, remaining, reset}
	return metadata.MD{keyLimit: values[0:1:1], keyRemaining: values[1:2:2], keyReset: values[2:3:3]}
}

// trailer returns the figures of the refusal, and what a client's retries are to do.
func (r *Refusal) trailer() metadata.MD {
	md := metadata.MD{}
	if r.Decision.Measured() {
		md = figures(&r.Decision)
	}
	if r.code() == codes.ResourceExhausted || r.Decision.Outcome == ratetier.OutcomeCostTooHigh {
		md[keyPushback] = []string{strconv.FormatInt(r.pushback(), 10)}
	}
	return md
}

// maxPushback is the longest wait that there is a number for: gRFC A6 gives it 32 bits.
const maxPushback = math.MaxInt32 * time.Millisecond

// pushback returns how many milliseconds the client is to wait, rounded up so that it
// then gets through, or -1 if it is not to retry.
func (r *Refusal) pushback() int64 {
	longest := r.MaxPushback
	if longest == 0 {
		longest = DefaultMaxPushback
	}
	if r.Decision.Outcome != ratetier.OutcomeLimited || r.Decision.RetryAfter > min(longest, maxPushback) {
		return -1
	}
	return int64((r.Decision.RetryAfter + time.Millisecond - 1) / time.Millisecond)
}
