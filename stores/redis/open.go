package redisstore

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open returns a store with a client of its own for the server at the URL, such as
// redis://user:password@host:6379/0, rediss:// for TLS or unix:// for a socket. Nothing
// is sent yet. For Sentinel, Cluster and Ring make a client, and see [New].
//
// The client's time limits follow [Config.Timeout] where the URL does not set them.
// [Store.Close] closes it.
//
// It is an error if the URL cannot be read or the config contradicts itself. The URL,
// which may hold a password, is not part of the error.
func Open(url string, config Config) (*Store, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		err = errors.New("the URL cannot be read: write it as redis://user:password@host:6379/0, " +
			"with %40 for an @ in the password, and so on")
	}
	if err := errors.Join(err, config.validate()); err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	timeout := cmp.Or(config.Timeout, DefaultTimeout)
	options.DialTimeout = cmp.Or(options.DialTimeout, patience*timeout)
	options.DialerRetries = cmp.Or(options.DialerRetries, 1)
	options.ReadTimeout = cmp.Or(options.ReadTimeout, timeout)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, timeout)
	options.PoolTimeout = cmp.Or(options.PoolTimeout, timeout)
	options.MaxRetries = cmp.Or(options.MaxRetries, -1)
	options.ContextTimeoutEnabled = true
	// What servers before 7.2 answer with an error, which their statistics count.
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	rdb := redis.NewClient(options)
	store := New(rdb, config)
	store.close = rdb.Close
	return store, nil
}

// Close closes the client that [Open] made. Calls of the store then return errors. It
// does nothing for a store that was given its client.
func (s *Store) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
