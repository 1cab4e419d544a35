package main

// The snippets of adapters/grpc/README.md and docs/grpc.md.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func newLimitedServer() (*grpc.Server, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
	})
	if err != nil {
		return nil, err
	}
	config := ratetiergrpc.Config{
		Identify:    identify,
		MethodCosts: ratetiergrpc.MethodCosts{"/example.v1.Service/Report": 5},
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, config)),
		grpc.ChainStreamInterceptor(ratetiergrpc.StreamServerInterceptor(limiter, config)),
	)
	return server, nil
}

// newLimiter returns one on a clock that stands still.
func newLimiter(quota ratetier.Quota) *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": quota},
		DefaultTier: "free",
		Clock:       clocktest.New(time.Unix(0, 0)),
	}))
}

// upload is a stream of texts from the client.
var upload = grpc.StreamDesc{StreamName: "Upload", ClientStreams: true, ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
	for {
		if err := stream.RecvMsg(new(wrapperspb.StringValue)); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}}

// serve returns a connection to a service with the methods Data and Report, the stream
// Upload, and one that the handler serves: Ask.
func serve(t testing.TB, handler grpc.UnaryHandler, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(options...)
	register(server, handler)
	return connect(t, server)
}

func register(server *grpc.Server, handler grpc.UnaryHandler) {
	ask := method("Ask", "")
	if handler != nil {
		ask.Handler = func(server any, ctx context.Context, _ func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			return intercept(ctx, nil, &grpc.UnaryServerInfo{Server: server, FullMethod: "/example.v1.Service/Ask"}, handler)
		}
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "example.v1.Service",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{method("Data", "data"), method("Report", "report"), ask},
		Streams:     []grpc.StreamDesc{upload},
	}, nil)
}

// asks calls a method with ana's key, and returns what is left and the error.
func asks(ctx context.Context, conn *grpc.ClientConn, name string) (left string, err error) {
	var trailer metadata.MD
	ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", "key_ana")
	err = conn.Invoke(ctx, "/example.v1.Service/"+name, new(emptypb.Empty), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
	return strings.Join(trailer.Get("x-ratelimit-remaining"), ","), err
}

func TestTheServiceOfTheGuideLimits(t *testing.T) {
	server, err := newLimitedServer()
	if err != nil {
		t.Fatal(err)
	}
	register(server, nil)
	if left, err := asks(t.Context(), connect(t, server), "Report"); left != "5" || err != nil {
		t.Errorf("%s left, %v", left, err)
	}
}

func perKilobyte() ratetiergrpc.Config {
	return ratetiergrpc.Config{
		Identify: identify,
		MessageCost: func(_ context.Context, _ string, message any) int64 {
			return 1 + int64(proto.Size(message.(proto.Message)))/1024
		},
	}
}

func TestMessagesAreChargedByTheirSize(t *testing.T) {
	limiter := newLimiter(ratetier.PerMinute(10))
	conn := serve(t, nil, grpc.ChainStreamInterceptor(ratetiergrpc.StreamServerInterceptor(limiter, perKilobyte())))
	var trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-api-key", "key_ana")
	stream, err := conn.NewStream(ctx, &upload, "/example.v1.Service/Upload", grpc.Trailer(&trailer))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 2000} {
		if err := stream.SendMsg(wrapperspb.String(strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if left := strings.Join(trailer.Get("x-ratelimit-remaining"), ","); left != "6" {
		t.Errorf("%s left, want 6: the call, a small message, and one that costs 2", left)
	}
}

// lastHop returns the address that the one proxy in front of the service saw.
func lastHop(ctx context.Context) string {
	hops := strings.Split(strings.Join(metadata.ValueFromIncomingContext(ctx, "x-forwarded-for"), ","), ",")
	return strings.TrimSpace(hops[len(hops)-1])
}

func behindProxy() ratetiergrpc.Config {
	return ratetiergrpc.Config{
		Identify:   identify,
		ClientAddr: lastHop,
	}
}

func TestClientsBehindAProxyAreToldApart(t *testing.T) {
	limiter := newLimiter(ratetier.PerMinute(10))
	conn := serve(t, nil, grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, behindProxy())))
	for _, step := range [][2]string{
		{"192.0.2.7", "9"},
		{"203.0.113.9, 192.0.2.7", "8"}, // the client made up the first
		{"192.0.2.8", "9"},
	} {
		var trailer metadata.MD
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", step[0])
		err := conn.Invoke(ctx, "/example.v1.Service/Data", new(emptypb.Empty), new(wrapperspb.StringValue), grpc.Trailer(&trailer))
		if left := strings.Join(trailer.Get("x-ratelimit-remaining"), ","); left != step[1] || err != nil {
			t.Errorf("for %s: %s left, %v, want %s", step[0], left, err, step[1])
		}
	}
}

// pass stands for the recovery and logging of your choice.
func pass(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return handler(ctx, request)
}

var recovery, logging = pass, pass

func authenticate(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if len(metadata.ValueFromIncomingContext(ctx, "x-api-key")) == 0 {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return handler(ctx, request)
}

func inOrder(limit grpc.UnaryServerInterceptor) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(recovery, logging, authenticate, limit)
}

func TestWhoIsNotAuthenticatedIsNotCharged(t *testing.T) {
	limiter := newLimiter(ratetier.PerMinute(10))
	conn := serve(t, nil, inOrder(ratetiergrpc.UnaryServerInterceptor(limiter, ratetiergrpc.Config{Identify: identify})))
	err := conn.Invoke(t.Context(), "/example.v1.Service/Data", new(emptypb.Empty), new(wrapperspb.StringValue))
	if status.Convert(err).Message() != "who are you?" {
		t.Errorf("%v", err)
	}
	if left, err := asks(t.Context(), conn, "Data"); left != "9" || err != nil {
		t.Errorf("%s left, %v", left, err)
	}
}

// estimate is what an answer is expected to cost at most, and complete is the work.
const estimate = 8

func complete() (any, int64) { return wrapperspb.String("here you are"), 3 }

func ask(ctx context.Context, _ any) (any, error) {
	admission, ok := ratetier.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "no limiter in front of this method")
	}
	if decision := admission.Revise(ctx, estimate); !decision.Allowed {
		return nil, &ratetiergrpc.Refusal{Decision: decision}
	}
	answer, tokens := complete()
	_ = admission.Settle(ctx, tokens) // a failed store has told the Observer
	return answer, nil
}

