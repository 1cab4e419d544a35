package httplimit

import (
	"errors"
	"fmt"

	ratetier "github.com/ratetier/ratetier/core"
)

// Config is the one option struct of every adapter; C is the framework's context.
// Identify is required; every other zero value is the safe choice.
//
// All functions are called on the goroutine of the request, at most once for each
// request and in the order Skip, Identify, ClientAddr, Cost, Respond. They must be
// safe for concurrent use and not keep the context, which frameworks use again.
type Config[C any] struct {
	// Identify says who is asking and on which plan. It returns
	// [ratetier.ErrNoIdentity] where the request does not say, as without a key or
	// with one that does not exist, and any other error where the look-up failed:
	// the two follow policies of their own. Required.
	Identify func(c C) (ratetier.Identity, error)

	// RouteCosts says what routes cost that do not cost 1.
	RouteCosts RouteCosts

	// Cost says what each request costs, given its context and the pattern of its
	// route, which is "" where none matched. It replaces RouteCosts: set one of the
	// two. A negative cost is refused with 500.
	Cost func(c C, route string) int64

	// Skip tells which requests the limiter is to leave alone, such as health
	// checks. By default none.
	Skip func(c C) bool

	// ClientAddr returns the address of the client, by which callers without an
	// identity are told apart: host or host:port. By default it is the peer of the
	// connection, and no header can change that. Behind a proxy, plug in the
	// framework's own answer, with its trusted proxies set.
	ClientAddr func(c C) string

	// IPv6Prefix is how many leading bits of an IPv6 address tell callers apart, 1
	// to 128. By default [ratetier.DefaultIPv6Prefix].
	IPv6Prefix int

	// Headers says which rate-limit headers answers carry. By default [XRateLimit].
	Headers Headers

	// Problem makes refusals application/problem+json, as in RFC 9457, with the
	// problem types of draft-ietf-httpapi-ratelimit-headers.
	Problem bool

	// Respond may change the status, content type and body of a refusal before it
	// is sent.
	Respond func(c C, refusal *Refusal)

	// ChargePreflight makes CORS preflights count like other requests. By default
	// they pass uncharged, since a browser sends them by itself and does not show a
	// refused one to the page.
	ChargePreflight bool
}

// validate returns everything that is wrong with the config.
func (c *Config[C]) validate() error {
	var errs []error
	if c.Identify == nil {
		errs = append(errs, errors.New("no Identify: it must say who is asking; return ratetier.ErrNoIdentity to limit by client address"))
	}
	if c.Cost != nil && len(c.RouteCosts) > 0 {
		errs = append(errs, errors.New("both Cost and RouteCosts: set one of the two"))
	}
	if c.IPv6Prefix < 0 || c.IPv6Prefix > 128 {
		errs = append(errs, fmt.Errorf("IPv6Prefix %d: must be 1 to 128, or 0 for %d", c.IPv6Prefix, ratetier.DefaultIPv6Prefix))
	}
	return errors.Join(append(errs, c.Headers.validate())...)
}
