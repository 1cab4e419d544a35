package redisstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// sharedAddr tells a process of this test where the Redis is that it shares.
const sharedAddr = "RATETIER_SHARED_ADDR"

// Two processes that hammer one key admit the limit together, to the cell.
func TestProcessesShareOneLimitExactly(t *testing.T) {
	const limit = 5000
	if addr := os.Getenv(sharedAddr); addr != "" {
		_, _ = fmt.Fprintf(os.Stdout, "admitted %d\n", takeTogether(t, addr, limit))
		return
	}
	s := startServer(t)
	var processes sync.WaitGroup
	var admitted [2]int64
	for i := range admitted {
		processes.Go(func() {
			process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
			process.Env = append(os.Environ(), sharedAddr+"="+s.Addr())
			output, err := process.Output()
			if err == nil {
				_, err = fmt.Sscanf(string(output), "admitted %d", &admitted[i])
			}
			if err != nil {
				t.Errorf("process %d: %v\n%s", i, err, output)
			}
		})
	}
	processes.Wait()
	if sum := admitted[0] + admitted[1]; sum != limit || admitted[0] == 0 || admitted[1] == 0 {
		t.Errorf("admitted %v, want %d in all, by both", admitted, limit)
	}
}

// takeTogether takes more than the limit from one bucket, once the other process is there
// too. It returns how many takes were allowed.
func takeTogether(t *testing.T, addr string, limit int64) int64 {
	t.Helper()
	rdb := newClient(t, addr)
	if err := rdb.Incr(t.Context(), "processes").Err(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the other process", func() bool { return rdb.Get(t.Context(), "processes").Val() == "2" })
	store := redisstore.New(rdb, redisstore.Config{AskAlways: true, Timeout: time.Minute})
	allowed, errs := hammer(t, []*redisstore.Store{store}, 8, int(limit)/4, hourly(limit))
	for _, err := range errs {
		t.Error(err)
	}
	return allowed
}
