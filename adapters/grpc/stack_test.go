package ratetiergrpc_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// Two limiters, one inside the other: what each is charged, and what the client is told.
func TestACallPassesBothOfTwoLimitersOrIsChargedByNone(t *testing.T) {
	for _, step := range []struct {
		name         string
		outer, inner int64 // what is left before
		cost         int64
		code         codes.Code
		charged      int64 // by each
		limit        string
		remaining    string
	}{
		{"both allow, the outer has less", 20, 100, 5, codes.OK, 5, "20", "15"},
		{"both allow, the inner has less", 100, 20, 5, codes.OK, 5, "20", "15"},
		{"the inner refuses", 100, 4, 5, codes.FailedPrecondition, 0, "", ""},
		{"the outer refuses", 4, 100, 5, codes.FailedPrecondition, 0, "", ""},
	} {
		for _, method := range methods {
			t.Run(step.name+method, func(t *testing.T) {
				outer, inner := newLimiter(step.outer), newLimiter(step.inner)
				config := ratetiergrpc.Config{Identify: identify, MethodCosts: ratetiergrpc.MethodCosts{method: step.cost}}
				conn := dial(t, service{}, stacked(limited(outer, config), limited(inner, config)))
				a := send(asAna(t), conn, method, "hello")
				if a.code() != step.code || used(t, outer) != step.charged || used(t, inner) != step.charged {
					t.Errorf("%v, charged %d and %d, want %v, %d", a.err, used(t, outer), used(t, inner), step.code, step.charged)
				}
				if a.of(t, "x-ratelimit-limit") != step.limit || a.of(t, "x-ratelimit-remaining") != step.remaining {
					t.Errorf("trailer %v, want %s of %s", a.trailer, step.remaining, step.limit)
				}
			})
		}
	}
}

func TestARefusedCallIsToldTheFiguresOfWhoRefused(t *testing.T) {
	for _, method := range methods {
		outer, inner := newLimiter(3), newLimiter(10)
		inner.Take(t.Context(), ana, 8)
		config := ratetiergrpc.Config{Identify: identify, MethodCosts: ratetiergrpc.MethodCosts{method: 3}}
		conn := dial(t, service{}, stacked(limited(outer, config), limited(inner, config)))
		a := send(asAna(t), conn, method, "hello")
		if a.code() != codes.ResourceExhausted || a.of(t, "x-ratelimit-limit") != "10" || a.of(t, "x-ratelimit-remaining") != "2" ||
			a.of(t, "grpc-retry-pushback-ms") != "-1" || used(t, outer) != 0 {
			t.Errorf("%s: %v, trailer %v, the outer limiter charged %d", method, a.err, a.trailer, used(t, outer))
		}
	}
}

func TestTheSameLimiterTwiceChargesTheHigherCostOnce(t *testing.T) {
	for _, step := range []struct{ outer, inner, want int64 }{{2, 5, 5}, {5, 2, 5}, {5, 5, 5}, {0, 1, 1}} {
		for _, method := range methods {
			limiter := newLimiter(full)
			config := func(cost int64) ratetiergrpc.Config {
				return ratetiergrpc.Config{Identify: identify, MethodCosts: ratetiergrpc.MethodCosts{method: cost}}
			}
			conn := dial(t, service{}, stacked(limited(limiter, config(step.outer)), limited(limiter, config(step.inner))))
			a := send(asAna(t), conn, method, "hello")
			if got := used(t, limiter); a.err != nil || got != step.want || a.of(t, "x-ratelimit-limit") != "100" {
				t.Errorf("%s, cost %d outside and %d inside: %v, charged %d, want %d", method, step.outer, step.inner, a.err, got, step.want)
			}
		}
	}
}

// lengths has a message cost its length times something.
func lengths(times int64) func(context.Context, string, any) int64 {
	return func(ctx context.Context, method string, message any) int64 {
		return times * byLength(ctx, method, message)
	}
}

