package storetest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/gcra"
	"github.com/ratetier/ratetier/core/storetest"
)

func TestReferenceKeepsItsPromises(t *testing.T) {
	storetest.Run(t, subject{
		New: func() (store, error) { return storetest.Reference(), nil },
	})
}

// shared is a store as a server is: it goes by a clock of its own, in microseconds;
// its buckets expire after so many milliseconds, whatever the clock says; it has
// peers, and it can fail.
type shared struct {
	mu     sync.Mutex
	store  store
	now    time.Time
	expiry map[ratetier.Key]time.Duration // from now
	failed bool
	opened int
	closed int
}

func (s *shared) Apply(ctx context.Context, r *request, got *result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return errors.New("shared: failed")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("shared: %w", err)
	}
	byOwnClock := *r
	byOwnClock.Now = s.now.UnixMicro() * int64(time.Microsecond)
	err := s.store.Apply(ctx, &byOwnClock, got)
	if full := time.Duration(slices.Max(got.Used[:])); full > 0 {
		s.expiry[clone(r.Key)] = (full + time.Millisecond - 1).Truncate(time.Millisecond)
	} else {
		delete(s.expiry, r.Key)
	}
	return err
}

func (s *shared) setTime(now time.Time) {
	passed := max(0, now.Sub(s.now))
	s.now = now
	for key, left := range s.expiry {
		if s.expiry[key] = left - passed; left <= passed {
			delete(s.expiry, key)
			_ = s.store.Reset(context.Background(), key) // the reference never fails
		}
	}
}

func (s *shared) Reset(ctx context.Context, key ratetier.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed {
		return errors.New("shared: failed")
	}
	return s.store.Reset(ctx, key)
}

func (s *shared) Close() error {
	s.closed++
	return nil
}

func (s *shared) subject() subject {
	peer := func() (store, error) {
		s.opened++
		return s, nil
	}
	return subject{
		New: func() (store, error) {
			s.store, s.failed = storetest.Reference(), false
			s.expiry = map[ratetier.Key]time.Duration{}
			return peer()
		},
		Peer:    peer,
		SetTime: s.setTime,
		Buckets: func() (int, error) { return len(s.expiry), nil },
		Fail:    func() { s.failed = true },
	}
}

func TestAStoreWithAClockAndPeersKeepsItsPromises(t *testing.T) {
	var store shared
	storetest.Run(t, store.subject())
	if store.opened == 0 || store.closed != store.opened {
		t.Errorf("%d stores made, %d closed", store.opened, store.closed)
	}
}

func TestAStoreThatIgnoresItsClockIsCaught(t *testing.T) {
	var store shared
	subject := store.subject()
	subject.SetTime = nil
	if err := storetest.Check(t.Context(), subject); err == nil {
		t.Error("not caught")
	}
}

// The suite asks a store for nothing that a limiter would not, and leaves a store
// whose expiry it cannot control the time it says.
func TestRequestsAreThoseOfALimiter(t *testing.T) {
	storetest.Run(t, around(func(next store) store {
		return wrapper{next, func(ctx context.Context, r *request, got *result) error {
			if err := valid(r); err != nil {
				return err
			}
			if *got != (result{}) {
				return fmt.Errorf("the result is %v before", *got)
			}
			return next.Apply(ctx, r, got)
		}}
	}))
}

func valid(r *request) error {
	if n := len(r.Limits); n < 1 || n > ratetier.MaxRates {
		return fmt.Errorf("%d rates", n)
	}
	if r.Cost < 0 || r.Now%int64(time.Microsecond) != 0 {
		return fmt.Errorf("cost %d at %d", r.Cost, r.Now)
	}
	for _, limit := range r.Limits {
		if limit.Offset < int64(storetest.MinRefill) || limit.Offset > int64(gcra.MaxOffset) {
			return fmt.Errorf("a bucket that fills in %v", time.Duration(limit.Offset))
		}
		if r.Mode == ratetier.ModeTake && (limit.Interval < 1 || limit.Offset%limit.Interval != 0 || r.Cost > limit.Burst()) {
			return fmt.Errorf("take %d of %v", r.Cost, limit)
		}
	}
	return nil
}

// broken returns the promises that err says are broken.
func broken(err error) (promises []string) {
	for _, found := range regexp.MustCompile(`(?m)^broken promise: (.*):$`).FindAllStringSubmatch(err.Error(), -1) {
		promises = append(promises, found[1])
	}
	return promises
}

var errNew = errors.New("no server")

// all returns every promise of the suite.
func all(t *testing.T) []string {
	t.Helper()
	err := storetest.Check(t.Context(), subject{
		New:  func() (store, error) { return nil, errNew },
		Fail: func() {},
	})
	if !errors.Is(err, errNew) {
		t.Fatalf("%v, want one that is %v", err, errNew)
	}
	return broken(err)
}

