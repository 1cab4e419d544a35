package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// service is the example on a real database, whose queries are counted and can fail.
type service struct {
	t        *testing.T
	handler  http.Handler
	accounts *accounts
	path     string
	exec     func(statement string)
	closeDB  func()
	queries  atomic.Int64
	down     atomic.Bool
	wait     chan struct{} // nil, or what a query waits for
}

// serve runs the test with a service, whose time passes only when the test sleeps.
func serve(t *testing.T, test func(*service)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plans.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := openDatabase(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		s := &service{t: t, path: path, closeDB: func() { _ = db.Close() }}
		defer s.closeDB()
		s.exec = func(statement string) {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		query := byKey(db)
		s.accounts, err = newAccounts(func(ctx context.Context, d digest) (account, error) {
			s.queries.Add(1)
			if s.wait != nil {
				<-s.wait
			}
			if s.down.Load() {
				return account{}, errors.New("connection refused")
			}
			return query(ctx, d)
		})
		if err != nil {
			t.Fatal(err)
		}
		if s.handler, err = newHandler(s.accounts); err != nil {
			t.Fatal(err)
		}
		test(s)
	})
}

// get returns the status and the limit that a client is told.
func (s *service) get(key, addr string) string {
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, "/data", http.NoBody)
	r.Header.Set("X-Api-Key", key)
	r.RemoteAddr = addr + ":1234"
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return strings.TrimSpace(strconv.Itoa(w.Code) + " " + w.Header().Get("X-RateLimit-Limit"))
}

// is asks, and compares the answer and how often the database has been asked so far.
func (s *service) is(key, want string, queries int64) {
	s.t.Helper()
	if got := s.get(key, "192.0.2.1"); got != want || s.queries.Load() != queries {
		s.t.Errorf("%s got %s after %d queries, want %s after %d", key, got, s.queries.Load(), want, queries)
	}
}

func TestAPlanIsLookedUpOnceAndAgainAfterItsTime(t *testing.T) {
	serve(t, func(s *service) {
		s.is("key_ana", "200 10", 1)
		s.is("key_ana", "200 10", 1)
		s.exec("UPDATE accounts SET plan = 'pro' WHERE id = 'ana'")
		time.Sleep(fresh - time.Nanosecond)
		s.is("key_ana", "200 10", 1)
		time.Sleep(time.Nanosecond)
		s.is("key_ana", "200 100", 2)
		s.exec("DELETE FROM keys")
		s.is("key_ana", "200 100", 2)
		time.Sleep(fresh)
		s.is("key_ana", "401", 3)
		s.down.Store(true)
		time.Sleep(absent)
		s.is("key_ana", "503", 4) // what was deleted is not fallen back on
	})
}

func TestAKeyThatDoesNotExistIsRememberedBriefly(t *testing.T) {
	serve(t, func(s *service) {
		s.is("key_zoe", "401", 1)
		s.is("key_zoe", "401", 1)
		s.is("", "401", 1)
		s.exec("INSERT INTO keys SELECT x'" + fmt.Sprintf("%x", digestOf("key_zoe")) + "', 'bea'")
		time.Sleep(absent - time.Nanosecond)
		s.is("key_zoe", "401", 1)
		time.Sleep(time.Nanosecond)
		s.is("key_zoe", "200 100", 2)
	})
}

func TestADatabaseThatIsDownTurnsNobodyIntoAStranger(t *testing.T) {
	serve(t, func(s *service) {
		s.is("key_ana", "200 10", 1)
		s.down.Store(true)
		s.is("key_bea", "503", 2) // nobody knows
		time.Sleep(fresh)
		s.is("key_ana", "200 10", 3) // as was known
		s.is("key_ana", "200 10", 3) // and the database is left alone for a while
		time.Sleep(again)
		s.is("key_ana", "200 10", 4)
		time.Sleep(stale)
		s.is("key_ana", "503", 5)
		s.down.Store(false)
		s.is("key_ana", "200 10", 6)
		s.is("key_bea", "200 100", 7)
	})
	serve(t, func(s *service) {
		s.is("key_ana", "200 10", 1)
		s.closeDB()
		s.is("key_bea", "503", 2)
		s.is("key_ana", "200 10", 2)
		time.Sleep(fresh)
		s.is("key_ana", "200 10", 3)
	})
}

func TestThoseWhoWaitForTheSameKeyAskOnce(t *testing.T) {
	serve(t, func(s *service) {
		s.wait = make(chan struct{})
		gone, leave := context.WithCancel(s.t.Context())
		var clients sync.WaitGroup
		clients.Go(func() { // the one who asks goes away
			r := httptest.NewRequestWithContext(gone, http.MethodGet, "/data", http.NoBody)
			r.Header.Set("X-Api-Key", "key_bea")
			s.handler.ServeHTTP(httptest.NewRecorder(), r)
		})
		synctest.Wait()
		for range 50 {
			clients.Go(func() {
				if got := s.get("key_bea", "192.0.2.1"); got != "200 100" {
					t.Errorf("got %s", got)
				}
			})
		}
		synctest.Wait()
		leave()
		close(s.wait)
		clients.Wait()
		if got := s.queries.Load(); got != 1 {
			t.Errorf("%d queries, want 1", got)
		}
	})
}

func TestAFloodOfMadeUpKeysReachesNeitherTheDatabaseNorTheMemory(t *testing.T) {
	serve(t, func(s *service) {
		s.is("key_ana", "200 10", 1)
		for i := range 10_000 {
			want := "401"
			if i >= 20 {
				want = "429"
			}
			if got := s.get("made_up_"+strconv.Itoa(i), "198.51.100.7"); got != want {
				t.Fatalf("made-up key %d got %s, want %s", i, got, want)
			}
		}
		if got := s.queries.Load(); got != 1+20 {
			t.Errorf("%d queries, want that of ana and 20 of 10000", got)
		}
		s.is("key_ana", "200 10", 21)  // is still remembered
		s.is("key_bea", "200 100", 22) // from another address
		time.Sleep(fresh)
		if got := s.get("key_ana", "198.51.100.7"); got != "200 10" { // 10 guesses have come back
			t.Errorf("a customer at the same address got %s", got)
		}
		for range 30 { // keys that exist are no guesses
			s.accounts.known.Remove(digestOf("key_bea"))
			if got := s.get("key_bea", "192.0.2.1"); got != "200 100" {
				t.Errorf("a customer that was forgotten got %s", got)
			}
		}
		for i := range 2 * most { // from everywhere
			s.accounts.unknown.Add(digestOf(strconv.Itoa(i)), time.Now())
		}
		if got := s.accounts.unknown.Len(); got != most {
			t.Errorf("%d made-up keys are remembered, want at most %d", got, most)
		}
		if got := s.accounts.known.Len(); got != 2 {
			t.Errorf("%d keys are remembered, want ana's and bea's", got)
		}
	})
}

func TestTheDatabaseHoldsNoKeys(t *testing.T) {
	serve(t, func(s *service) {
		s.is("key_ana", "200 10", 1)
		s.closeDB()
		file, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(file); strings.Contains(text, "key_ana") || !strings.Contains(text, "ana") {
			t.Error("the file holds the key itself, or no customer")
		}
	})
}
