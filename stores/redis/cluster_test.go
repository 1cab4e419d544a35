package redisstore_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/storetest"
	redisstore "github.com/ratetier/ratetier/stores/redis"
	"github.com/ratetier/ratetier/stores/redis/redistest"
)

// startCluster starts a cluster of three masters, and returns when it works.
func startCluster(t *testing.T) []server {
	t.Helper()
	const slots, nodes = 16384, 3
	var servers []server
	for i := range nodes {
		s := startServer(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t), "--cluster-node-timeout", "60000")
		servers = append(servers, s)
		if err := s.client(t).Do(t.Context(), "cluster", "addslotsrange", i*slots/nodes, (i+1)*slots/nodes-1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers {
		if err := s.client(t).Do(t.Context(), "config", "set", "cluster-announce-ip", "127.0.0.1").Err(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			host, port, _ := strings.Cut(s.Addr(), ":")
			if err := servers[0].client(t).Do(t.Context(), "cluster", "meet", host, port, s.busPort(t)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range servers {
		rdb := s.client(t)
		wait(t, "the cluster to work", func() bool {
			info := rdb.ClusterInfo(t.Context()).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_size:3")
		})
	}
	return servers
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(redistest.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (s server) busPort(t *testing.T) string {
	t.Helper()
	return s.client(t).ConfigGet(t.Context(), "cluster-port").Val()["cluster-port"]
}

// wait polls until the condition holds.
func wait(t testing.TB, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for range 6000 {
		if holds() {
			return
		}
		<-poll.C
	}
	t.Fatalf("waited in vain for %s", what)
}

func newCluster(t *testing.T, servers []server, change func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	options := &redis.ClusterOptions{}
	for _, s := range servers {
		options.Addrs = append(options.Addrs, s.Addr())
	}
	if change != nil {
		change(options)
	}
	rdb := redis.NewClusterClient(options)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestConformanceOnACluster(t *testing.T) {
	servers := startCluster(t)
	rdb := newCluster(t, servers, nil)
	subject := subject(t, rdb)
	create := subject.New
	subject.New = func() (ratetier.Store, error) {
		for _, s := range servers {
			if err := s.client(t).FlushDB(t.Context()).Err(); err != nil {
				return nil, err
			}
		}
		return create()
	}
	storetest.Run(t, subject)
}

func TestConformanceOnARing(t *testing.T) {
	addrs := map[string]string{}
	for _, name := range []string{"one", "two", "three"} {
		addrs[name] = startServer(t).Addr()
	}
	rdb := redis.NewRing(&redis.RingOptions{Addrs: addrs})
	t.Cleanup(func() { _ = rdb.Close() })
	subject := subject(t, rdb)
	create := subject.New
	subject.New = func() (ratetier.Store, error) {
		if err := rdb.ForEachShard(t.Context(), func(ctx context.Context, shard *redis.Client) error {
			return shard.FlushDB(ctx).Err()
		}); err != nil {
			return nil, err
		}
		return create()
	}
	storetest.Run(t, subject)
}

// A node that stands still fails the checks of its own buckets only, each sent once.
func TestAFrozenNodeOfAClusterFailsItsOwnChecksOnly(t *testing.T) {
	servers := startCluster(t)
	rdb := newCluster(t, servers, func(o *redis.ClusterOptions) { o.ReadTimeout = 5 * time.Second })
	store := redisstore.New(rdb, redisstore.Config{Timeout: 300 * time.Millisecond})
	keys := map[bool][]ratetier.Key{}
	for i := range 60 {
		key := ratetier.Key{Tier: "free", User: strconv.Itoa(i)}
		before := servers[0].client(t).DBSize(t.Context()).Val()
		if _, err := take(t.Context(), store, key, 1); err != nil {
			t.Fatal(err)
		}
		frozen := servers[0].client(t).DBSize(t.Context()).Val() > before
		keys[frozen] = append(keys[frozen], key)
	}
	servers[0].Signal(syscall.SIGSTOP)
	defer servers[0].Signal(syscall.SIGCONT)
	type outcome struct {
		frozen bool
		err    error
	}
	outcomes := make(chan outcome)
	for frozen, keys := range keys {
		for _, key := range keys {
			go func() {
				_, err := take(t.Context(), store, key, 1)
				outcomes <- outcome{frozen, err}
			}()
		}
	}
	for range len(keys[true]) + len(keys[false]) {
		if o := <-outcomes; (o.err != nil) != o.frozen {
			t.Errorf("on the frozen node %t: error %v", o.frozen, o.err)
		}
	}
	servers[0].Signal(syscall.SIGCONT)
	store.Quiet()
	for _, key := range keys[true] {
		if n := used(t, rdb, key); n > 2 {
			t.Errorf("2 checks charged %d", n)
		}
	}
}

// Nor does a cluster client send again what may have been charged.
func TestACheckWithoutAnswerIsSentOnceToACluster(t *testing.T) {
	servers := startCluster(t)
	proxies := map[string]*proxy{}
	for _, s := range servers {
		proxies[s.Addr()] = startProxy(t, s.Addr())
	}
	each := func(do func(*proxy)) {
		for _, p := range proxies {
			do(p)
		}
	}
	sent := func() (n int) {
		each(func(p *proxy) { n += p.commands("evalsha") })
		return n
	}
	rdb := newCluster(t, servers, func(o *redis.ClusterOptions) {
		o.ReadTimeout = readTimeout
		o.MinRetryBackoff, o.MaxRetryBackoff = -1, -1
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, proxies[addr].addr)
		}
	})
	direct := newCluster(t, servers, nil)
	for name, fault := range map[string]fault{"lost": loseReplies, "cut": cutAfterRequest} {
		t.Run(name, func(t *testing.T) {
			store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
			const users = 20
			key := func(i int) ratetier.Key { return ratetier.Key{Tier: name, User: strconv.Itoa(i)} }
			for i := range users {
				if _, err := take(t.Context(), store, key(i), 1); err != nil {
					t.Fatal(err)
				}
			}
			each(func(p *proxy) { p.set(fault) })
			before := sent()
			var taking sync.WaitGroup
			for i := range users {
				taking.Go(func() {
					if result, err := take(t.Context(), store, key(i), 1); err == nil {
						t.Errorf("%+v without an answer", result)
					}
				})
			}
			taking.Wait()
			store.Quiet()
			if n := sent() - before; n != users {
				t.Errorf("%d checks were sent %d times", users, n)
			}
			each(func(p *proxy) { p.set(none) })
			for i := range users {
				if n := used(t, direct, key(i)); n != 2 {
					t.Errorf("2 checks charged %d", n)
				}
			}
		})
	}
}

// A cluster behind a proxy looks like a single server, until keys of two slots meet.
func TestAClusterThatLooksLikeOneServerCostsNoCheck(t *testing.T) {
	rdb := startServer(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t)).client(t)
	if err := rdb.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the cluster to work", func() bool {
		return strings.Contains(rdb.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
	requests := make([]ratetier.Request, 20)
	for i := range requests {
		requests[i] = ratetier.Request{Key: ratetier.Key{Tier: "free", User: strconv.Itoa(i)}, Limits: hourly(10), Cost: 1}
	}
	for range 2 {
		results, err := store.Together(t.Context(), requests)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if !result.Allowed {
				t.Errorf("request %d: %+v", i, result)
			}
		}
	}
}
