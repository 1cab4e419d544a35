package ratetiergrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// broken is a store that is down for one tier.
type broken struct{ ratetier.Store }

func (b broken) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	if request.Key.Tier == "down" {
		return errors.New("dial tcp 10.1.2.3:6379: refused, asking for secret-user")
	}
	return b.Store.Apply(ctx, request, result)
}

// plans is a table with something of everything.
var plans = ratetier.Tiers{
	"free":      ratetier.PerMinute(10),
	"two":       ratetier.PerSecond(5).And(ratetier.PerMinute(10)),
	"shadow":    ratetier.PerMinute(1).Shadow(),
	"down":      ratetier.PerMinute(10),
	"blocked":   ratetier.Blocked(),
	"unlimited": ratetier.Unlimited(),
	"n\xffn":    ratetier.PerMinute(1),
}

// What clients see of calls of one user, the last after others of the same cost.
func TestAnswers(t *testing.T) {
	const user = "secret-user"
	for _, step := range []struct {
		name      string
		tier      string
		cost      int64
		calls     int
		code      codes.Code
		text      string
		remaining string // and with it limit and reset
		pushback  string
		details   string
	}{
		{"allowed", "free", 1, 1, codes.OK, "", "9", "", ""},
		{"the last allowed", "free", 1, 10, codes.OK, "", "0", "", ""},
		{"limited", "free", 1, 11, codes.ResourceExhausted, "rate limit exceeded", "0", "-1",
			"retry after 6s; tier:free 10/min 10: a cost of 1, with 0 of 10 left"},
		{"limited with some left", "free", 4, 3, codes.ResourceExhausted, "rate limit exceeded", "2", "-1",
			"retry after 12s; tier:free 10/min 10: a cost of 4, with 2 of 10 left"},
		{"limited for a moment", "two", 3, 2, codes.ResourceExhausted, "rate limit exceeded", "2", "200",
			"retry after 200ms; tier:two 5/s 5: a cost of 3, with 2 of 5 left"},
		{"a tier that is not UTF-8", "n\xffn", 1, 2, codes.ResourceExhausted, "rate limit exceeded", "0", "-1",
			"retry after 1m0s; tier:n\uFFFDn 1/min 1: a cost of 1, with 0 of 1 left"},
		{"cost too high", "free", 50, 1, codes.FailedPrecondition, "request cost exceeds tier limit", "", "-1",
			"tier:free  10: a cost of 50, where the tier never allows more than 10 at once"},
		{"shadow", "shadow", 1, 2, codes.OK, "", "0", "", ""},
		{"unlimited", "unlimited", 1, 2, codes.OK, "", "", "", ""},
		{"blocked", "blocked", 1, 1, codes.PermissionDenied, "permission denied", "", "", ""},
		{"unknown tier", "gold", 1, 1, codes.ResourceExhausted, "refused", "", "-1", ""},
		{"identify failed", "broken", 1, 1, codes.Unavailable, "service unavailable", "", "", ""},
		{"store failed", "down", 1, 1, codes.Unavailable, "service unavailable", "", "", ""},
		{"missing identity", "", 1, 1, codes.Unauthenticated, "unauthenticated", "", "", ""},
	} {
		for _, method := range methods {
			t.Run(step.name+method, func(t *testing.T) {
				limiter := ratetier.Must(ratetier.New(ratetier.Config{
					Store:         broken{memorystore.New()},
					Tiers:         plans,
					OnMissing:     ratetier.Deny(http.StatusUnauthorized),
					OnUnknownTier: ratetier.Deny(http.StatusTooManyRequests),
					OnStoreFailed: ratetier.Deny(http.StatusServiceUnavailable),
					Clock:         clocktest.New(start),
				}))
				conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{
					Identify: func(ctx context.Context) (ratetier.Identity, error) {
						switch step.tier {
						case "":
							return ratetier.Identity{}, ratetier.ErrNoIdentity
						case "broken":
							return ratetier.Identity{}, errDatabase
						}
						return ratetier.Identity{User: user, Tier: step.tier}, nil
					},
					MethodCosts: ratetiergrpc.MethodCosts{method: step.cost},
				}))
				var a answer
				for range step.calls {
					a = send(t.Context(), conn, method, "hello")
				}
				if s := status.Convert(a.err); s.Code() != step.code || s.Message() != step.text || details(s) != step.details {
					t.Errorf("got %v %q with %q\nwant %v %q with %q", s.Code(), s.Message(), details(s), step.code, step.text, step.details)
				}
				if a.of(t, "x-ratelimit-remaining") != step.remaining || a.of(t, "grpc-retry-pushback-ms") != step.pushback {
					t.Errorf("trailer %v, want remaining %q, pushback %q", a.trailer, step.remaining, step.pushback)
				}
				if hasFigures := step.remaining != ""; (a.of(t, "x-ratelimit-limit") != "") != hasFigures || (a.of(t, "x-ratelimit-reset") != "") != hasFigures {
					t.Errorf("trailer %v", a.trailer)
				}
				if sent := fmt.Sprint(a.header, a.trailer, a.err, status.Convert(a.err).Proto()); strings.Contains(sent, user) || strings.Contains(sent, "10.1.2.3") {
					t.Errorf("told the client what is none of its business: %s", sent)
				}
			})
		}
	}
}

