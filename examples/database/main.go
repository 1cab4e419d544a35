// API keys and plans in a database, looked up through a cache. A database that is down
// turns no customer into a stranger, and a flood of made-up keys does not reach it.
//
//	go run ./examples/database
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/httplimit"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

const schema = `
CREATE TABLE IF NOT EXISTS accounts (id TEXT PRIMARY KEY, plan TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS keys (digest BLOB PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (id));`

// openDatabase opens the database, with two customers in it.
func openDatabase(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(500)")
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, schema)
	for _, customer := range []struct{ id, plan, key string }{{"ana", "free", "key_ana"}, {"bea", "pro", "key_bea"}} {
		if err == nil {
			_, err = db.ExecContext(ctx, "INSERT OR IGNORE INTO accounts VALUES (?, ?)", customer.id, customer.plan)
		}
		if err == nil {
			d := digestOf(customer.key)
			_, err = db.ExecContext(ctx, "INSERT OR IGNORE INTO keys VALUES (?, ?)", d[:], customer.id)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// byKey returns the query for the account of a key.
func byKey(db *sql.DB) func(context.Context, digest) (account, error) {
	return func(ctx context.Context, d digest) (found account, err error) {
		row := db.QueryRowContext(ctx, "SELECT id, plan FROM keys JOIN accounts ON id = account WHERE digest = ?", d[:])
		err = row.Scan(&found.id, &found.plan)
		return found, err
	}
}

func newHandler(accounts *accounts) (http.Handler, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier:      "free",
		OnMissing:        ratetier.Deny(http.StatusUnauthorized),
		OnIdentifyFailed: ratetier.Deny(http.StatusServiceUnavailable), // which is the default
		Observer:         ratetier.LogEvents(slog.Default()),
	})
	if err != nil {
		return nil, err
	}
	identify := func(r *http.Request) (ratetier.Identity, error) {
		key := r.Header.Get("X-Api-Key")
		if key == "" {
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		}
		found, err := accounts.find(r.Context(), key, r.RemoteAddr)
		if err != nil {
			return ratetier.Identity{}, err
		}
		return ratetier.Identity{User: found.id, Tier: found.plan}, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "data") })
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify, Respond: tellGuessers}, mux), nil
}

// tellGuessers keeps those who guess from being told, and counted, as if the database
// were down.
func tellGuessers(_ *http.Request, refusal *httplimit.Refusal) {
	if errors.Is(refusal, errTooManyKeys) {
		refusal.Status, refusal.Body = http.StatusTooManyRequests, []byte(`{"error":"too many unknown keys"}`)
	}
}

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen")
	path := flag.String("db", filepath.Join(os.TempDir(), "ratetier-plans.db"), "the SQLite file with keys and plans")
	flag.Parse()
	if err := run(*addr, *path, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, path string, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	db, err := openDatabase(ctx, path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = db.Close() }()
	accounts, err := newAccounts(byKey(db))
	if err != nil {
		return err
	}
	handler, err := newHandler(accounts)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `listening on http://%[1]s

curl -i -H 'X-Api-Key: key_ana' %[1]s/data                        # free: 10 a minute
sqlite3 %[2]s "UPDATE accounts SET plan = 'pro' WHERE id = 'ana'"  # is seen after %[3]v
curl -i -H 'X-Api-Key: key_zoe' %[1]s/data                        # a key that does not exist
`, listener.Addr(), path, fresh)

	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
