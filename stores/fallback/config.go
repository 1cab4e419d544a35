package fallbackstore

import (
	"errors"
	"fmt"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
)

// DefaultFailures is how many failures in a row begin an outage where [Config] does
// not say.
const DefaultFailures = 5

// DefaultProbeEvery is how often the primary is tried during an outage where [Config]
// does not say.
const DefaultProbeEvery = time.Second

// Config is all there is to say about a [Store]. The zero Config is ready to use.
type Config struct {
	// Local decides what the primary does not. It must be quick, and not be shared
	// with another store. By default it is a new memorystore.
	Local ratetier.Store

	// Instances is how many instances of the service there are. During an outage each
	// of them then admits its share: one of Instances parts of each rate and burst,
	// rounded down to whole cells, and at least one cell for each time that the bucket
	// takes to fill. A request that costs more than the share is refused until the
	// outage is over. By default each instance admits the whole quota.
	Instances int

	// Failures is how many requests in a row the primary has to fail for an outage to
	// begin. By default [DefaultFailures].
	Failures int

	// ProbeEvery is how often the primary is tried during an outage, and how long a
	// try may take. By default [DefaultProbeEvery].
	ProbeEvery time.Duration

	// OnOutage is told when an outage begins and when it is over, one after the other,
	// outside any lock, so it should be quick. If it panics, the panic is logged with
	// [slog.Default] and nothing else happens. By default nobody is told; [Store.Stats]
	// counts outages all the same.
	OnOutage func(Outage)
}

// Outage is the beginning or the end of an outage.
type Outage struct {
	// Over tells whether it is the end.
	Over bool

	// Err is the last failure of the primary, if the outage has begun.
	Err error

	// Lasted is how long the outage was, if it is over.
	Lasted time.Duration
}

// validate returns an error that lists everything that is wrong with the config.
func (c *Config) validate() error {
	var errs []error
	if c.Local != nil && isNil(c.Local) {
		errs = append(errs, errors.New("a nil pointer as Local: leave it out for a new memorystore"))
	}
	if c.Instances < 0 {
		errs = append(errs, fmt.Errorf("%d Instances: must be positive, or 0 for the whole quota in each", c.Instances))
	}
	if c.Failures < 0 || int64(c.Failures) > maxFailures {
		errs = append(errs, fmt.Errorf("%d Failures: must be 1 to %d, or 0 for %d", c.Failures, maxFailures, DefaultFailures))
	}
	if c.ProbeEvery < 0 {
		errs = append(errs, fmt.Errorf("an interval of %v for ProbeEvery: must be positive, or 0 for %v", c.ProbeEvery, DefaultProbeEvery))
	}
	return errors.Join(errs...)
}

// maxFailures is more than anybody wants to wait for.
const maxFailures = 1_000_000
