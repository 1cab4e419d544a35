package examples

// The snippets of docs/policies.md.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

var errDatabase = errors.New("database: connection refused")

type account struct{ id, plan string }

type database struct{ err error }

func (db database) account(_ context.Context, key string) (account, error) {
	return account{id: "acct_" + key, plan: "free"}, db.err
}

var errNoAccount = errors.New("no such account")

func identifyFrom(db database) func(*http.Request) (ratetier.Identity, error) {
	return func(r *http.Request) (ratetier.Identity, error) {
		key := r.Header.Get("X-Api-Key")
		if key == "" {
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		}
		account, err := db.account(r.Context(), key)
		switch {
		case errors.Is(err, errNoAccount):
			return ratetier.Identity{}, ratetier.ErrNoIdentity
		case err != nil:
			return ratetier.Identity{}, err // not anonymous: nobody knows
		}
		return ratetier.Identity{User: account.id, Tier: account.plan}, nil
	}
}

func newStrictLimiter() (*ratetier.Limiter, error) {
	return ratetier.New(ratetier.Config{
		Store:            memorystore.New(),
		Tiers:            ratetier.Tiers{"free": ratetier.PerMinute(10)},
		DefaultTier:      "free",
		OnMissing:        ratetier.Deny(http.StatusUnauthorized),
		OnUnknownTier:    ratetier.UseDefaultTier(),
		OnIdentifyFailed: ratetier.Deny(http.StatusServiceUnavailable),
		OnStoreFailed:    ratetier.Deny(http.StatusServiceUnavailable),
		Observer:         ratetier.LogEvents(slog.Default()),
	})
}

func Example_policies() {
	limiter := ratetier.Must(newStrictLimiter())
	for _, db := range []database{{}, {errNoAccount}, {errDatabase}} {
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-Api-Key", "key_ana")
		identity, err := identifyFrom(db)(r)
		if err != nil {
			identity = ratetier.Unidentified("192.0.2.1", err)
		}
		d := limiter.Take(context.Background(), identity, 1)
		fmt.Println(d.Outcome, d.Status)
	}
	// Output:
	// allowed 0
	// missing_identity 401
	// identify_failed 503
}

func behindProxy() ratetierhttp.Config {
	return ratetierhttp.Config{
		Identify: identifyFrom(database{}),
		ClientAddr: func(r *http.Request) string {
			return r.Header.Get("X-Real-Ip") // only where a proxy of yours sets it on every request
		},
	}
}

func Example_behindProxy() {
	fmt.Println(behindProxy().ClientAddr(&http.Request{Header: http.Header{"X-Real-Ip": {"192.0.2.1"}}}))
	// Output:
	// 192.0.2.1
}