// details describes the details of a status.
func details(s *status.Status) string {
	var all []string
	for _, detail := range s.Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			all = append(all, fmt.Sprintf("retry after %v", detail.GetRetryDelay().AsDuration()))
		case *errdetails.QuotaFailure:
			for _, v := range detail.GetViolations() {
				all = append(all, fmt.Sprintf("%s %s %d: %s", v.GetSubject(), v.GetQuotaId(), v.GetQuotaValue(), v.GetDescription()))
			}
		default:
			all = append(all, fmt.Sprint(detail))
		}
	}
	return strings.Join(all, "; ")
}

func TestResetIsInUnixSecondsRoundedUp(t *testing.T) {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerSecond(10)},
		Clock: clocktest.New(start.Add(900 * time.Millisecond)),
	}))
	conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{Identify: identify}))
	for _, want := range []string{"1000001", "1000002"} { // full again at the second, then 100 ms after it
		a := send(asAna(t), conn, unary, "hello")
		if got := a.of(t, "x-ratelimit-reset"); got != want {
			t.Errorf("reset %s, want %s", got, want)
		}
	}
}

// Nothing goes into the header, which would keep clients from retrying.
func TestFiguresAreInTheTrailerAlone(t *testing.T) {
	conn := dial(t, service{}, limited(newLimiter(1), ratetiergrpc.Config{Identify: identify}))
	for _, method := range methods[:2] { // allowed, then limited
		a := send(asAna(t), conn, method, "hello")
		if len(a.header["x-ratelimit-limit"]) != 0 || a.of(t, "x-ratelimit-limit") != "1" {
			t.Errorf("%s: header %v, trailer %v", method, a.header, a.trailer)
		}
	}
}

func TestStatusesOfPoliciesBecomeCodes(t *testing.T) {
	for status, want := range map[int]codes.Code{
		400: codes.InvalidArgument,
		401: codes.Unauthenticated,
		402: codes.PermissionDenied,
		403: codes.PermissionDenied,
		404: codes.NotFound,
		409: codes.Aborted,
		429: codes.ResourceExhausted,
		451: codes.PermissionDenied,
		499: codes.PermissionDenied,
		500: codes.Internal,
		501: codes.Unimplemented,
		502: codes.Unavailable,
		503: codes.Unavailable,
		504: codes.Unavailable,
		599: codes.Internal,
	} {
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store:     memorystore.New(),
			Tiers:     plans,
			OnMissing: ratetier.Deny(status),
		}))
		_, err := callDirectly(t.Context(), limiter, ratetiergrpc.Config{Identify: identify})
		if got := code(err); got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}

// callDirectly calls a method without a connection.
func callDirectly(ctx context.Context, limiter *ratetier.Limiter, config ratetiergrpc.Config) (reply any, err error) {
	return ratetiergrpc.UnaryServerInterceptor(limiter, config)(ctx, "request", &grpc.UnaryServerInfo{FullMethod: unary},
		func(context.Context, any) (any, error) { return "reply", nil })
}

func code(err error) codes.Code { return status.Code(err) }

func TestAContextThatIsDoneEndsTheCallWithItsOwnCode(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithDeadline(context.Background(), start)
	defer cancel()
	for _, ctx := range []context.Context{canceled, expired} {
		want := status.FromContextError(ctx.Err())
		for _, failure := range []error{nil, errors.New("the connection is closed")} {
			limiter := newLimiter(full)
			_, err := callDirectly(ctx, limiter, ratetiergrpc.Config{
				Identify: func(context.Context) (ratetier.Identity, error) { return ana, failure },
			})
			if got := status.Convert(err); got.Code() != want.Code() || got.Message() != want.Message() || !errors.Is(err, ctx.Err()) || used(t, limiter) != 0 {
				t.Errorf("%v, look-up %v: %v, used %d, want %v", ctx.Err(), failure, got, used(t, limiter), want)
			}
		}
	}
}

