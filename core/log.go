package ratetier

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/ratetier/ratetier/core/gcra"
)

// LogEvents returns an observer that logs what an operator should know of: at
// level Error what is broken (the store, the look-up of identities, a negative
// cost), at Warn what is probably a mistake (an unknown tier, a cost that can never
// fit). It says nothing of requests that are simply allowed or limited. Users are
// not logged; an error is logged as it is.
//
// An outage does not flood the log: each outcome has 10 lines a minute, by the clock of
// the limiter. The next line then tells as "left_out" how many there would have been
// since the last one.
func LogEvents(logger *slog.Logger) Observer {
	return LogEventsWith(LogConfig{Logger: logger})
}

// LogConfig is all there is to say about [LogEventsWith].
type LogConfig struct {
	// Logger is where lines go. By default [slog.Default].
	Logger *slog.Logger

	// Users turns the user, or the address of a caller without identity, into what
	// stands for it in a line, such as [HashUsers] does. By default lines name nobody.
	Users func(user string) string
}

// LogEventsWith is [LogEvents] with that configuration.
func LogEventsWith(config LogConfig) Observer {
	limits := new([len(outcomes)]lineLimit)
	return func(event Event) {
		outcome, level := event.notable()
		ctx, logger := context.Background(), cmp.Or(config.Logger, slog.Default())
		if outcome == 0 || !logger.Enabled(ctx, level) {
			return
		}
		leftOut, ok := limits[outcome].take(event.at)
		if !ok {
			return
		}
		attrs := []slog.Attr{
			slog.String("outcome", outcome.String()),
			slog.Bool("allowed", event.Allowed),
			slog.String("tier", event.Identity.Tier),
			slog.String("route", event.Route),
			slog.Int64("cost", event.Cost),
		}
		switch {
		case config.Users == nil:
		case event.Identity.anonymous():
			attrs = append(attrs, slog.String("address", config.Users(event.Identity.User)))
		default:
			attrs = append(attrs, slog.String("user", config.Users(event.Identity.User)))
		}
		if event.Err != nil {
			attrs = append(attrs, slog.Any("error", event.Err))
		}
		if leftOut > 0 {
			attrs = append(attrs, slog.Int64("left_out", leftOut))
		}
		logger.LogAttrs(ctx, level, "ratetier", attrs...)
	}
}

// HashUsers returns a function for [LogConfig] that turns a user into 16 hexadecimal
// digits, the same for the same user and secret. Without the secret nobody can find out by
// trying who it is. It panics if the secret is empty.
func HashUsers(secret string) func(user string) string {
	if secret == "" {
		panic("ratetier: HashUsers: the secret is empty: users could be guessed from their hashes")
	}
	return func(user string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(user))
		return hex.EncodeToString(mac.Sum(nil)[:8])
	}
}

// notable returns what is worth a line about the event, 0 if nothing is.
func (e *Event) notable() (Outcome, slog.Level) {
	for _, outcome := range [...]Outcome{e.Outcome, e.Defaulted} {
		switch outcome {
		case OutcomeStoreFailed, OutcomeIdentifyFailed, OutcomeInvalidCost:
			return outcome, slog.LevelError
		case OutcomeUnknownTier, OutcomeCostTooHigh:
			return outcome, slog.LevelWarn
		default:
		}
	}
	return 0, 0
}

// lines is what each outcome has in the log: 10 a minute.
var lines = []gcra.Limit{{Interval: int64(6 * time.Second), Offset: int64(time.Minute)}}

// lineLimit limits the lines about one outcome.
type lineLimit struct {
	mu      sync.Mutex
	tats    [1]int64
	leftOut int64
}

// take tells whether there may be a line now, and how many were left out before it.
func (l *lineLimit) take(now int64) (leftOut int64, ok bool) {
	line, result := Request{Limits: lines, Cost: 1, Now: now}, Result{}
	l.mu.Lock()
	defer l.mu.Unlock()
	if line.Apply(l.tats[:], &result); !result.Allowed {
		l.leftOut++
		return 0, false
	}
	leftOut, l.leftOut = l.leftOut, 0
	return leftOut, true
}