func TestAMessagePassesBothOfTwoLimitersOrIsChargedByNone(t *testing.T) {
	for _, step := range []struct {
		name         string
		outer, inner int64 // what a full bucket holds; the call itself costs 1
		code         codes.Code
		charged      int64 // by each
		limit        string
		remaining    string
	}{
		{"both allow, the outer has less", 20, 100, codes.OK, 11, "20", "9"},
		{"both allow, the inner has less", 100, 20, codes.OK, 11, "20", "9"},
		{"the inner refuses the second", 100, 8, codes.ResourceExhausted, 6, "8", "2"},
		{"the outer refuses the second", 8, 100, codes.ResourceExhausted, 6, "8", "2"},
	} {
		t.Run(step.name, func(t *testing.T) {
			outer, inner := newLimiter(step.outer), newLimiter(step.inner)
			config := ratetiergrpc.Config{Identify: identify, MessageCost: byLength}
			conn := dial(t, service{}, stacked(limited(outer, config), limited(inner, config)))
			a := send(asAna(t), conn, bidiStream, "12345", "12345")
			if a.code() != step.code || used(t, outer) != step.charged || used(t, inner) != step.charged {
				t.Errorf("%v, charged %d and %d, want %v, %d", a.err, used(t, outer), used(t, inner), step.code, step.charged)
			}
			if a.of(t, "x-ratelimit-limit") != step.limit || a.of(t, "x-ratelimit-remaining") != step.remaining {
				t.Errorf("trailer %v, want %s of %s", a.trailer, step.remaining, step.limit)
			}
		})
	}
}

func TestAMessageThatPassesTheSameLimiterTwiceIsChargedTheHigherCostOnce(t *testing.T) {
	for _, step := range []struct{ outer, inner, want int64 }{{1, 2, 21}, {2, 1, 21}, {2, 2, 21}, {0, 1, 11}, {1, 0, 11}} {
		limiter := newLimiter(full)
		conn := dial(t, service{}, stacked(
			limited(limiter, ratetiergrpc.Config{Identify: identify, MessageCost: lengths(step.outer)}),
			limited(limiter, ratetiergrpc.Config{Identify: identify, MessageCost: lengths(step.inner)})))
		a := send(asAna(t), conn, bidiStream, "12345", "12345")
		if got := used(t, limiter); a.err != nil || got != step.want {
			t.Errorf("%d outside and %d inside: %v, charged %d, want %d", step.outer, step.inner, a.err, got, step.want)
		}
	}
}

// What the outer limiter did not charge for the very message, it does not get back.
func TestOnlyWhatARefusedMessageWasChargedIsGivenBack(t *testing.T) {
	emptyCosts9 := func(_ context.Context, _ string, message any) int64 {
		if message.(*wrapperspb.StringValue).GetValue() == "" {
			return 9
		}
		return 0
	}
	for _, step := range []struct {
		name   string
		outer  ratetier.Quota
		inner  func(context.Context, string, any) int64 // of 9 cells, and 1 for the call
		texts  []string
		charge int64 // by the outer limiter
	}{
		{"free of charge there", ratetier.PerMinute(full), emptyCosts9, []string{"12345", "", ""}, 6},
		{"let through in shadow mode", ratetier.PerMinute(6).Shadow(), lengths(2), []string{"1234", "12"}, 5},
	} {
		outer := ratetier.Must(ratetier.New(ratetier.Config{
			Store: memorystore.New(),
			Tiers: ratetier.Tiers{"free": step.outer},
			Clock: clocktest.New(start),
		}))
		inner := newLimiter(10)
		conn := dial(t, service{}, stacked(
			limited(outer, ratetiergrpc.Config{Identify: identify, MessageCost: byLength}),
			limited(inner, ratetiergrpc.Config{Identify: identify, MessageCost: step.inner})))
		a := send(asAna(t), conn, bidiStream, step.texts...)
		if a.code() != codes.ResourceExhausted || used(t, outer) != step.charge {
			t.Errorf("%s: %v, charged %d, want %d", step.name, a.err, used(t, outer), step.charge)
		}
	}
}

// The client goes between the two limiters.
func TestWhatAMessageWasChargedIsGivenBackAlsoAfterTheClientHasGone(t *testing.T) {
	outer, inner := newLimiter(full), newLimiter(full)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	identify := func(context.Context) (ratetier.Identity, error) { return ana, nil }
	info := &grpc.StreamServerInfo{FullMethod: bidiStream, IsClientStream: true}
	around := ratetiergrpc.StreamServerInterceptor(outer, ratetiergrpc.Config{
		Identify:    identify,
		MessageCost: func(context.Context, string, any) int64 { return 5 },
	})
	within := ratetiergrpc.StreamServerInterceptor(inner, ratetiergrpc.Config{
		Identify:    identify,
		MessageCost: func(context.Context, string, any) int64 { cancel(); return 5 },
	})
	err := around(service{}, incomingStream{ctx: ctx}, info, func(server any, stream grpc.ServerStream) error {
		return within(server, stream, info, func(_ any, stream grpc.ServerStream) error { return stream.RecvMsg(nil) })
	})
	if code(err) != codes.Canceled || used(t, outer) != 1 || used(t, inner) != 1 {
		t.Errorf("%v, charged %d and %d, want the call alone", err, used(t, outer), used(t, inner))
	}
}