func TestAHandlerReservesAndSettles(t *testing.T) {
	limiter := newLimiter(ratetier.PerMinute(10))
	conn := serve(t, ask, grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, ratetiergrpc.Config{Identify: identify})))
	ana := ratetier.Identity{User: "key_ana", Tier: "free"}
	if _, err := asks(t.Context(), conn, "Ask"); err != nil || limiter.Peek(t.Context(), ana).Remaining != 7 {
		t.Errorf("%v, %d left", err, limiter.Peek(t.Context(), ana).Remaining)
	}
	if left, err := asks(t.Context(), conn, "Ask"); status.Code(err) != codes.ResourceExhausted || left != "7" {
		t.Errorf("%v, %s left", err, left)
	}
}

const retryPolicy = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
	"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
}}]}`

// waitOf returns how long a refused call has to wait, if waiting helps.
func waitOf(err error) (time.Duration, bool) {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration(), true
		}
	}
	return 0, false
}

func TestAClientWithARetryPolicyGetsThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: memorystore.New(),
			Tiers: ratetier.Tiers{"free": ratetier.Per(1, 700*time.Millisecond)},
		}))
		conn := serveWith(t, limiter, grpc.WithDefaultServiceConfig(retryPolicy))
		began := time.Now()
		for range 3 {
			if _, err := asks(t.Context(), conn, "Data"); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 1400*time.Millisecond {
			t.Errorf("took %v, want twice the wait", took)
		}
	})
}

func serveWith(t testing.TB, limiter *ratetier.Limiter, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, ratetiergrpc.Config{Identify: identify})))
	register(server, nil)
	return connect(t, server, options...)
}

func TestClientThatWaitsGetsThrough(t *testing.T) {
	clock := clocktest.New(time.Unix(0, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1)},
		Clock: clock,
	}))
	conn := serveWith(t, limiter)
	if _, err := asks(t.Context(), conn, "Data"); err != nil {
		t.Fatal(err)
	}
	_, err := asks(t.Context(), conn, "Data")
	wait, ok := waitOf(err)
	if !ok {
		t.Fatalf("the second call got %v", err)
	}
	clock.Advance(wait)
	if _, err := asks(t.Context(), conn, "Data"); err != nil {
		t.Errorf("after %v: %v", wait, err)
	}
}

// An interceptor is a function: to test a limit, no server is needed.
func Example_withoutAServer() {
	limit := ratetiergrpc.UnaryServerInterceptor(newLimiter(ratetier.PerMinute(1)), ratetiergrpc.Config{Identify: identify})
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("x-api-key", "key_ana"))
	for range 2 {
		reply, err := limit(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/example.v1.Service/Data"},
			func(context.Context, any) (any, error) { return "data", nil })
		fmt.Println(reply, status.Code(err))
	}
	// Output:
	// data OK
	// <nil> ResourceExhausted
}
