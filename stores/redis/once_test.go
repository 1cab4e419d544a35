package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

var (
	ana          = ratetier.Key{Tier: "free", User: "key_ana"}
	tenPerMinute = gcra.Limit{Interval: int64(6 * time.Second), Offset: int64(time.Minute)}
)

func take(ctx context.Context, store *redisstore.Store, key ratetier.Key, cost int64) (ratetier.Result, error) {
	request := ratetier.Request{Key: key, Limits: []gcra.Limit{tenPerMinute}, Cost: cost}
	var result ratetier.Result
	err := store.Apply(ctx, &request, &result)
	return result, err
}

// used returns how many cells of tenPerMinute are used in Redis itself.
func used(t *testing.T, rdb redis.UniversalClient, key ratetier.Key) int64 {
	t.Helper()
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute, AskAlways: true})
	result, err := take(t.Context(), store, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	return (result.Used[0] + tenPerMinute.Interval - 1) / tenPerMinute.Interval
}

// readTimeout ends before the test does, and not before an answer is there on a machine
// that is busy.
const readTimeout = 250 * time.Millisecond

// impatient has the client give up, and try again if it may, before the test ends.
func impatient(o *redis.Options) {
	o.ReadTimeout = readTimeout
	o.MinRetryBackoff, o.MaxRetryBackoff = -1, -1
}

// clients are all kinds that would try again by themselves.
func clients(t *testing.T, addr string) map[string]redis.UniversalClient {
	t.Helper()
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": addr}, ReadTimeout: readTimeout, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	return map[string]redis.UniversalClient{
		"single": newClient(t, addr, impatient),
		"eager":  newClient(t, addr, impatient, func(o *redis.Options) { o.MaxRetries = 10 }),
		"with contexts": newClient(t, addr, impatient, func(o *redis.Options) {
			o.ContextTimeoutEnabled = true
		}),
		"ring": ring,
	}
}

// Whatever options the user's client has, a check whose answer does not come was
// charged once.
func TestACheckWithoutAnswerIsSentOnce(t *testing.T) {
	s := startServer(t)
	direct := s.client(t)
	for name, fault := range map[string]fault{"lost": loseReplies, "cut": cutAfterRequest} {
		p := startProxy(t, s.Addr())
		for client, rdb := range clients(t, p.addr) {
			t.Run(name+"/"+client, func(t *testing.T) {
				direct.FlushDB(t.Context())
				store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
				if _, err := take(t.Context(), store, ana, 1); err != nil {
					t.Fatal(err)
				}
				p.set(fault)
				defer p.set(none)
				sent := p.commands("evalsha")
				if result, err := take(t.Context(), store, ana, 1); err == nil {
					t.Errorf("%+v without an answer", result)
				}
				store.Quiet()
				if sent = p.commands("evalsha") - sent; sent != 1 {
					t.Errorf("sent %d times", sent)
				}
				if n := used(t, direct, ana); n != 2 {
					t.Errorf("2 checks charged %d", n)
				}
			})
		}
	}
}

// So has one that reached the server while that stood still.
func TestACheckOfAFrozenServerIsSentOnce(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.Addr())
	for client, rdb := range clients(t, p.addr) {
		t.Run(client, func(t *testing.T) {
			store := redisstore.New(rdb, redisstore.Config{Timeout: 50 * time.Millisecond})
			key := ratetier.Key{Tier: "free", User: client}
			connect(t, rdb, 5)
			if _, err := take(t.Context(), store, key, 1); err != nil {
				t.Fatal(err)
			}
			s.Signal(syscall.SIGSTOP)
			defer s.Signal(syscall.SIGCONT)
			sent := p.commands("evalsha")
			if result, err := take(t.Context(), store, key, 1); err == nil {
				t.Errorf("%+v of a server that stands still", result)
			}
			store.Quiet()
			s.Signal(syscall.SIGCONT)
			if sent = p.commands("evalsha") - sent; sent != 1 {
				t.Errorf("sent %d times", sent)
			}
			if n := used(t, s.client(t), key); n > 2 {
				t.Errorf("2 checks charged %d", n)
			}
		})
	}
}

// connect has the client make so many connections, which it keeps.
func connect(t *testing.T, rdb redis.UniversalClient, n int) {
	t.Helper()
	var waiting sync.WaitGroup
	for range n {
		waiting.Go(func() { rdb.Do(t.Context(), "blpop", "nothing", "0.01") })
	}
	waiting.Wait()
}

// A server that is silent, or not there, costs each check its timeout and no more.
func TestTheTimeoutHolds(t *testing.T) {
	s := startServer(t)
	mute := startProxy(t, s.Addr())
	mute.set(silent)
	for name, rdb := range map[string]redis.UniversalClient{
		"silent":            newClient(t, mute.addr),
		"silent, punctual":  newClient(t, mute.addr, punctual),
		"refused":           newClient(t, "127.0.0.1:1"),
		"refused, punctual": newClient(t, "127.0.0.1:1", punctual),
	} {
		t.Run(name, func(t *testing.T) {
			const timeout = 50 * time.Millisecond
			store := redisstore.New(rdb, redisstore.Config{Timeout: timeout})
			for range 3 {
				errs := make(chan error)
				for range 100 {
					go func() {
						start := time.Now()
						_, err := take(context.Background(), store, ana, 1)
						if d := time.Since(start); d > timeout+time.Second {
							err = errors.Join(errors.New("took "+d.String()), nil)
						} else if err != nil {
							err = nil
						} else {
							err = errors.New("was answered")
						}
						errs <- err
					}()
				}
				for range 100 {
					if err := <-errs; err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
