package ratetiergrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionalphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
)

func TestCallsCostWhatTheirMethodCosts(t *testing.T) {
	for _, config := range []struct {
		name   string
		config ratetiergrpc.Config
		costs  map[string]int64
	}{
		{"nothing said", ratetiergrpc.Config{}, map[string]int64{unary: 1, clientStream: 1, serverStream: 1, bidiStream: 1}},
		{"MethodCosts", ratetiergrpc.Config{MethodCosts: ratetiergrpc.MethodCosts{unary: 5, clientStream: 6, serverStream: 0}},
			map[string]int64{unary: 5, clientStream: 6, serverStream: 0, bidiStream: 1}},
		{"Cost", ratetiergrpc.Config{Cost: func(_ context.Context, method string) int64 { return int64(len(method)) }},
			map[string]int64{unary: 16, clientStream: 23, serverStream: 23, bidiStream: 21}},
	} {
		t.Run(config.name, func(t *testing.T) {
			limiter := newLimiter(full)
			config.config.Identify = identify
			conn := dial(t, service{}, limited(limiter, config.config))
			for _, method := range methods {
				before := used(t, limiter)
				a := send(asAna(t), conn, method, "hello")
				if cost := used(t, limiter) - before; a.err != nil || len(a.texts) != 1 || a.texts[0] != "hello" || cost != config.costs[method] {
					t.Errorf("%s: answer %q, %v, cost %d, want hello, %d", method, a.texts, a.err, cost, config.costs[method])
				}
			}
		})
	}
}

func TestCostsAreThoseOfWhenTheInterceptorWasBuilt(t *testing.T) {
	limiter, costs := newLimiter(full), ratetiergrpc.MethodCosts{unary: 5}
	conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{Identify: identify, MethodCosts: costs}))
	costs[unary] = 7
	send(asAna(t), conn, unary, "hello")
	if got := used(t, limiter); got != 5 {
		t.Errorf("cost %d, want 5", got)
	}
}

// Health checks and reflection, unary and streaming, of all versions.
func TestHealthAndReflectionAreExemptUnlessCharged(t *testing.T) {
	calls := []struct {
		name string
		send func(ctx context.Context, conn *grpc.ClientConn) error
	}{
		{"health check", func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
			return err
		}},
		{"health list", func(ctx context.Context, conn *grpc.ClientConn) error {
			_, err := healthpb.NewHealthClient(conn).List(ctx, &healthpb.HealthListRequest{})
			return err
		}},
		{"health watch", func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}},
		{"reflection", func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err == nil {
				_ = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
				_, err = stream.Recv()
			}
			return err
		}},
		{"reflection, alpha", func(ctx context.Context, conn *grpc.ClientConn) error {
			stream, err := reflectionalphapb.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
			if err == nil {
				err = stream.SendMsg(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}) // the same on the wire
			}
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}},
	}
	for _, charge := range []bool{false, true} {
		limiter := newLimiter(full)
		server := grpc.NewServer(limited(limiter, ratetiergrpc.Config{
			Identify:     identify,
			ChargeHealth: charge,
			MessageCost:  func(context.Context, string, any) int64 { return 1 },
		})...)
		healthpb.RegisterHealthServer(server, health.NewServer())
		reflection.Register(server)
		conn := dialServer(t, server)
		for _, call := range calls {
			ctx, cancel := context.WithCancel(asAna(t))
			before := used(t, limiter)
			err := call.send(ctx, conn)
			cost := used(t, limiter) - before
			cancel()
			if err != nil || cost > 0 != charge {
				t.Errorf("%s, charged %t: cost %d, %v", call.name, charge, cost, err)
			}
		}
	}
}

func TestOnlyTheVeryServicesAreExempt(t *testing.T) {
	const method = "/grpc.health.v1.HealthCare/Check"
	limiter := newLimiter(full)
	conn := dial(t, service{}, append(limited(limiter, ratetiergrpc.Config{Identify: identify}), grpc.UnknownServiceHandler(serveEcho)))
	send(asAna(t), conn, method, "hello")
	if got := used(t, limiter); got != 1 {
		t.Errorf("%s: cost %d, want 1", method, got)
	}
}

func serveEcho(_ any, stream grpc.ServerStream) error { return echo(stream) }

func TestMethodsThatDoNotExistCostNothing(t *testing.T) {
	limiter := newLimiter(full)
	conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{Identify: identify}))
	for _, method := range []string{"/test.Text/Nothing", "/test.Nothing/Unary", unary + "/"} {
		if a := send(asAna(t), conn, method, "hello"); a.code() != codes.Unimplemented || used(t, limiter) != 0 {
			t.Errorf("%s: %v, used %d", method, a.err, used(t, limiter))
		}
	}
}

