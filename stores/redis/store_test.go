package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// hourly refills so slowly that no test sees it.
func hourly(burst int64) []gcra.Limit {
	return []gcra.Limit{{Interval: int64(time.Hour), Offset: int64(time.Hour) * burst}}
}

// hammer has many goroutines of many stores take from one bucket, and returns how many
// takes were allowed, and the errors.
func hammer(t *testing.T, stores []*redisstore.Store, callers, takes int, limits []gcra.Limit) (allowed int64, errs []error) {
	t.Helper()
	var (
		total  atomic.Int64
		mu     sync.Mutex
		taking sync.WaitGroup
	)
	for i := range callers {
		taking.Go(func() {
			for range takes {
				request := ratetier.Request{Key: ana, Limits: limits, Cost: 1}
				var result ratetier.Result
				err := stores[i%len(stores)].Apply(t.Context(), &request, &result)
				switch {
				case err != nil:
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				case result.Allowed:
					total.Add(1)
				}
			}
		})
	}
	taking.Wait()
	return total.Load(), errs
}

func TestInstancesThatShareABucketAdmitExactlyTheLimit(t *testing.T) {
	s := startServer(t)
	var stores []*redisstore.Store
	for range 2 {
		store, err := redisstore.Open("redis://"+s.Addr(), redisstore.Config{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		stores = append(stores, store)
	}
	if allowed, errs := hammer(t, stores, 64, 50, hourly(1000)); allowed != 1000 || errs != nil {
		t.Errorf("%d of 3200 allowed, want 1000; errors %v", allowed, errs)
	}
}

// Instances whose clocks disagree share one limit: the clock of the server decides.
func TestSkewedClocksMintNothing(t *testing.T) {
	rdb := startServer(t).client(t)
	allowed := 0
	for i := range 50 {
		store := redisstore.New(rdb, redisstore.Config{AskAlways: true})
		request := ratetier.Request{Key: ana, Limits: hourly(4), Cost: 1, Now: time.Now().UnixNano()}
		request.Now += int64(i%2) * int64(10*time.Hour)
		var result ratetier.Result
		if err := store.Apply(t.Context(), &request, &result); err != nil {
			t.Fatal(err)
		}
		if result.Allowed {
			allowed++
		}
	}
	if allowed != 4 {
		t.Errorf("%d allowed, want 4", allowed)
	}
}

func TestAScriptThatIsFlushedUnderLoadCostsNoCheck(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute, AskAlways: true})
	done := make(chan struct{})
	var flushing sync.WaitGroup
	flushing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				rdb.ScriptFlush(t.Context())
			}
		}
	})
	allowed, errs := hammer(t, []*redisstore.Store{store}, 50, 40, hourly(1500))
	close(done)
	flushing.Wait()
	if allowed != 1500 || errs != nil {
		t.Errorf("%d of 2000 allowed, want 1500; errors %v", allowed, errs)
	}
}

// A check that finds nobody waiting is sent alone; those that wait travel together.
func TestChecksThatWaitTravelTogether(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
	if _, errs := hammer(t, []*redisstore.Store{store}, 200, 10, hourly(10_000)); errs != nil {
		t.Fatal(errs)
	}
	if stats := store.Stats(); stats.Checks < 2000 || stats.Calls > stats.Checks/2 {
		t.Errorf("%+v, want far fewer calls than checks", stats)
	}
}

func TestADoneContextIsNotSent(t *testing.T) {
	rdb := startServer(t).client(t)
	store := redisstore.New(rdb, redisstore.Config{})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := take(canceled, store, ana, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := store.Reset(canceled, ana); !errors.Is(err, context.Canceled) {
		t.Errorf("reset: error %v, want that of the context", err)
	}
	if stats := store.Stats(); stats.Checks != 0 {
		t.Errorf("%+v, want nothing sent", stats)
	}
}

// Neither the arguments that Redis quotes nor those that a fault of its own would.
func TestErrorsAndPrintsTellNoUserAndNoSecret(t *testing.T) {
	s := startServer(t, "--rename-command", "EVALSHA", "", "--rename-command", "EVAL", "")
	const secret = "s3cr3t"
	for _, config := range []redisstore.Config{{Secret: secret}, {ReadableKeys: true}, {ReadableKeys: true, Prefix: secret}} {
		store := redisstore.New(s.client(t), config)
		_, err := take(t.Context(), store, ana, 1)
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("error %v, want that the command is unknown", err)
		}
		marshaled, marshalErr := json.Marshal(config)
		if marshalErr != nil {
			t.Error(marshalErr)
		}
		var logged strings.Builder
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("", "config", config, "store", store, "err", err)
		text := fmt.Sprintf("%v %+v %#v %v %+v %#v %v %+v %#v %s", err, err, err, store, store, store, config, config, config, marshaled) + logged.String()
		for _, private := range []string{secret, "key_ana", "33d2315c"} {
			if config.Prefix != private && strings.Contains(text, private) {
				t.Errorf("%q is in %s", private, text)
			}
		}
	}
	_, err := redisstore.Open("redis://ana:"+secret+"/x@127.0.0.1", redisstore.Config{})
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("opening a URL that cannot be read: %v", err)
	}
}

func TestWhatIsWrongIsSaidWhenTheStoreIsMade(t *testing.T) {
	for _, test := range []struct {
		rdb    redis.UniversalClient
		config redisstore.Config
		want   []string
	}{
		{nil, redisstore.Config{}, []string{"no client"}},
		{(*redis.Client)(nil), redisstore.Config{}, []string{"no client"}},
		{newClient(t, "127.0.0.1:1"), redisstore.Config{Timeout: math.MaxInt64}, []string{"timeout 2562047h47m16.854775807s", "at most 1h"}},
		{nil, redisstore.Config{Timeout: -time.Second, ReadableKeys: true, Secret: "s"},
			[]string{"no client", "timeout -1s", "choose one"}},
	} {
		func() {
			defer func() {
				text := fmt.Sprint(recover())
				for _, want := range test.want {
					if !strings.Contains(text, want) {
						t.Errorf("%v: %s, want %q in it", test.config, text, want)
					}
				}
			}()
			redisstore.New(test.rdb, test.config)
		}()
	}
}

// hook panics at each command but those of connecting.
type hook struct{ redis.Hook }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (hook) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { panic("key_ana") }
}
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAHookThatPanicsFailsItsChecksOnly(t *testing.T) {
	rdb := startServer(t).client(t)
	rdb.AddHook(hook{})
	store := redisstore.New(rdb, redisstore.Config{Timeout: time.Minute})
	for range 3 {
		if _, err := take(t.Context(), store, ana, 1); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("error %v, want that the client panicked", err)
		}
	}
}