// The client goes while the handler waits for a message.
func TestASettlementGoesThroughAfterTheClientHasGone(t *testing.T) {
	limiter, settled := newLimiter(full), make(chan error)
	conn := dial(t, service{stream: func(stream grpc.ServerStream) error {
		if err := stream.SendMsg(wrapperspb.String("ready")); err != nil {
			return err
		}
		err := stream.RecvMsg(new(wrapperspb.StringValue))
		admission, _ := ratetier.FromContext(stream.Context())
		if stream.Context().Err() == nil {
			settled <- errors.New("the client is still there")
		}
		settled <- admission.Settle(stream.Context(), 7)
		return err
	}}, limited(limiter, ratetiergrpc.Config{Identify: identify, MessageCost: byLength}))
	ctx, cancel := context.WithCancel(asAna(t))
	stream, err := conn.NewStream(ctx, &description.Streams[2], bidiStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-settled; err != nil {
		t.Error(err)
	}
	if got := used(t, limiter); got != 7 {
		t.Errorf("used %d, want 7", got)
	}
}

// What stands around the limiter sees why a call was refused.
func TestARefusalIsAnErrorThatSaysWhy(t *testing.T) {
	var mu sync.Mutex
	var seen []error
	see := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, err)
	}
	outside := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			reply, err := handler(ctx, request)
			see(err)
			return reply, err
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			err := handler(server, stream)
			see(err)
			return err
		}),
	}
	conn := dial(t, service{}, stacked(outside, limited(newLimiter(10), ratetiergrpc.Config{
		Identify:    identify,
		MethodCosts: ratetiergrpc.MethodCosts{unary: 11},
		MessageCost: byLength,
	})))
	send(asAna(t), conn, unary, "hello")
	send(asAna(t), conn, bidiStream, "1234567890")
	send(as(t.Context(), "secret-user", "broken"), conn, unary, "hello")

	mu.Lock()
	defer mu.Unlock()
	want := []struct {
		outcome ratetier.Outcome
		text    string
	}{
		{ratetier.OutcomeCostTooHigh, `ratetier: refused with FailedPrecondition: cost_too_high (tier "free")`},
		{ratetier.OutcomeLimited, `receiving: ratetier: refused with ResourceExhausted: limited (tier "free")`},
		{ratetier.OutcomeIdentifyFailed, `ratetier: refused with Unavailable: identify_failed (tier "")`},
	}
	if len(seen) != len(want) {
		t.Fatalf("saw %v", seen)
	}
	for i, err := range seen {
		var refusal *ratetiergrpc.Refusal
		if !errors.As(err, &refusal) || refusal.Decision.Outcome != want[i].outcome || err.Error() != want[i].text {
			t.Errorf("saw %v, want %s", err, want[i].text)
		}
	}
	if !errors.Is(seen[2], errDatabase) {
		t.Errorf("%v does not wrap what went wrong", seen[2])
	}
}

// A handler that takes more than there is answers as the limiter does.
func TestHandlersRefuseToo(t *testing.T) {
	limiter := newLimiter(10)
	conn := dial(t, service{unary: func(ctx context.Context, _ string) (string, error) {
		admission, _ := ratetier.FromContext(ctx)
		if d := admission.Take(ctx, 10); !d.Allowed {
			return "", &ratetiergrpc.Refusal{Decision: d, MaxPushback: time.Minute}
		}
		return "", io.ErrUnexpectedEOF
	}}, limited(limiter, ratetiergrpc.Config{Identify: identify}))
	a := send(asAna(t), conn, unary, "hello")
	if a.code() != codes.ResourceExhausted || a.of(t, "grpc-retry-pushback-ms") != "6000" || a.of(t, "x-ratelimit-remaining") != "9" {
		t.Errorf("%v, trailer %v", a.err, a.trailer)
	}
}

func TestNoDecisionMakesARefusalOK(t *testing.T) {
	for _, outcome := range []ratetier.Outcome{0, ratetier.OutcomeAllowed, ratetier.OutcomeUnlimited} {
		refusal := &ratetiergrpc.Refusal{Decision: ratetier.Decision{Outcome: outcome, Allowed: true}}
		if got := refusal.GRPCStatus().Code(); got != codes.Internal {
			t.Errorf("%v: %v, want %v", outcome, got, codes.Internal)
		}
	}
}
