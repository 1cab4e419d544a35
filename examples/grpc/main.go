// An API with plans on gRPC. The key in x-api-key decides the plan, and each method has
// its cost.
//
//	go run ./examples/grpc
//	go run ./examples/grpc -call Data -key key_ana
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// plans says who has which plan. In a real service this is a database.
var plans = map[string]string{
	"key_ana": "free",
	"key_bea": "pro",
	"key_eva": "gold", // a plan that the limiter does not know
}

func identify(ctx context.Context) (ratetier.Identity, error) {
	keys := metadata.ValueFromIncomingContext(ctx, "x-api-key")
	if len(keys) != 1 || plans[keys[0]] == "" {
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	}
	return ratetier.Identity{User: keys[0], Tier: plans[keys[0]]}, nil
}

// observe reports what the limiter had to make do with.
func observe(event ratetier.Event) {
	if event.Defaulted == ratetier.OutcomeUnknownTier {
		fmt.Fprintf(os.Stderr, "unknown tier %q for %s\n", event.Identity.Tier, event.Identity.User)
	}
}

func newServer(store ratetier.Store) (*grpc.Server, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
		Observer:    observe,
	})
	if err != nil {
		return nil, err
	}
	config := ratetiergrpc.Config{
		Identify: identify,
		MethodCosts: ratetiergrpc.MethodCosts{
			"/example.v1.Service/Report": 5,
			"/example.v1.Service/Backup": 50, // more than the free plan ever allows at once
		},
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, config)),
		grpc.ChainStreamInterceptor(ratetiergrpc.StreamServerInterceptor(limiter, config)),
	)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "example.v1.Service",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{method("Data", "data"), method("Report", "report"), method("Backup", "backup")},
	}, nil)
	return server, nil
}

// method is what protoc would generate, and a handler that answers with a text.
func method(name, text string) grpc.MethodDesc {
	return grpc.MethodDesc{MethodName: name, Handler: func(server any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		request := new(emptypb.Empty)
		if err := decode(request); err != nil {
			return nil, err
		}
		info := &grpc.UnaryServerInfo{Server: server, FullMethod: "/example.v1.Service/" + name}
		return intercept(ctx, request, info, func(context.Context, any) (any, error) {
			return wrapperspb.String(text), nil
		})
	}}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen, or whom to call")
	redis := flag.String("redis", "", "URL of a Redis to keep the limits in (default: this process)")
	name := flag.String("call", "", "be the client, and call this method: Data, Report or Backup")
	key := flag.String("key", "", "the client's x-api-key")
	flag.Parse()
	var err error
	if *name == "" {
		err = run(*addr, *redis, os.Stdout)
	} else {
		err = dial(*addr, *key, *name, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newStore returns where the limits are kept: in Redis if there is a URL, or else in
// this process.
func newStore(redisURL string) (ratetier.Store, error) {
	if redisURL == "" {
		return memorystore.New(), nil
	}
	return redisstore.Open(redisURL, redisstore.Config{})
}

func run(addr, redis string, out io.Writer) error {
	store, err := newStore(redis)
	if err != nil {
		return err
	}
	server, err := newServer(store)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `listening on %[1]s

go run ./examples/grpc -addr %[1]s -call Data -key key_ana     # free: 10 a minute
go run ./examples/grpc -addr %[1]s -call Report -key key_bea   # pro: 100 a minute, a report costs 5
go run ./examples/grpc -addr %[1]s -call Backup -key key_eva   # an unknown plan gets the free one
go run ./examples/grpc -addr %[1]s -call Data                  # no key
`, listener.Addr())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, server.GracefulStop)
	return server.Serve(listener)
}

// dial is the client.
func dial(addr, key, name string, out io.Writer) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return call(context.Background(), conn, key, name, out)
}

// call calls a method and prints what it sees: status, trailer and details. A refusal is an
// answer; it is an error if there is none.
func call(ctx context.Context, conn *grpc.ClientConn, key, name string, out io.Writer) error {
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", key)
	}
	var trailer metadata.MD
	var server peer.Peer
	reply := new(wrapperspb.StringValue)
	err := conn.Invoke(ctx, "/example.v1.Service/"+name, new(emptypb.Empty), reply, grpc.Trailer(&trailer), grpc.Peer(&server))
	if err != nil && server.Addr == nil {
		return fmt.Errorf("no answer, is the server running at %s? %s", conn.Target(), status.Convert(err).Message())
	}
	if err == nil {
		fmt.Fprintln(out, "OK:", reply.GetValue())
	} else {
		fmt.Fprintf(out, "%v: %s\n", status.Code(err), status.Convert(err).Message())
	}
	for _, key := range []string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "grpc-retry-pushback-ms"} {
		for _, value := range trailer.Get(key) {
			fmt.Fprintf(out, "%s: %s\n", key, value)
		}
	}
	for _, detail := range status.Convert(err).Details() {
		switch detail := detail.(type) {
		case *errdetails.RetryInfo:
			fmt.Fprintln(out, "retry after", detail.GetRetryDelay().AsDuration())
		case *errdetails.QuotaFailure:
			for _, violation := range detail.GetViolations() {
				fmt.Fprintf(out, "%s: %s\n", violation.GetSubject(), violation.GetDescription())
			}
		}
	}
	return nil
}