func TestAnInterceptorInBetweenHidesNothing(t *testing.T) {
	limiter := newLimiter(full)
	config := ratetiergrpc.Config{Identify: identify, MessageCost: byLength}
	between := []grpc.ServerOption{grpc.ChainStreamInterceptor(
		func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(server, struct{ grpc.ServerStream }{stream})
		})}
	conn := dial(t, service{}, stacked(stacked(limited(limiter, config), between), limited(limiter, config)))
	if a := send(asAna(t), conn, bidiStream, "12345"); a.err != nil || used(t, limiter) != 6 {
		t.Errorf("%v, charged %d, want 6", a.err, used(t, limiter))
	}
}

func TestHandlersFindTheAdmissionAndSettle(t *testing.T) {
	settle := func(ctx context.Context) error {
		admission, ok := ratetier.FromContext(ctx)
		if !ok || admission.Decision().Remaining != 90 {
			t.Errorf("admission %t: %v", ok, admission)
			return nil
		}
		return admission.Settle(ctx, 4)
	}
	for _, method := range methods {
		limiter := newLimiter(full)
		conn := dial(t, service{
			unary:  func(ctx context.Context, text string) (string, error) { return text, settle(ctx) },
			stream: func(stream grpc.ServerStream) error { return settle(stream.Context()) },
		}, limited(limiter, ratetiergrpc.Config{Identify: identify, MethodCosts: ratetiergrpc.MethodCosts{method: 10}}))
		if a := send(asAna(t), conn, method, "hello"); a.err != nil || used(t, limiter) != 4 {
			t.Errorf("%s: %v, used %d, want 4", method, a.err, used(t, limiter))
		}
	}
}

func TestOfConcurrentCallsAsManyGetThroughAsThereAreCells(t *testing.T) {
	const cells, calls = 10, 100
	for _, method := range methods {
		conn := dial(t, service{}, limited(newLimiter(cells), ratetiergrpc.Config{Identify: identify}))
		var allowed, refused atomic.Int64
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				switch a := send(asAna(t), conn, method, "hello"); a.code() {
				case codes.OK:
					allowed.Add(1)
				case codes.ResourceExhausted:
					refused.Add(1)
				default:
					t.Errorf("%s: %v", method, a.err)
				}
			})
		}
		wg.Wait()
		if allowed.Load() != cells || refused.Load() != calls-cells {
			t.Errorf("%s: %d allowed, %d refused, want %d, %d", method, allowed.Load(), refused.Load(), cells, calls-cells)
		}
	}
}

// Calls and messages compete for the same cells.
func TestConcurrentCallsNeverGetMoreThanThereIs(t *testing.T) {
	const clients = 40
	limiter, other := newLimiter(clients), newLimiter(10*clients)
	config := ratetiergrpc.Config{Identify: identify, MessageCost: byLength}
	conn := dial(t, service{}, stacked(limited(other, config), limited(limiter, config)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := map[string]int64{}
	for i := range clients {
		for _, method := range []string{unary, bidiStream} {
			wg.Go(func() {
				texts := []string{"1", "1"}
				if i%2 == 0 {
					texts = []string{"22"}
				}
				a := send(asAna(t), conn, method, texts...)
				mu.Lock()
				defer mu.Unlock()
				if method == unary && a.err == nil {
					passed["calls"]++
				}
				if method == bidiStream && (a.err == nil || len(a.texts) > 0) {
					passed["calls"]++
				}
				if method == bidiStream {
					for _, text := range a.texts {
						passed["cells of messages"] += int64(len(text))
					}
				}
			})
		}
	}
	wg.Wait()
	if got := used(t, limiter); got != clients || passed["calls"]+passed["cells of messages"] > clients {
		t.Errorf("used %d of %d, passed %v", got, clients, passed)
	}
	if used(t, limiter) != used(t, other) {
		t.Errorf("one limiter charged %d, the other %d", used(t, limiter), used(t, other))
	}
}

// A handler may read in one goroutine and return in another.
func TestAStreamMayEndWhileAMessageIsReceived(t *testing.T) {
	limiter := newLimiter(full)
	var readers sync.WaitGroup
	conn := dial(t, service{stream: func(stream grpc.ServerStream) error {
		received := make(chan error, full)
		readers.Go(func() {
			for {
				err := stream.RecvMsg(new(wrapperspb.StringValue))
				received <- err
				if err != nil {
					return
				}
			}
		})
		return <-received
	}}, limited(limiter, ratetiergrpc.Config{Identify: identify, MessageCost: byLength}))
	if a := send(asAna(t), conn, bidiStream, "1", "1", "1", "1", "1"); a.err != nil {
		t.Error(a.err)
	}
	readers.Wait()
}
