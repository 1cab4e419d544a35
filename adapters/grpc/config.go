package ratetiergrpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// DefaultMaxPushback is the longest wait that a client's own retries are told, where
// nothing else is said.
const DefaultMaxPushback = time.Second

// Config is the one option struct of both interceptors. Identify is required; every
// other zero value is the safe choice.
//
// All functions are called on the goroutine of the call, with its context, at most once
// for each call and in the order Skip, Identify, ClientAddr, Cost; MessageCost is called
// for each message. They must be safe for concurrent use. A fullMethod is
// "/package.Service/Method".
type Config struct {
	// Identify says who is asking and on which plan, from the metadata or the peer. It
	// returns [ratetier.ErrNoIdentity] where the call does not say, as without a key or
	// with one that does not exist, and any other error where the look-up failed: the
	// two follow policies of their own. Required.
	Identify func(ctx context.Context) (ratetier.Identity, error)

	// MethodCosts says what methods cost that do not cost 1.
	MethodCosts MethodCosts

	// Cost says what each call costs. It replaces MethodCosts: set one of the two. A
	// negative cost is refused with Internal.
	Cost func(ctx context.Context, fullMethod string) int64

	// MessageCost says what each message costs that a client sends on a stream of its
	// own, on top of what the call cost when it was opened. A message that does not fit
	// is not delivered: the handler's Recv returns a [*Refusal], which it hands on. By
	// default messages cost nothing. The single request of other calls has no cost but
	// theirs.
	MessageCost func(ctx context.Context, fullMethod string, message any) int64

	// Skip tells which calls the limiter is to leave alone, besides health checks and
	// reflection. By default none.
	Skip func(ctx context.Context, fullMethod string) bool

	// ChargeHealth makes health checks and server reflection count like other calls. By
	// default they pass uncharged, since an orchestrator restarts a server whose health
	// checks are refused.
	ChargeHealth bool

	// ClientAddr returns the address of the client, by which callers without an identity
	// are told apart: host or host:port. By default it is the peer of the connection, and
	// no metadata can change that.
	ClientAddr func(ctx context.Context) string

	// IPv6Prefix is how many leading bits of an IPv6 address tell callers apart, 1 to
	// 128. By default [ratetier.DefaultIPv6Prefix].
	IPv6Prefix int

	// MaxPushback is the longest wait after which a client with a retry policy is to try
	// again by itself. Where a refused call would have to wait longer, such clients are
	// told not to retry. By default [DefaultMaxPushback]; gRPC has room for 24 days.
	MaxPushback time.Duration
}

// MethodCosts says what calls cost, by the full name of the method, which generated code
// has as a constant:
//
//	ratetiergrpc.MethodCosts{pb.Reports_Export_FullMethodName: 5}
//
// A method that is not listed costs 1; 0 is free. On a stream it is the cost of opening
// it.
type MethodCosts map[string]int64

// exempt are the services of health checks and reflection.
var exempt = []string{
	"/grpc.health.v1.Health/",
	"/grpc.reflection.v1.ServerReflection/",
	"/grpc.reflection.v1alpha.ServerReflection/",
}

func isExempt(fullMethod string) bool {
	if !strings.HasPrefix(fullMethod, "/grpc.") {
		return false
	}
	return slices.ContainsFunc(exempt, func(service string) bool { return strings.HasPrefix(fullMethod, service) })
}

// validate returns everything that is wrong with the config.
func (c *Config) validate() error {
	var errs []error
	if c.Identify == nil {
		errs = append(errs, errors.New("no Identify: it must say who is asking; return ratetier.ErrNoIdentity to limit by client address"))
	}
	if c.Cost != nil && len(c.MethodCosts) > 0 {
		errs = append(errs, errors.New("both Cost and MethodCosts: set one of the two"))
	}
	if c.IPv6Prefix < 0 || c.IPv6Prefix > 128 {
		errs = append(errs, fmt.Errorf("IPv6Prefix %d: must be 1 to 128, or 0 for %d", c.IPv6Prefix, ratetier.DefaultIPv6Prefix))
	}
	if c.MaxPushback < 0 {
		errs = append(errs, fmt.Errorf("MaxPushback %v: must be positive, or 0 for %v", c.MaxPushback, DefaultMaxPushback))
	}
	for _, method := range slices.Sorted(maps.Keys(c.MethodCosts)) {
		if cost := c.MethodCosts[method]; cost < 0 {
			errs = append(errs, fmt.Errorf("MethodCosts: %q: %d: a cost must be at least 0", method, cost))
		}
		if !isFullMethod(method) {
			errs = append(errs, fmt.Errorf(`MethodCosts: %q: write "/package.Service/Method"`, method))
		}
		if !c.ChargeHealth && isExempt(method) {
			errs = append(errs, fmt.Errorf("MethodCosts: %q: costs nothing unless ChargeHealth is set", method))
		}
	}
	return errors.Join(errs...)
}

func isFullMethod(name string) bool {
	service, method, ok := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	return ok && name[0] == '/' && service != "" && method != "" && !strings.Contains(method, "/") &&
		!strings.ContainsAny(name, "*{} \t\r\n")
}
