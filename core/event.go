package ratetier

import (
	"log/slog"
	"time"
)

// Event is one decision, told to the [Observer] after it was made.
//
// It holds who asked, in the clear: do not print Identity.User where it does not
// belong. Printing the Event itself shows no user.
type Event struct {
	Decision

	// Mode is what was asked of the bucket. A peek is a take of cost 0.
	Mode Mode

	// Identity is who asked, as identified: its Tier is the one that was asked
	// for, which Decision.Tier need not be.
	Identity Identity

	// Route is the pattern of the route, in the syntax of the framework; "" where
	// no route matched, or no adapter was involved. It is never a raw path.
	Route string

	// Elapsed is how long the decision took, the store included.
	Elapsed time.Duration

	at int64 // when it was made, in the limiter's time
}

// Observer is told each decision of a limiter: for metrics, logs and traces. It is
// called by the goroutine that asked, outside any lock, so it should be quick; it
// must be safe for concurrent use. If it panics, the panic is logged with
// [slog.Default] and the request is decided as if it had not.
type Observer func(Event)

// Observers returns one observer that tells each of them in turn.
func Observers(observers ...Observer) Observer {
	return func(event Event) {
		for _, observe := range observers {
			observe.tell(event)
		}
	}
}

// Observed tells whether the limiter has an observer. If not, nobody learns the Route of a
// [Check], and an adapter need not find it out.
func (l *Limiter) Observed() bool { return l.observer != nil }

func (o Observer) tell(event Event) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("ratetier: the observer panicked", "panic", p)
		}
	}()
	o(event)
}