func TestSkippedCallsAreLeftAlone(t *testing.T) {
	limiter := newLimiter(full)
	conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{
		Identify: func(context.Context) (ratetier.Identity, error) { panic("asked who a skipped call is from") },
		Skip:     func(_ context.Context, method string) bool { return method != "" },
	}))
	for _, method := range methods {
		if a := send(asAna(t), conn, method, "hello"); a.err != nil || len(a.trailer) > 0 {
			t.Errorf("%s: %v, trailer %v", method, a.err, a.trailer)
		}
	}
	if got := used(t, limiter); got != 0 {
		t.Errorf("used %d, want 0", got)
	}
}

// What each message of a stream costs, by its length.
func byLength(_ context.Context, _ string, message any) int64 {
	return int64(len(message.(*wrapperspb.StringValue).GetValue()))
}

func TestMessagesOfClientsAreChargedOnTopOfTheCall(t *testing.T) {
	for _, step := range []struct {
		method  string
		texts   []string
		replies int
		code    codes.Code
		cost    int64
		left    string
	}{
		{clientStream, []string{"a", "bb", "ccc"}, 3, codes.OK, 1 + 6, "3"},
		{bidiStream, []string{"a", "bb", "ccc"}, 3, codes.OK, 1 + 6, "3"},
		{bidiStream, []string{""}, 1, codes.OK, 1, "9"},                                           // costs nothing
		{bidiStream, []string{"a", "bb", "1234567", "d"}, 2, codes.ResourceExhausted, 1 + 3, "6"}, // the third does not fit
		{bidiStream, []string{"12345678901"}, 0, codes.FailedPrecondition, 1, ""},                 // never fits
		{serverStream, []string{"ccc"}, 1, codes.OK, 1, "9"},                                      // a single request is paid for by the call
		{unary, []string{"ccc"}, 1, codes.OK, 1, "9"},
	} {
		limiter := newLimiter(10)
		conn := dial(t, service{}, limited(limiter, ratetiergrpc.Config{Identify: identify, MessageCost: byLength}))
		a := send(asAna(t), conn, step.method, step.texts...)
		if cost := used(t, limiter); a.code() != step.code || len(a.texts) != step.replies || cost != step.cost || a.of(t, "x-ratelimit-remaining") != step.left {
			t.Errorf("%s %q: %d replies, %v, cost %d, left %q, want %d, %v, %d, %q", step.method, step.texts,
				len(a.texts), a.err, cost, a.of(t, "x-ratelimit-remaining"), step.replies, step.code, step.cost, step.left)
		}
	}
}

func TestAHandlerMayGoOnAfterARefusedMessage(t *testing.T) {
	limiter := newLimiter(10)
	conn := dial(t, service{stream: func(stream grpc.ServerStream) error {
		for stream.RecvMsg(new(wrapperspb.StringValue)) == nil {
		}
		return stream.SendMsg(wrapperspb.String("that was too much"))
	}}, limited(limiter, ratetiergrpc.Config{Identify: identify, MessageCost: byLength}))
	a := send(asAna(t), conn, bidiStream, "12345", "12345")
	if a.err != nil || len(a.texts) != 1 || a.of(t, "x-ratelimit-remaining") != "4" || a.of(t, "grpc-retry-pushback-ms") != "" {
		t.Errorf("got %q, %v, trailer %v", a.texts, a.err, a.trailer)
	}
}

func TestNegativeCostsAreAnInternalErrorAndChargeNothing(t *testing.T) {
	negative := func(context.Context, string) int64 { return -1 }
	negativeMessage := func(context.Context, string, any) int64 { return -1 }
	for _, step := range []struct {
		name   string
		config ratetiergrpc.Config
		method string
		used   int64
	}{
		{"call", ratetiergrpc.Config{Cost: negative}, unary, 0},
		{"stream", ratetiergrpc.Config{Cost: negative}, bidiStream, 0},
		{"message", ratetiergrpc.Config{MessageCost: negativeMessage}, bidiStream, 1},
	} {
		limiter := newLimiter(full)
		step.config.Identify = identify
		conn := dial(t, service{}, limited(limiter, step.config))
		a := send(asAna(t), conn, step.method, "hello")
		if got := used(t, limiter); a.code() != codes.Internal || got != step.used {
			t.Errorf("%s: %v, used %d, want %v, %d", step.name, a.err, got, codes.Internal, step.used)
		}
	}
}
