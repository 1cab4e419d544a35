package redisstore_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
	"github.com/ratetier/ratetier/stores/redis/redistest"
)

// startSentinel starts a Sentinel that watches the master, alone.
func startSentinel(t *testing.T, master server) server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	lines := []string{
		"sentinel monitor limits " + host + " " + port + " 1",
		"sentinel down-after-milliseconds limits 100",
		"sentinel failover-timeout limits 1000",
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return server{redistest.StartAs(t, "+monitor master", config, "--sentinel")}
}

// The new master knows what had reached it, and not the script.
func TestAFailoverGrantsNothingAgainThatWasReplicated(t *testing.T) {
	const limit = 20
	master := startServer(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica := startServer(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0").client(t)
	sentinel := startSentinel(t, master)
	wait(t, "the replica to follow", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	wait(t, "Sentinel to know the replica", func() bool {
		known := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr()})
		defer known.Close()
		return len(known.Replicas(t.Context(), "limits").Val()) == 1
	})

	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "limits", SentinelAddrs: []string{sentinel.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	store := redisstore.New(rdb, redisstore.Config{AskAlways: true})
	allowed := 0
	try := func() (answered bool) {
		request := ratetier.Request{Key: ana, Limits: hourly(limit), Cost: 1}
		var result ratetier.Result
		err := store.Apply(t.Context(), &request, &result)
		if result.Allowed {
			allowed++
		}
		return err == nil
	}
	for range limit / 2 {
		if !try() {
			t.Fatal("no answer from the first master")
		}
	}
	if n, err := master.client(t).Wait(t.Context(), 1, time.Minute).Result(); n != 1 || err != nil {
		t.Fatalf("replicated to %d, %v", n, err)
	}
	master.Kill()
	wait(t, "an answer from the new master", try)
	for range limit {
		try()
	}
	if allowed <= limit/2 || allowed > limit {
		t.Errorf("%d of %d allowed", allowed, limit)
	}
}
