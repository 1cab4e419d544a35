package ratetiergrpc_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func TestInterceptorsThatCannotWorkPanicWhenTheyAreBuilt(t *testing.T) {
	limiter := newLimiter(full)
	wrong := ratetiergrpc.Config{
		Cost:        func(context.Context, string) int64 { return 1 },
		IPv6Prefix:  129,
		MaxPushback: -1,
		MethodCosts: ratetiergrpc.MethodCosts{"/a.B/C": -5, "/grpc.health.v1.Health/Check": 2},
	}
	for _, step := range []struct {
		name    string
		limiter *ratetier.Limiter
		config  ratetiergrpc.Config
		want    []string
	}{
		{"everything", nil, wrong, []string{
			"the limiter is nil: build it with ratetier.New",
			"no Identify: it must say who is asking; return ratetier.ErrNoIdentity to limit by client address",
			"both Cost and MethodCosts: set one of the two",
			"IPv6Prefix 129: must be 1 to 128, or 0 for 64",
			"MaxPushback -1ns: must be positive, or 0 for 1s",
			`MethodCosts: "/a.B/C": -5: a cost must be at least 0`,
			`MethodCosts: "/grpc.health.v1.Health/Check": costs nothing unless ChargeHealth is set`,
		}},
		{"prefix", limiter, ratetiergrpc.Config{Identify: identify, IPv6Prefix: -1}, []string{"IPv6Prefix -1: must be 1 to 128, or 0 for 64"}},
	} {
		want := "ratetier: interceptor: " + strings.Join(step.want, "\n")
		for name, build := range builders(step.limiter, step.config) {
			if got := fmt.Sprint(panicOf(build)); got != want {
				t.Errorf("%s, %s: panicked with\n%s\nwant\n%s", name, step.name, got, want)
			}
		}
	}
}

func TestMethodsAreNamedInFull(t *testing.T) {
	for method, ok := range map[string]bool{
		"/a.B/C":        true,
		"/B/C":          true,
		"a.B/C":         false,
		"/a.B":          false,
		"/a.B/":         false,
		"//C":           false,
		"":              false,
		"/":             false,
		"C":             false,
		"/a.B/C/D":      false,
		"/a.B/*":        false,
		"POST /a.B/C":   false,
		"/a.B/C ":       false,
		"/reports/{id}": false,
	} {
		config := ratetiergrpc.Config{Identify: identify, MethodCosts: ratetiergrpc.MethodCosts{method: 1}}
		for name, build := range builders(newLimiter(full), config) {
			if p := panicOf(build); (p == nil) != ok {
				t.Errorf("%s, %q: panicked with %v", name, method, p)
			}
		}
	}
}

func TestHealthMayBeGivenACostWhereItIsCharged(t *testing.T) {
	config := ratetiergrpc.Config{Identify: identify, ChargeHealth: true, MethodCosts: ratetiergrpc.MethodCosts{"/grpc.health.v1.Health/Check": 2}}
	for name, build := range builders(newLimiter(full), config) {
		if p := panicOf(build); p != nil {
			t.Errorf("%s: panicked with %v", name, p)
		}
	}
}

func builders(limiter *ratetier.Limiter, config ratetiergrpc.Config) map[string]func() {
	return map[string]func(){
		"unary":  func() { ratetiergrpc.UnaryServerInterceptor(limiter, config) },
		"stream": func() { ratetiergrpc.StreamServerInterceptor(limiter, config) },
	}
}

func panicOf(build func()) (p any) {
	defer func() { p = recover() }()
	build()
	return nil
}

// Callers that nobody knows, one after the other, with 2 calls for each address.
func TestCallersWithoutIdentityAreToldApartByAddress(t *testing.T) {
	for _, step := range []struct {
		name      string
		prefix    int
		addresses string
		allowed   string
	}{
		{"ports", 0, "192.0.2.1:1 192.0.2.1:2 192.0.2.1:3 192.0.2.1 192.0.2.2:1", "yynny"},
		{"a /64", 0, "[2001:db8::1]:1 2001:db8::2 2001:db8::ffff 2001:db8:0:1::1", "yyny"},
		{"a /128", 128, "2001:db8::1 2001:db8::2 2001:db8::1 2001:db8::1", "yyyn"},
		{"4 in 6, zones", 0, "192.0.2.1 ::ffff:192.0.2.1 [::ffff:192.0.2.1]:9 fe80::1%eth0 fe80::1%eth1 fe80::1", "yynyyn"},
		{"no address", 0, "@ bufconn /run/socket 192.0.2.1", "yyny"},
	} {
		var at string
		limiter := newLimiter(2)
		config := ratetiergrpc.Config{
			Identify:   func(context.Context) (ratetier.Identity, error) { return ratetier.Identity{}, nil },
			IPv6Prefix: step.prefix,
			ClientAddr: func(context.Context) string { return at },
		}
		var allowed strings.Builder
		for at = range strings.FieldsSeq(step.addresses) {
			if _, err := callDirectly(t.Context(), limiter, config); err == nil {
				allowed.WriteString("y")
			} else {
				allowed.WriteString("n")
			}
		}
		if got := allowed.String(); got != step.allowed {
			t.Errorf("%s: %s\ngot  %s\nwant %s", step.name, step.addresses, got, step.allowed)
		}
	}
}

// By default the address is that of the connection, over which any number of connections
// share a bucket, and which no metadata changes.
func TestTheAddressIsThePeerOfTheConnection(t *testing.T) {
	var mu sync.Mutex
	var users []string
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(10)},
		DefaultTier: "free",
		Observer: func(event ratetier.Event) {
			mu.Lock()
			defer mu.Unlock()
			users = append(users, event.Identity.User)
		},
	}))
	server := grpc.NewServer(limited(limiter, ratetiergrpc.Config{Identify: identify})...)
	server.RegisterService(&description, service{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()
	for range 2 {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range methods {
			if a := send(metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "203.0.113.9"), conn, method, "hello"); a.err != nil {
				t.Error(a.err)
			}
		}
		_ = conn.Close()
	}
	server.Stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if len(users) != 2*len(methods) {
		t.Errorf("%d calls from %q", len(users), users)
	}
	for _, user := range users {
		if user != "127.0.0.1" {
			t.Errorf("a call from %q", user)
		}
	}
}

func TestObserversAreToldTheFullMethod(t *testing.T) {
	var mu sync.Mutex
	var routes []string
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(full)},
		Observer: func(event ratetier.Event) {
			mu.Lock()
			defer mu.Unlock()
			routes = append(routes, event.Route)
		},
	}))
	const listed, madeUp = "/test.Other/Listed", "/test.Other/MadeUp"
	conn := dial(t, service{}, append(limited(limiter, ratetiergrpc.Config{
		Identify:    identify,
		MethodCosts: ratetiergrpc.MethodCosts{listed: 2},
		MessageCost: byLength,
	}), grpc.UnknownServiceHandler(serveEcho)))

	for _, step := range []struct {
		method string
		routes string // the call's, then its message's
	}{
		{unary, unary},
		{serverStream, serverStream},
		{bidiStream, bidiStream + " " + bidiStream},
		{listed, listed + " " + listed},
		{madeUp, " "}, // by the client: it is not to become a metric
	} {
		routes = nil
		if a := send(asAna(t), conn, step.method, "hello"); a.err != nil {
			t.Errorf("%s: %v", step.method, a.err)
		}
		if got := strings.Join(routes, " "); got != step.routes {
			t.Errorf("%s: told %q, want %q", step.method, got, step.routes)
		}
	}
}
