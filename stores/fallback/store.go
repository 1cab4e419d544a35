// Package fallbackstore keeps limits going while the store that instances share is down.
//
//	limiter, err := ratetier.New(ratetier.Config{
//		Store: fallbackstore.New(redisstore.New(rdb, redisstore.Config{}), fallbackstore.Config{}),
//		...
//	})
//
// # Guarantee
//
// Each request is decided: by the primary, or where that fails, by a local store. During
// an outage a user is admitted in each instance what the local bucket holds and what
// refills, and no request waits for the primary.
//
// # Outages
//
// One begins when the primary has failed [Config.Failures] requests in a row. The primary
// is then left alone, but for a probe every [Config.ProbeEvery], one at a time, which the
// next request starts and nobody waits for. A probe that succeeds ends the outage.
//
// The primary must bound how long it takes, as redisstore does. A request whose own
// context ends is no failure of the primary, whatever the reason: let the primary give
// up before callers do, or an outage is never seen.
//
// # Buckets
//
// Local buckets are full when the first outage begins, whatever was used of the shared
// ones. They are kept when it is over, so that a primary that comes and goes hands out
// no fresh ones. What was decided locally is not told to the primary afterwards.
package fallbackstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// Store is a [ratetier.Store] of two others. It is safe for concurrent use. It keeps no
// goroutine longer than a probe is under way, and needs no closing: the primary is closed
// by who made it.
type Store struct {
	primary    ratetier.Store
	local      ratetier.Store
	probeEvery time.Duration
	breaker    *gobreaker.TwoStepCircuitBreaker[any]
	outages    *outages

	failures atomic.Uint64
	locals   atomic.Uint64
}

var _ ratetier.Store = (*Store)(nil)

// New returns a store that asks the primary, and where that fails a local store. It asks
// neither yet.
//
// It panics, with everything that is wrong, if there is no primary or the config is
// invalid.
func New(primary ratetier.Store, config Config) *Store {
	var primaryErr error
	if isNil(primary) {
		primaryErr = errors.New("no primary: use for example redisstore.New(...)")
	}
	if err := errors.Join(primaryErr, config.validate()); err != nil {
		panic(fmt.Errorf("fallbackstore: %w", err))
	}
	if config.Local == nil {
		config.Local = memorystore.New()
	}
	s := &Store{
		primary:    primary,
		local:      shareOf(config.Local, config.Instances),
		probeEvery: cmp.Or(config.ProbeEvery, DefaultProbeEvery),
		outages:    &outages{observe: config.OnOutage},
	}
	most := cmp.Or(config.Failures, DefaultFailures)
	s.breaker = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		MaxRequests:   1, // probes at a time
		Timeout:       s.probeEvery,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= most },
		IsExcluded:    func(err error) bool { return errors.Is(err, errCallerGone) },
		OnStateChange: s.outages.change,
	})
	return s
}

// isNil tells whether there is no store, or a nil pointer to one.
func isNil(store ratetier.Store) bool {
	v := reflect.ValueOf(store)
	return store == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// Stats is what a store has done since it was made.
type Stats struct {
	// Down tells whether there is an outage.
	Down bool

	// Outages is how many have begun.
	Outages uint64

	// Failures is how many requests the primary failed, probes among them.
	Failures uint64

	// Local is how many requests were decided locally.
	Local uint64
}

// Stats returns what the store has done, counted while it is in use.
func (s *Store) Stats() Stats {
	return Stats{
		Down:     s.outages.down.Load(),
		Outages:  s.outages.begun.Load(),
		Failures: s.failures.Load(),
		Local:    s.locals.Load(),
	}
}

// Apply decides and charges one request. The result is Degraded if it was decided
// locally.
//
// The primary may have charged a request whose answer was lost, though it is decided
// locally: then both have, and nobody is admitted twice.
func (s *Store) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	if s.outages.down.Load() {
		s.probe(request.Now)
		return s.applyLocally(ctx, request, result)
	}
	done, err := s.breaker.Allow()
	if err != nil { // the outage has begun just now
		return s.applyLocally(ctx, request, result)
	}
	if err := s.ask(ctx, done, request, result); err == nil || ctx.Err() != nil {
		return err
	}
	*result = ratetier.Result{}
	return s.applyLocally(ctx, request, result)
}

func (s *Store) applyLocally(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	s.locals.Add(1)
	err := s.local.Apply(ctx, request, result)
	result.Degraded = true
	return err
}

// Reset makes the bucket full, in both stores. The primary is asked during an outage too:
// where it fails, the local bucket is full all the same, and the error says that the
// shared one may not be.
func (s *Store) Reset(ctx context.Context, key ratetier.Key) error {
	return errors.Join(s.local.Reset(ctx, key), s.primary.Reset(ctx, key))
}

// Format keeps keys out of every verb of fmt.
func (s *Store) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, "fallbackstore.Store") }
