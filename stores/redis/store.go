// Package redisstore keeps buckets in Redis, so that all instances of a service share
// one limit.
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	limiter, err := ratetier.New(ratetier.Config{
//		Store: redisstore.New(rdb, redisstore.Config{}),
//		...
//	})
//
// # Exactness
//
// Each check is decided by one script on the server, to the nanosecond, by the clock of
// the server. It is sent once: the client's own retries, which would charge a check
// again whose answer was lost, do not apply to it.
//
// # Failure
//
// A check takes no longer than [Config.Timeout], whatever state Redis and the network
// are in. It then ends with an error, and the limiter follows its policy. What was sent
// may have been charged.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
)

// Store is a [ratetier.Store] in Redis. It is safe for concurrent use. It keeps no
// goroutine longer than a check is under way, and needs no closing: the client is closed
// by who made it.
type Store struct {
	keys    *keys
	denials *denials // nil if none are to be remembered
	lanes   *lanes
	script  *script
	checks  sync.Pool // of *check
	late    error     // for checks without an answer in time
	lates   atomic.Uint64
	close   func() error // nil if the client is not ours
}

var _ ratetier.Store = (*Store)(nil)

// New returns a store that uses the client: one for a single server, Sentinel, Cluster
// or Ring. Nothing is sent yet.
//
// A check is sent by a goroutine of its own, for the caller to be back in time whatever
// the client does. If the client has ContextTimeoutEnabled and nothing can cancel the
// check, its caller sends it, which is quicker where processors are few.
//
// It panics, with everything that is wrong, if there is no client or the config
// contradicts itself.
func New(rdb redis.UniversalClient, config Config) *Store {
	var clientErr error
	if v := reflect.ValueOf(rdb); rdb == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		clientErr = errors.New("no client: use for example redis.NewClient, or Open")
	}
	if err := errors.Join(clientErr, config.validate()); err != nil {
		panic(fmt.Errorf("redisstore: %w", err))
	}
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	config.Prefix = cmp.Or(config.Prefix, DefaultPrefix)
	late := fmt.Errorf("redisstore: no answer within %v: %w", config.Timeout, os.ErrDeadlineExceeded)
	client, single := rdb.(*redis.Client)
	punctual := single && keepsDeadlines(client.Options())
	script := &script{rdb: rdb, prefix: config.Prefix, clock: func() string { return "" }}
	script.alone.Store(!single)
	script.set(source)
	s := &Store{keys: newKeys(&config), script: script, late: late}
	s.lanes = newLanes(rdb, func() *queue {
		return &queue{send: script.run, timeout: config.Timeout, late: late, punctual: punctual}
	})
	if !config.AskAlways {
		s.denials = newDenials()
	}
	s.checks.New = func() any { return newCheck() }
	return s
}

// keepsDeadlines tells whether a client with these options never waits past the deadline
// of a context. Time limits below 0 are those that were told not to be set.
func keepsDeadlines(o *redis.Options) bool {
	return o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0
}

// Stats is what a store has done since it was made.
type Stats struct {
	// Calls is how many calls of the script were made.
	Calls uint64

	// Checks is how many requests they were for.
	Checks uint64

	// Late is how many requests had no answer in time.
	Late uint64

	// Reloads is how many calls were made again because Redis did not know the script.
	Reloads uint64

	// Repeated is how many takes were refused without asking Redis, because it had
	// refused one a moment ago; see [Config.AskAlways].
	Repeated uint64
}

// Stats returns what the store has done, counted while it is in use.
func (s *Store) Stats() Stats {
	stats := Stats{
		Calls:   s.script.calls.Load(),
		Checks:  s.script.checks.Load(),
		Late:    s.lates.Load(),
		Reloads: s.script.reloads.Load(),
	}
	if s.denials != nil {
		stats.Repeated = s.denials.hits.Load()
	}
	return stats
}

// Apply decides and charges one request, by the clock of the server. Its error is that
// of the context if that ended first.
func (s *Store) Apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.denials == nil {
		return s.apply(ctx, request, result)
	}
	bucket := s.denials.hash(&request.Key)
	if request.Mode != ratetier.ModeTake {
		defer s.denials.clear(bucket)
		return s.apply(ctx, request, result)
	}
	sent := s.denials.now()
	if s.denials.repeat(bucket, sent, request, result) {
		return nil
	}
	epoch := s.denials.slot(bucket).epoch.Load()
	err := s.apply(ctx, request, result)
	if err == nil && !result.Allowed {
		s.denials.remember(bucket, epoch, sent, request, result)
	}
	return err
}

// Reset makes the bucket full.
func (s *Store) Reset(ctx context.Context, key ratetier.Key) error {
	if s.denials != nil {
		defer s.denials.clear(s.denials.hash(&key))
	}
	return s.do(ctx, &key, reset, 0, new(ratetier.Result))
}

func (s *Store) apply(ctx context.Context, request *ratetier.Request, result *ratetier.Result) error {
	return s.do(ctx, &request.Key, ask(request), len(request.Limits), result)
}

func (s *Store) do(ctx context.Context, key *ratetier.Key, ask string, rates int, result *ratetier.Result) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, _ := s.checks.Get().(*check)
	c.key, c.ask, c.rates, c.result, c.err = s.keys.of(key), ask, rates, ratetier.Result{}, nil
	mine, err := s.lanes.of(c.key).do(ctx, c)
	switch {
	case err == nil:
		*result = c.result
	case errors.Is(err, s.late):
		s.lates.Add(1)
	}
	if mine {
		c.ctx = nil
		s.checks.Put(c)
	}
	return err
}

// Format keeps keys and the secret out of every verb of fmt.
func (s *Store) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, "redisstore.Store") }
