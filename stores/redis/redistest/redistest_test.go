package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratetier/ratetier/stores/redis/redistest"
)

func TestAServerAnswersUntilItIsKilledAndIsEmptyAfterwards(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "volatile-ttl")
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer rdb.Close()
	if err := rdb.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if policy := rdb.ConfigGet(t.Context(), "maxmemory-policy").Val()["maxmemory-policy"]; policy != "volatile-ttl" {
		t.Errorf("the policy is %q, want what the options say", policy)
	}
	server.Kill()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("it answers after it was killed")
	}
	server.Restart()
	if n, err := rdb.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys, %v, want none", n, err)
	}
}