// contract returns what a file of Go code says in comments, in one line.
func contract(t *testing.T, file string) string {
	t.Helper()
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(code)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "//"); ok {
			words = append(words, strings.Fields(text)...)
		} else {
			words = append(words, "\n")
		}
	}
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(words, " "))
}

func TestCasesAreSentencesOfTheContract(t *testing.T) {
	text, promises := contract(t, "../store.go"), all(t)
	for _, promise := range promises {
		if !strings.Contains(text, promise) {
			t.Errorf("%q is not in store.go", promise)
		}
	}
}

func TestEveryNumberedPromiseHasACase(t *testing.T) {
	promises := all(t)
	_, list, ok := strings.Cut(contract(t, "../store.go"), " 1. Apply is atomic.")
	if !ok {
		t.Fatal("the list is not in store.go")
	}
	list, _, _ = strings.Cut(list, "\n")
	numbered := regexp.MustCompile(` \d+\. `).Split(list, -1)
	if len(numbered) != 11 {
		t.Errorf("found %d promises, want 11", len(numbered))
	}
	for _, promise := range numbered {
		if !slices.ContainsFunc(promises, func(part string) bool { return strings.Contains(promise, part) }) {
			t.Errorf("no case for %q", promise)
		}
	}
}

func TestWhatASubjectCannotDoIsReported(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*subject)
		want   string
	}{
		{"New", func(s *subject) { s.New = func() (store, error) { return nil, errNew } }, "New: no server"},
		{"Peer", func(s *subject) { s.Peer = func() (store, error) { return nil, errNew } }, "Peer: no server"},
		{"Buckets", func(s *subject) { s.Buckets = func() (int, error) { return 0, errNew } }, "Buckets: no server"},
		{"Close", func(s *subject) {
			s.New = func() (store, error) { return unclosable{storetest.Reference()}, nil }
		}, "closing what New returned: no server"},
		{"Close of the peer", func(s *subject) {
			reference := storetest.Reference()
			s.New = func() (store, error) { reference = storetest.Reference(); return reference, nil }
			s.Peer = func() (store, error) { return unclosable{reference}, nil }
		}, "closing what Peer returned: no server"},
		{"Apply", func(s *subject) {
			s.New = func() (store, error) {
				return wrapper{storetest.Reference(), func(context.Context, *request, *result) error { return errNew }}, nil
			}
		}, "no server"},
		{"Reset", func(s *subject) {
			s.New = func() (store, error) { return unresettable{storetest.Reference()}, nil }
		}, `reset of tier "free", user "ana": no server`},
	} {
		t.Run(test.name, func(t *testing.T) {
			subject := subject{New: func() (store, error) { return storetest.Reference(), nil }}
			test.change(&subject)
			if err := storetest.Check(t.Context(), subject); err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, errNew) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

type unclosable struct{ store }

func (unclosable) Close() error { return errNew }

type unresettable struct{ store }

func (unresettable) Reset(context.Context, ratetier.Key) error { return errNew }

func TestTheSameFaultIsNotToldForEver(t *testing.T) {
	err := storetest.Check(t.Context(), keyed(func(ratetier.Key) ratetier.Key { return ratetier.Key{} }))
	if err == nil || !strings.Contains(err.Error(), "\nand 275 more\n") {
		t.Errorf("error %v, want the number of what is not told", err)
	}
}

func TestAPanicIsABrokenPromise(t *testing.T) {
	err := storetest.Check(t.Context(), around(func(next store) store {
		return wrapper{next, func(context.Context, *request, *result) error { panic("out of range") }}
	}))
	if err == nil || !strings.Contains(err.Error(), "panic: out of range") {
		t.Errorf("error %v, want the panic", err)
	}
}

func TestBench(t *testing.T) {
	benchtime := flag.Lookup("test.benchtime").Value
	was := benchtime.String()
	if err := benchtime.Set("1x"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := benchtime.Set(was); err != nil {
			t.Error(err)
		}
	}()
	run := func(subject subject) (ok bool) {
		testing.Benchmark(func(b *testing.B) {
			storetest.Bench(b, subject)
			ok = !b.Failed()
		})
		return ok
	}

	var good shared
	if !run(good.subject()) {
		t.Error("a good store failed")
	}
	if good.closed != good.opened {
		t.Errorf("%d stores made, %d closed", good.opened, good.closed)
	}
	for name, subject := range map[string]subject{
		"no store": {New: func() (store, error) { return nil, errNew }},
		"no end":   {New: func() (store, error) { return unclosable{storetest.Reference()}, nil }},
		"an error": around(func(next store) store {
			return wrapper{next, func(context.Context, *request, *result) error { return errNew }}
		}),
		"all refused": around(func(next store) store {
			return wrapper{next, func(context.Context, *request, *result) error { return nil }}
		}),
		"all allowed": around(func(next store) store {
			return wrapper{next, func(_ context.Context, _ *request, got *result) error {
				got.Allowed = true
				return nil
			}}
		}),
	} {
		if run(subject) {
			t.Errorf("%s: not noticed", name)
		}
	}
}
