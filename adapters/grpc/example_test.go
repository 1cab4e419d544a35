package ratetiergrpc_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example() {
	clock := clocktest.New(time.Unix(0, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
		Clock:       clock, // for this example; leave it out
	}))
	plans := map[string]string{"key_ana": "free", "key_bea": "pro"}
	config := ratetiergrpc.Config{
		Identify: func(ctx context.Context) (ratetier.Identity, error) {
			for _, key := range metadata.ValueFromIncomingContext(ctx, "x-api-key") {
				if plan, ok := plans[key]; ok {
					return ratetier.Identity{User: key, Tier: plan}, nil
				}
			}
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		},
		MethodCosts: ratetiergrpc.MethodCosts{"/test.Text/Unary": 5},
		MessageCost: func(context.Context, string, any) int64 { return 20 },
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(ratetiergrpc.UnaryServerInterceptor(limiter, config)),
		grpc.ChainStreamInterceptor(ratetiergrpc.StreamServerInterceptor(limiter, config)),
	)
	server.RegisterService(&description, service{}) // as generated code does
	conn := connect(server)
	defer server.Stop()
	defer conn.Close()

	call := func(key, method string) {
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", key)
		a := send(ctx, conn, method, "hello", "hello")
		fmt.Printf("%-7s %-21s %v %q remaining %q\n", key, method, status.Code(a.err), status.Convert(a.err).Message(),
			a.trailer["x-ratelimit-remaining"])
	}
	call("key_ana", "/test.Text/Unary")
	call("key_ana", "/test.Text/Unary")
	call("key_ana", "/test.Text/Unary")
	clock.Advance(30 * time.Second)
	call("key_ana", "/test.Text/Unary")
	call("key_bea", "/test.Text/BidiStream")
	call("nobody", "/test.Text/Unary")
	// Output:
	// key_ana /test.Text/Unary      OK "" remaining ["5"]
	// key_ana /test.Text/Unary      OK "" remaining ["0"]
	// key_ana /test.Text/Unary      ResourceExhausted "rate limit exceeded" remaining ["0"]
	// key_ana /test.Text/Unary      OK "" remaining ["0"]
	// key_bea /test.Text/BidiStream OK "" remaining ["59"]
	// nobody  /test.Text/Unary      Unauthenticated "unauthenticated" remaining []
}

// A handler reads the decision, and settles for what the work really cost.
func Example_settle() {
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerHour(1000)},
		Clock: clocktest.New(time.Unix(0, 0)), // for this example; leave it out
	}))
	handler := func(ctx context.Context, request any) (any, error) {
		admission, _ := ratetier.FromContext(ctx)
		decision := admission.Decision()
		fmt.Println("tier", decision.Tier, "remaining", decision.Remaining)
		_ = admission.Settle(ctx, 120) // a failed store has told the Observer
		return request, nil
	}
	intercept := ratetiergrpc.UnaryServerInterceptor(limiter, ratetiergrpc.Config{
		Identify:    func(context.Context) (ratetier.Identity, error) { return ana, nil },
		MethodCosts: ratetiergrpc.MethodCosts{"/test.Text/Ask": 500}, // an estimate
	})
	_, err := intercept(context.Background(), wrapperspb.String("hello"), &grpc.UnaryServerInfo{FullMethod: "/test.Text/Ask"}, handler)
	if err != nil {
		fmt.Println(err)
	}
	left := limiter.Peek(context.Background(), ana)
	fmt.Println("remaining after settling", left.Remaining)
	// Output:
	// tier free remaining 500
	// remaining after settling 880
}

// connect serves on a port of this machine and returns a connection to it.
func connect(server *grpc.Server) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { _ = server.Serve(listener) }() // ends with Stop
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return conn
}
