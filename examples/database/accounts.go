package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

const (
	fresh    = 30 * time.Second // a change of plan is seen after that
	stale    = time.Hour        // what was known is used for that long while the database is down
	absent   = 10 * time.Second // a new key works after that, where it was tried before
	again    = 5 * time.Second  // between two attempts at a database that is down
	patience = time.Second      // with the database
	most     = 10_000           // of the keys that are remembered, and of those that do not exist
)

var errTooManyKeys = errors.New("too many keys that do not exist from this address")

// account is what a key belongs to.
type account struct{ id, plan string }

// digest is what is kept of a key. Keys are long and random, unlike passwords, so a
// plain hash does not give them away.
type digest [sha256.Size]byte

func digestOf(key string) digest { return sha256.Sum256([]byte(key)) }

// accounts finds accounts by key. It spares the database: it asks once for all who wait
// for the same key, remembers the answer, and limits how many made-up keys an address
// may have it ask for. What is made up displaces only what is made up.
type accounts struct {
	query   func(context.Context, digest) (account, error)
	known   *lru.Cache[digest, remembered]
	unknown *lru.Cache[digest, time.Time] // until when
	asking  singleflight.Group
	guesses *ratetier.Limiter
}

type remembered struct {
	account      account
	fresh, stale time.Time // until when
}

func newAccounts(query func(context.Context, digest) (account, error)) (*accounts, error) {
	known, knownErr := lru.New[digest, remembered](most)
	unknown, unknownErr := lru.New[digest, time.Time](most)
	guesses, limiterErr := ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"guesses": ratetier.PerMinute(20)},
		DefaultTier: "guesses",
	})
	return &accounts{query: query, known: known, unknown: unknown, guesses: guesses},
		errors.Join(knownErr, unknownErr, limiterErr)
}

// find returns the account of a key, [ratetier.ErrNoIdentity] if there is none, and any
// other error if nobody knows. The address is that of the client.
func (a *accounts) find(ctx context.Context, key, addr string) (account, error) {
	d, now := digestOf(key), time.Now()
	if r, ok := a.known.Get(d); ok && now.Before(r.fresh) {
		return r.account, nil
	}
	if until, ok := a.unknown.Get(d); ok && now.Before(until) {
		return account{}, ratetier.ErrNoIdentity
	}
	found, err, _ := a.asking.Do(string(d[:]), func() (any, error) { return a.ask(ctx, d, addr) })
	if err != nil {
		return account{}, err
	}
	return found.(account), nil
}

// ask asks the database, and remembers what it says.
func (a *accounts) ask(ctx context.Context, d digest, addr string) (account, error) {
	// Others may wait for the answer too, when the one who asked has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	found, err := a.guess(ctx, d, addr)
	now := time.Now()
	switch {
	case err == nil:
		a.known.Add(d, remembered{found, now.Add(fresh), now.Add(stale)})
		return found, nil
	case errors.Is(err, sql.ErrNoRows):
		a.known.Remove(d)
		a.unknown.Add(d, now.Add(absent))
		return account{}, ratetier.ErrNoIdentity
	}
	if r, ok := a.known.Get(d); ok && now.Before(r.stale) {
		r.fresh = now.Add(again)
		a.known.Add(d, r)
		return r.account, nil
	}
	return account{}, fmt.Errorf("looking up an API key: %w", err)
}

// guess asks the database, unless the address has asked for too much that is not there.
func (a *accounts) guess(ctx context.Context, d digest, addr string) (account, error) {
	client := ratetier.Unidentified(ratetier.AddressKey(addr, 0), nil)
	if !a.guesses.Take(ctx, client, 1).Allowed {
		return account{}, errTooManyKeys
	}
	found, err := a.query(ctx, d)
	if !errors.Is(err, sql.ErrNoRows) {
		a.guesses.Refund(ctx, client, 1)
	}
	return found, err
}
