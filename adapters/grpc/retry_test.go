package ratetiergrpc_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// retrying is a client that would retry after 1 ms.
func retrying(code string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": [%q]
	}}]}`, code))
}

// In these tests time passes as in a bubble of package synctest: at once, for server and
// client alike.
func TestARetryingClientWaitsAsLongAsItHasToAndNoLonger(t *testing.T) {
	for _, step := range []struct {
		quota       ratetier.Quota
		maxPushback time.Duration
		attempts    int64
		code        codes.Code
		took        time.Duration
	}{
		{ratetier.Per(1, 300*time.Millisecond), 0, 2, codes.OK, 300 * time.Millisecond},
		{ratetier.Per(1, 300500*time.Microsecond), 0, 2, codes.OK, 301 * time.Millisecond},
		{ratetier.Per(1, time.Second), 0, 2, codes.OK, time.Second},
		{ratetier.Per(1, time.Second+1), 0, 1, codes.ResourceExhausted, 0},
		{ratetier.Per(1, time.Minute), time.Minute, 2, codes.OK, time.Minute},
		{ratetier.Per(1, 300*time.Millisecond), 299 * time.Millisecond, 1, codes.ResourceExhausted, 0},
		{ratetier.Per(1, math.MaxInt32*time.Millisecond), math.MaxInt64, 2, codes.OK, math.MaxInt32 * time.Millisecond},
		{ratetier.Per(1, math.MaxInt32*time.Millisecond+1), math.MaxInt64, 1, codes.ResourceExhausted, 0},
	} {
		for _, method := range methods {
			t.Run(fmt.Sprint(step.quota, step.maxPushback, method), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var attempts atomic.Int64
					limiter := ratetier.Must(ratetier.New(ratetier.Config{
						Store:    memorystore.New(),
						Tiers:    ratetier.Tiers{"free": step.quota},
						Observer: func(ratetier.Event) { attempts.Add(1) },
					}))
					conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{Identify: identify, MaxPushback: step.maxPushback}), retrying("RESOURCE_EXHAUSTED"))
					if a := send(asAna(t), conn, method, "hello"); a.err != nil {
						t.Fatal(a.err)
					}
					attempts.Store(0)
					began := time.Now()
					a := send(asAna(t), conn, method, "hello")
					if took := time.Since(began); a.code() != step.code || attempts.Load() != step.attempts || took != step.took {
						t.Errorf("%v after %d attempts and %v, want %v, %d, %v", a.err, attempts.Load(), took, step.code, step.attempts, step.took)
					}
				})
			})
		}
	}
}

func TestACostThatNeverFitsIsNotRetried(t *testing.T) {
	for _, method := range methods {
		var attempts atomic.Int64
		conn := dial(t, service{}, limited(newLimiter(10), ratetiergrpc.Config{
			Identify: identify,
			Cost: func(context.Context, string) int64 {
				attempts.Add(1)
				return 11
			},
		}), retrying("FAILED_PRECONDITION"))
		if a := send(asAna(t), conn, method, "hello"); a.code() != codes.FailedPrecondition || attempts.Load() != 1 {
			t.Errorf("%s: %v after %d attempts", method, a.err, attempts.Load())
		}
	}
}

// A limiter that lets a call pass leaves it as retryable as it was.
func TestAnAllowedCallThatFailsIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := newLimiter(full)
		var attempts atomic.Int64
		fail := func() error {
			if attempts.Add(1) < 3 {
				return status.Error(codes.Unavailable, "try again")
			}
			return nil
		}
		conn := dial(t, service{
			unary:  func(context.Context, string) (string, error) { return "", fail() },
			stream: func(grpc.ServerStream) error { return fail() },
		}, limited(limiter, ratetiergrpc.Config{Identify: identify}), retrying("UNAVAILABLE"))
		for _, method := range methods {
			attempts.Store(0)
			before := used(t, limiter)
			a := send(asAna(t), conn, method, "hello")
			if cost := used(t, limiter) - before; a.err != nil || attempts.Load() != 3 || cost != 3 {
				t.Errorf("%s: %v after %d attempts that cost %d, want 3", method, a.err, attempts.Load(), cost)
			}
		}
	})
}

func TestARefusedMessageSaysWhenToTryAgainToo(t *testing.T) {
	conn := dial(t, service{}, limited(newLimiter(10), ratetiergrpc.Config{Identify: identify, MessageCost: byLength, MaxPushback: time.Minute}))
	if a := send(asAna(t), conn, bidiStream, "1234567890"); a.of(t, "grpc-retry-pushback-ms") != "6000" {
		t.Errorf("%v, trailer %v, want pushback 6000", a.err, a.trailer)
	}
}
