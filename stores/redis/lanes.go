package redisstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// lanes has a queue for each server that keys are spread over, so that one which is
// slow or gone holds up only the checks of its own buckets.
type lanes struct {
	server func(key string) string // the address of the one that has the key
	create func() *queue
	queues sync.Map // of *queue, by address
}

func newLanes(rdb redis.UniversalClient, create func() *queue) *lanes {
	l := &lanes{create: create, server: func(string) string { return "" }}
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		l.server = serverOfCluster(rdb, l.of(""))
	case *redis.Ring:
		l.server = func(key string) string { return address(rdb.GetShardClientForKey(key)) }
	}
	return l
}

// of returns the queue of the server that has the key.
func (l *lanes) of(key string) *queue {
	server := l.server(key)
	q, ok := l.queues.Load(server)
	if !ok {
		q, _ = l.queues.LoadOrStore(server, l.create())
	}
	queue, _ := q.(*queue)
	return queue
}

// serverOfCluster returns what tells the node of a key. To ask the client waits until
// it has seen the cluster for the first time, and never again; until then all checks go
// through the queue without an address, whose batches do the waiting.
func serverOfCluster(rdb *redis.ClusterClient, first *queue) func(key string) string {
	var seen atomic.Bool
	send := first.send
	first.send = func(ctx context.Context, checks []*check) {
		if !seen.Load() {
			_, err := rdb.MasterForKey(ctx, checks[0].key)
			seen.Store(err == nil)
		}
		send(ctx, checks)
	}
	return func(key string) string {
		if !seen.Load() {
			return ""
		}
		return address(rdb.MasterForKey(context.Background(), key))
	}
}

func address(rdb *redis.Client, err error) string {
	if err != nil {
		return ""
	}
	return rdb.Options().Addr
}
