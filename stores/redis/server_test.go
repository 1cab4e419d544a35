package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratetier/ratetier/stores/redis/redistest"
)

// server is a redis-server of the test's own.
type server struct{ *redistest.Server }

func startServer(t testing.TB, options ...string) server {
	t.Helper()
	return server{redistest.Start(t, options...)}
}

// client returns a client of the server with all defaults but those in change.
func (s server) client(t testing.TB, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return newClient(t, s.Addr(), change...)
}

func newClient(t testing.TB, addr string, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	options := &redis.Options{Addr: addr}
	for _, c := range change {
		c(options)
	}
	rdb := redis.NewClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
