package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// However long an outage is, few goroutines wait for the client, none of them for
// longer than the client does, and checks are answered again when it is over.
func TestAnOutageHoldsUpFewGoroutinesAndPasses(t *testing.T) {
	const most = 32
	s := startServer(t)
	rdb := s.client(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	store := redisstore.New(rdb, redisstore.Config{Timeout: 5 * time.Millisecond})
	s.Signal(syscall.SIGSTOP)
	var taking sync.WaitGroup
	for range 20 {
		taking.Go(func() {
			for range 40 {
				if _, err := take(t.Context(), store, ana, 1); err == nil {
					t.Error("a server that stands still has answered")
				}
			}
		})
	}
	taking.Wait()
	if n := store.Flights(); n == 0 || n > most {
		t.Errorf("%d goroutines wait, want 1 to %d", n, most)
	}
	s.Signal(syscall.SIGCONT)
	store.Quiet()
	wait(t, "an answer", func() bool {
		_, err := take(t.Context(), store, ana, 0)
		return err == nil
	})
	store.Quiet()
}

// A check whose context ends goes at once, whether it is under way or waits for others.
func TestACheckWhoseContextEndsGoesAtOnce(t *testing.T) {
	s := startServer(t)
	rdb := s.client(t)
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
	if _, err := take(t.Context(), store, ana, 1); err != nil {
		t.Fatal(err)
	}
	s.Signal(syscall.SIGSTOP)
	ctx, cancel := context.WithCancel(t.Context())
	sent := store.Stats().Checks
	errs := make(chan error)
	const callers = 10
	for range callers {
		go func() {
			_, err := take(ctx, store, ana, 1)
			errs <- err
		}()
	}
	wait(t, "the checks to be under way or wait", func() bool {
		return int(store.Stats().Checks-sent)+store.Waiting() == callers
	})
	waiting := store.Waiting()
	cancel()
	for range callers {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	}
	s.Signal(syscall.SIGCONT)
	store.Quiet()
	if n := int(store.Stats().Checks - sent); n != callers-waiting {
		t.Errorf("%d of %d were sent, though %d had not been when their context ended", n, callers, waiting)
	}
	if n := int(used(t, rdb, ana)); n > 1+callers-waiting {
		t.Errorf("%d charged, though %d had not been sent", n, waiting)
	}
}

// Checks that wait behind batches which got lost are sent as soon as nobody waits for
// those any more, though no other check comes to have them sent.
func TestALostBatchHoldsUpOthersOnlyForAsLongAsItsOwnChecksWait(t *testing.T) {
	s := startServer(t)
	p := startProxy(t, s.Addr())
	rdb := newClient(t, p.addr, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	store := redisstore.New(rdb, redisstore.Config{Timeout: 500 * time.Millisecond})
	connect(t, rdb, 5)
	if _, err := take(t.Context(), store, ana, 0); err != nil {
		t.Fatal(err)
	}
	p.set(loseReplies)
	errs := make(chan error)
	try := func() {
		_, err := take(t.Context(), store, ana, 0)
		errs <- err
	}
	const window = 2
	for n := 1; n <= window; n++ {
		go try()
		wait(t, "an answer to be lost", func() bool { return p.dropped() == n })
	}
	p.set(none)
	sent, lost := store.Stats().Checks, time.Now()
	wait(t, "the next check to have longer", func() bool { return time.Since(lost) > 100*time.Millisecond })
	go try()
	wait(t, "the check to wait", func() bool { return store.Waiting() == 1 })
	answered := 0
	for range window + 1 {
		if err := <-errs; err == nil {
			answered++
		}
	}
	if answered != 1 {
		t.Errorf("%d answered, want the one behind those that were lost", answered)
	}
	if n := store.Stats().Checks - sent; n != 1 {
		t.Errorf("%d more checks were sent, want 1", n)
	}
}

// A server that is started anew knows neither the script nor the connections.
func TestARestartCostsNoCheck(t *testing.T) {
	s := startServer(t)
	rdb := s.client(t)
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
	for range 3 {
		if _, err := take(t.Context(), store, ana, 1); err != nil {
			t.Error(err)
		}
		s.Kill()
		s.Restart()
	}
}

// What Redis refuses to do fails at once, with its reason, and charges nothing.
func TestWhatRedisRefusesFailsWithItsReason(t *testing.T) {
	for _, test := range []struct {
		name, want string
		refuse     func(rdb *redis.Client) error
		allow      func(rdb *redis.Client) error
	}{
		{
			"out of memory", "OOM",
			func(rdb *redis.Client) error { return rdb.ConfigSet(t.Context(), "maxmemory", "1").Err() },
			func(rdb *redis.Client) error { return rdb.ConfigSet(t.Context(), "maxmemory", "0").Err() },
		},
		{
			"a replica", "READONLY",
			func(rdb *redis.Client) error {
				return errors.Join(
					rdb.ConfigSet(t.Context(), "replica-serve-stale-data", "yes").Err(),
					rdb.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err())
			},
			func(rdb *redis.Client) error { return rdb.Do(t.Context(), "replicaof", "no", "one").Err() },
		},
		{
			"no replica", "NOREPLICAS",
			func(rdb *redis.Client) error { return rdb.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err() },
			func(rdb *redis.Client) error { return rdb.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err() },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			rdb := startServer(t).client(t)
			store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
			if _, err := take(t.Context(), store, ana, 1); err != nil {
				t.Fatal(err)
			}
			if err := test.refuse(rdb); err != nil {
				t.Fatal(err)
			}
			if _, err := take(t.Context(), store, ana, 1); !redis.HasErrorPrefix(err, test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if err := test.allow(rdb); err != nil {
				t.Fatal(err)
			}
			if n := used(t, rdb, ana); n != 1 {
				t.Errorf("1 check charged %d", n)
			}
		})
	}
}

// The rights that the documentation names suffice.
func TestRights(t *testing.T) {
	s := startServer(t)
	s.addUser(t, rights)
	store, err := redisstore.Open("redis://ratetier:password@"+s.Addr(), redisstore.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	doAll(t, store, ana)
	s.mustHaveDeniedNothing(t)
}

func TestRightsOnACluster(t *testing.T) {
	servers := startCluster(t)
	for _, s := range servers {
		s.addUser(t, rights+" +cluster|slots +command")
	}
	store := redisstore.New(newCluster(t, servers, func(o *redis.ClusterOptions) {
		o.Username, o.Password = "ratetier", "password"
	}), redisstore.Config{Timeout: time.Minute})
	for i := range 20 { // on all of them
		doAll(t, store, ratetier.Key{Tier: "free", User: strconv.Itoa(i)})
	}
	for _, s := range servers {
		s.mustHaveDeniedNothing(t)
	}
}

const rights = "on >password ~trt:* +evalsha +eval +mget +set +del +time +hello +ping +client"

// addUser adds a user with the rights and no others.
func (s server) addUser(t *testing.T, rights string) {
	t.Helper()
	args := []any{"acl", "setuser", "ratetier"}
	for right := range strings.FieldsSeq(rights) {
		args = append(args, right)
	}
	if err := s.client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// mustHaveDeniedNothing looks for what a client asked in vain, and went on without.
func (s server) mustHaveDeniedNothing(t *testing.T) {
	t.Helper()
	denied, err := s.client(t).ACLLog(t.Context(), 0).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range denied {
		t.Errorf("no right to %s, %d times", entry.Object, entry.Count)
	}
}

// doAll does whatever can be done to a bucket.
func doAll(t *testing.T, store ratetier.Store, key ratetier.Key) {
	t.Helper()
	for _, mode := range []ratetier.Mode{ratetier.ModeTake, ratetier.ModeCharge, ratetier.ModeRefund} {
		request := ratetier.Request{Mode: mode, Key: key, Limits: hourly(10), Cost: 2}
		if err := store.Apply(t.Context(), &request, new(ratetier.Result)); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := store.Reset(t.Context(), key); err != nil {
		t.Errorf("reset: %v", err)
	}
}
