//go:build !race

package redisstore_test

import (
	"context"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// The client takes five of them for a PING alone.
func TestACheckAllocatesLittle(t *testing.T) {
	const most = 8
	store := redisstore.New(startServer(t).client(t, punctual), redisstore.Config{Timeout: time.Minute})
	request := ratetier.Request{Key: ana, Limits: hourly(10)}
	var result ratetier.Result
	n := testing.AllocsPerRun(200, func() {
		if err := store.Apply(context.Background(), &request, &result); err != nil {
			t.Fatal(err)
		}
	})
	if n > most {
		t.Errorf("%v allocations, want at most %d", n, most)
	}
}
