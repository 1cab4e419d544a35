package fallbackstore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
)

var (
	// errCallerGone stands for what tells nothing about the primary.
	errCallerGone = errors.New("fallbackstore: the context of the caller ended")
	errPanicked   = errors.New("fallbackstore: the primary panicked")
)

// ask asks the primary for a caller. Its error is that of the context if that ended.
func (s *Store) ask(ctx context.Context, done func(error), request *ratetier.Request, result *ratetier.Result) error {
	outcome := errPanicked
	defer func() { s.conclude(done, outcome) }()
	err := s.primary.Apply(ctx, request, result)
	outcome = err
	if err != nil && ctx.Err() != nil {
		outcome, err = errCallerGone, ctx.Err()
	}
	return err
}

// conclude tells the breaker what came of a request.
func (s *Store) conclude(done func(error), outcome error) {
	if outcome != nil && !errors.Is(outcome, errCallerGone) {
		s.failures.Add(1)
		s.outages.failed(outcome)
	}
	done(outcome)
	s.outages.tell()
}

// probeLimits are those of the bucket that probes charge. It is full again at once.
var probeLimits = []gcra.Limit{{Interval: int64(time.Millisecond), Offset: int64(time.Millisecond)}}

// probe tries the primary if it is time to, without waiting for it.
//
// A probe charges a bucket of its own, which no limiter has, as the tier has no name: a
// peek would not find out that Redis is full or read-only, and a user's bucket would be
// charged twice.
func (s *Store) probe(now int64) {
	done, err := s.breaker.Allow()
	if err != nil {
		return
	}
	go s.send(done, &ratetier.Request{
		Mode:   ratetier.ModeCharge,
		Key:    ratetier.Key{User: "probe of fallbackstore", Anonymous: true},
		Limits: probeLimits,
		Cost:   1,
		Now:    now,
	})
}

// send sends the probe, by a goroutine of its own: a primary that panics has failed, and
// does not end the process.
func (s *Store) send(done func(error), probe *ratetier.Request) {
	outcome := errPanicked
	defer func() {
		if p := recover(); p != nil {
			slog.Error("fallbackstore: the primary panicked", "panic", p)
		}
		s.conclude(done, outcome)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), s.probeEvery)
	defer cancel()
	outcome = s.primary.Apply(ctx, probe, new(ratetier.Result))
}
