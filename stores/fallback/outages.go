package fallbackstore

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// LogOutages returns an OnOutage that logs a line when an outage begins, at level Error
// with the last failure of the primary, and a line when it is over, at level Info with how
// long it was. It logs no users, and needs no limit of its own: a primary that comes and
// goes is probed once in a [Config.ProbeEvery].
func LogOutages(logger *slog.Logger) func(Outage) {
	return func(o Outage) {
		if o.Over {
			logger.Info("ratetier", "outage", "over", "lasted", o.Lasted)
		} else {
			logger.Error("ratetier", "outage", "begun", "error", o.Err)
		}
	}
}

// outages follows the breaker, and tells the user of what it does.
type outages struct {
	observe func(Outage) // nil: nobody is told
	down    atomic.Bool
	begun   atomic.Uint64

	mu      sync.Mutex
	last    error // of the primary
	since   time.Time
	untold  []Outage
	telling bool
}

// failed remembers why the primary failed.
func (o *outages) failed(err error) {
	o.mu.Lock()
	o.last = err
	o.mu.Unlock()
}

// change is called by the breaker, in its lock, so it calls nobody. A breaker that is
// half open, while a probe is under way, is still part of the outage.
func (o *outages) change(_ string, from, to gobreaker.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case from == gobreaker.StateClosed:
		o.since = time.Now()
		o.begun.Add(1)
		o.down.Store(true)
		o.untold = append(o.untold, Outage{Err: o.last})
	case to == gobreaker.StateClosed:
		o.down.Store(false)
		o.untold = append(o.untold, Outage{Over: true, Lasted: time.Since(o.since)})
	}
}

// tell tells the user what is new. One goroutine at a time does, for all, so that it is
// told in order; the others do not wait.
func (o *outages) tell() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.telling {
		return
	}
	o.telling = true
	for len(o.untold) > 0 {
		outage := o.untold[0]
		o.untold = o.untold[1:]
		o.mu.Unlock()
		o.call(outage)
		o.mu.Lock()
	}
	o.telling = false
}

func (o *outages) call(outage Outage) {
	if o.observe == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			slog.Error("fallbackstore: OnOutage panicked", "panic", p)
		}
	}()
	o.observe(outage)
}
