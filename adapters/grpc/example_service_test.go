package ratetiergrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// The methods of the service under test, one of each kind.
const (
	unary        = "/test.Text/Unary"
	clientStream = "/test.Text/ClientStream"
	serverStream = "/test.Text/ServerStream"
	bidiStream   = "/test.Text/BidiStream"
)

var methods = []string{unary, clientStream, serverStream, bidiStream}

// service answers with what it is sent, unless it is told to do something else.
type service struct {
	unary  func(ctx context.Context, text string) (string, error)
	stream func(stream grpc.ServerStream) error
}

func (s service) call(ctx context.Context, text string) (string, error) {
	if s.unary == nil {
		return text, nil
	}
	return s.unary(ctx, text)
}

func (s service) serve(stream grpc.ServerStream) error {
	if s.stream == nil {
		return echo(stream)
	}
	return s.stream(stream)
}

// echo sends back what it receives, one message for each.
func echo(stream grpc.ServerStream) error {
	for {
		message := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("receiving: %w", err) // as handlers do
		}
		if err := stream.SendMsg(message); err != nil {
			return err
		}
	}
}

// description is what protoc would generate.
var description = grpc.ServiceDesc{
	ServiceName: "test.Text",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		request := new(wrapperspb.StringValue)
		if err := decode(request); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, request any) (any, error) {
			text, err := server.(service).call(ctx, request.(*wrapperspb.StringValue).GetValue())
			return wrapperspb.String(text), err
		}
		if interceptor == nil {
			return handler(ctx, request)
		}
		return interceptor(ctx, request, &grpc.UnaryServerInfo{Server: server, FullMethod: unary}, handler)
	}}},
	Streams: []grpc.StreamDesc{
		{StreamName: "ClientStream", ClientStreams: true, Handler: serveStream},
		{StreamName: "ServerStream", ServerStreams: true, Handler: serveStream},
		{StreamName: "BidiStream", ClientStreams: true, ServerStreams: true, Handler: serveStream},
	},
}

func serveStream(server any, stream grpc.ServerStream) error { return server.(service).serve(stream) }

// dial returns a connection to a server with the service. What the test registers
// beside it, it registers through register.
func dial(t testing.TB, s service, serverOptions []grpc.ServerOption, dialOptions ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(serverOptions...)
	server.RegisterService(&description, s)
	return dialServer(t, server, dialOptions...)
}

func dialServer(t testing.TB, server *grpc.Server, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	options = append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///test", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// limited returns the options of a server with one limiter, the same for all kinds of
// calls.
func limited(limiter *ratetier.Limiter, config ratetiergrpc.Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, config)),
		grpc.ChainStreamInterceptor(ratetiergrpc.StreamServerInterceptor(limiter, config)),
	}
}

// stacked returns the options of a server with two limiters, the outer one first.
func stacked(outer, inner []grpc.ServerOption) []grpc.ServerOption {
	return slices.Concat(outer, inner)
}

// answer is what the client sees of a call.
type answer struct {
	texts   []string
	err     error
	header  md
	trailer md
}

// md is metadata that package fmt prints with its values, which metadata.MD hides.
type md map[string][]string

// send calls a method of any kind with messages.
func send(ctx context.Context, conn *grpc.ClientConn, method string, texts ...string) (a answer) {
	options := []grpc.CallOption{grpc.Header((*metadata.MD)(&a.header)), grpc.Trailer((*metadata.MD)(&a.trailer))}
	if method == unary {
		reply := new(wrapperspb.StringValue)
		a.err = conn.Invoke(ctx, method, wrapperspb.String(texts[0]), reply, options...)
		a.texts = []string{reply.GetValue()}
		return a
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, options...)
	if err != nil {
		a.err = err
		return a
	}
	for _, text := range texts {
		if stream.SendMsg(wrapperspb.String(text)) != nil {
			break // the server has ended the call, and RecvMsg says how
		}
	}
	_ = stream.CloseSend()
	for {
		reply := new(wrapperspb.StringValue)
		if err := stream.RecvMsg(reply); err != nil {
			if !errors.Is(err, io.EOF) {
				a.err = err
			}
			return a
		}
		a.texts = append(a.texts, reply.GetValue())
	}
}

// of returns the trailer's value of a key, "" if there is none.
func (a *answer) of(t testing.TB, key string) string {
	t.Helper()
	switch values := a.trailer[key]; len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	default:
		t.Errorf("%s is there %d times", key, len(values))
		return ""
	}
}

func (a *answer) code() codes.Code { return status.Code(a.err) }

// as returns a context with which calls are those of a user on a plan.
func as(ctx context.Context, user, tier string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-user", user, "x-tier", tier)
}

var errDatabase = errors.New("the database does not know of secret-user")

// identify takes the metadata at its word.
func identify(ctx context.Context) (ratetier.Identity, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	user, tier := md.Get("x-user"), md.Get("x-tier")
	switch {
	case len(user) == 0:
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	case tier[0] == "broken":
		return ratetier.Identity{}, errDatabase
	default:
		return ratetier.Identity{User: user[0], Tier: tier[0]}, nil
	}
}

// full is what the free tier of these tests allows at once.
const full = 100

var ana = ratetier.Identity{User: "ana", Tier: "free"}

func asAna(t testing.TB) context.Context {
	t.Helper()
	return as(t.Context(), ana.User, ana.Tier)
}

// start is when the clock of these tests stands still.
var start = time.Unix(1_000_000, 0)

func newLimiter(cells int64) *ratetier.Limiter {
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(cells)},
		DefaultTier: "free",
		Clock:       clocktest.New(start),
	}))
}

// used returns how much of ana's bucket is used.
func used(t testing.TB, limiter *ratetier.Limiter) int64 {
	t.Helper()
	d := limiter.Peek(t.Context(), ana)
	return d.Limit - d.Remaining
}
