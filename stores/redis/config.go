package redisstore

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// DefaultTimeout is how long a check may take where [Config] does not say.
const DefaultTimeout = 100 * time.Millisecond

// maxTimeout is more than anybody waits, and little enough to reckon with.
const maxTimeout = time.Hour

// DefaultPrefix is what keys begin with where [Config] does not say.
const DefaultPrefix = "trt"

// Config is all there is to say about a [Store]. The zero Config is ready to use. All
// stores that are to share limits need the same Prefix, Secret and ReadableKeys.
//
// Printing a Config, logging it with slog or marshaling it does not show the secret.
type Config struct {
	// Timeout bounds each call of the store, from the moment it is made, whatever
	// the time limits of the client. What was sent by then may still be charged. By
	// default [DefaultTimeout], at most an hour; see also the deadline of the caller's
	// context.
	Timeout time.Duration

	// Prefix is what keys begin with, before a colon. By default [DefaultPrefix].
	Prefix string

	// Secret is the key of the HMAC that stands for a user in a key of Redis. By
	// default it is a plain SHA-1, from which one who can read the keys may guess
	// users that are easily guessed.
	Secret string `json:"-"`

	// ReadableKeys puts users into keys as they are: for debugging, and for those
	// who have nothing to hide. It excludes a Secret.
	ReadableKeys bool

	// AskAlways has Redis asked again at each check of a bucket that was too empty a
	// moment ago. By default a refusal is remembered for up to a second, and repeated
	// for as long as Redis would repeat it; a refund by another process, or a reset,
	// is seen only after that.
	AskAlways bool
}

// validate returns an error that lists everything that is wrong with the config.
func (c *Config) validate() error {
	var timeout, secret error
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		timeout = fmt.Errorf("timeout %v: must be positive and at most %v, or 0 for %v", c.Timeout, maxTimeout, DefaultTimeout)
	}
	if c.ReadableKeys && c.Secret != "" {
		secret = errors.New("a Secret hides users and ReadableKeys shows them: choose one")
	}
	return errors.Join(timeout, secret)
}

// Format keeps the secret out of every verb of fmt.
func (c Config) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Config{Timeout:%v Prefix:%q Secret:%s ReadableKeys:%t AskAlways:%t}",
		c.Timeout, c.Prefix, c.redacted(), c.ReadableKeys, c.AskAlways)
}

// LogValue keeps the secret out of logs.
func (c Config) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

func (c *Config) redacted() string {
	if c.Secret == "" {
		return "none"
	}
	return "REDACTED"
}
