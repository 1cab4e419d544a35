package fallbackstore

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	ratetier "github.com/ratetier/ratetier/core"
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

// probe tries the primary if it is time to, without waiting for it, with a request that
// was decided locally.
//
// The primary is charged what the local store was, since a peek would not find out that
// Redis is full or read-only. What was not charged locally is not charged either.
func (s *Store) probe(request *ratetier.Request, result *ratetier.Result) {
	done, err := s.breaker.Allow()
	if err != nil {
		return
	}
	probe := *request
	probe.Key.Tier, probe.Key.User = strings.Clone(request.Key.Tier), strings.Clone(request.Key.User)
	probe.Limits = slices.Clone(request.Limits)
	if !result.Allowed || request.Mode == ratetier.ModeRefund {
		probe.Mode, probe.Cost = ratetier.ModeTake, 0
	}
	go s.send(done, &probe)
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
	// Not the caller's context, which may be that of another request by now.
	ctx, cancel := context.WithTimeout(context.Background(), s.probeEvery)
	defer cancel()
	outcome = s.primary.Apply(ctx, probe, new(ratetier.Result))
}
