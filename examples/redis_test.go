package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratetier/ratetier/stores/redis/redistest"
)

// Instances of a service on one Redis share one limit: of eleven requests that alternate
// between them, ten pass. Redis then holds one integer, for as long as the bucket refills.
func TestInstancesShareOneLimitInRedis(t *testing.T) {
	server := redistest.Start(t)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./nethttp", "./gin", "./echo", "./chi")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, output)
	}
	// The limit is one for all frameworks, too.
	var instances []*running
	for _, name := range []string{"nethttp", "gin", "echo", "chi"} {
		instances = append(instances, start(t, filepath.Join(dir, name), "-redis", "redis://"+server.Addr()))
	}
	passed := 0
	for i := range 11 {
		if strings.HasPrefix(instances[i%len(instances)].get(t, "key_ana", "/data"), "key_ana /data 200") {
			passed++
		}
	}
	for _, instance := range instances {
		instance.stop(t)
	}
	if passed != 10 {
		t.Errorf("%d of 11 passed, want 10", passed)
	}

	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	const key = "trt:free:33d2315cbeb866b8b237240a98d605f2e6e41b8a"
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != key {
		t.Errorf("keys %q, want only %q", keys, key)
	}
	if _, err := rdb.Get(t.Context(), key).Int64(); err != nil {
		t.Errorf("its value: %v, want an integer", err)
	}
	if left := rdb.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Minute {
		t.Errorf("it expires in %v, want within a minute", left)
	}
}
