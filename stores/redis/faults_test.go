package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// Whatever fails when, and however often, two instances never admit more than the
// limit, and nothing is charged that nobody asked for. The same seed has the same faults
// after the same number of checks.
func TestNoFaultAdmitsMoreThanTheLimit(t *testing.T) {
	const (
		limit   = 150
		callers = 30
		checks  = 20 // of each caller
		every   = 15 // checks to the next fault
	)
	s := startServer(t)
	direct := s.client(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			direct.FlushDB(t.Context())
			p := startProxy(t, s.Addr())
			random := rand.New(rand.NewPCG(seed, 0))
			faults := []func(){
				func() { p.set(none) },
				func() { p.set(none) },
				func() { p.set(loseReplies) },
				func() { p.set(cutAfterRequest) },
				func() { p.set(silent) },
				func() { direct.ScriptFlush(t.Context()) },
				func() { s.Signal(syscall.SIGSTOP); s.Signal(syscall.SIGCONT) },
			}
			var (
				mu            sync.Mutex
				done          int
				admitted, err atomic.Int64
				taking        sync.WaitGroup
				stores        []*redisstore.Store
			)
			// The callers of the second send their checks themselves when they can.
			contexts := []context.Context{t.Context(), context.Background()}
			for i := range contexts {
				rdb := newClient(t, p.addr, impatient, func(o *redis.Options) {
					o.DialTimeout = 20 * time.Millisecond
					o.ContextTimeoutEnabled = i == 1
				})
				stores = append(stores, redisstore.New(rdb, redisstore.Config{Timeout: 20 * time.Millisecond}))
			}
			for i := range callers {
				taking.Go(func() {
					for range checks {
						request := ratetier.Request{Key: ana, Limits: hourly(limit), Cost: 1}
						var result ratetier.Result
						switch stores[i%2].Apply(contexts[i%2], &request, &result) {
						case nil:
							if result.Allowed {
								admitted.Add(1)
							}
						default:
							err.Add(1)
						}
						mu.Lock()
						if done++; done%every == 0 {
							faults[random.IntN(len(faults))]()
						}
						mu.Unlock()
					}
				})
			}
			taking.Wait()
			p.set(none)
			for _, store := range stores {
				store.Quiet()
			}
			peek := ratetier.Request{Key: ana, Limits: hourly(limit)}
			var result ratetier.Result
			store := redisstore.New(direct, redisstore.Config{Timeout: time.Minute})
			if err := store.Apply(t.Context(), &peek, &result); err != nil {
				t.Fatal(err)
			}
			charged := (result.Used[0] + int64(time.Hour) - 1) / int64(time.Hour)
			if n := admitted.Load(); n > limit || n > charged || charged > n+err.Load() {
				t.Errorf("%d admitted of %d, %d charged, %d errors", n, limit, charged, err.Load())
			}
			if admitted.Load() == 0 || err.Load() == 0 {
				t.Errorf("%d admitted and %d errors put nothing to the test", admitted.Load(), err.Load())
			}
		})
	}
}
