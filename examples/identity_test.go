package examples

// The snippets of docs/policies.md on tokens and addresses.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// claims are those of a token, as authentication leaves them in the context.
type claims struct{ Issuer, Subject, Plan string }

type claimsKey struct{}

func identifyByToken(r *http.Request) (ratetier.Identity, error) {
	claims, ok := r.Context().Value(claimsKey{}).(claims) // put there once the signature is verified
	if !ok {
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	}
	return ratetier.Identity{User: claims.Issuer + " " + claims.Subject, Tier: claims.Plan}, nil
}

func Example_token() {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	_, err := identifyByToken(r)
	fmt.Println(err)

	r = r.WithContext(context.WithValue(r.Context(), claimsKey{}, claims{"https://id.example", "ana", "free"}))
	identity, err := identifyByToken(r)
	fmt.Println(identity.User, identity.Tier, err)
	fmt.Println(identity) // shows no user
	// Output:
	// ratetier: no identity
	// https://id.example ana free <nil>
	// Identity{User:REDACTED Tier:"free"}
}

func withWiderPrefix() ratetierhttp.Config {
	return ratetierhttp.Config{
		Identify:   identifyByToken,
		IPv6Prefix: 56, // what your users' providers delegate to a household
	}
}

func Example_addresses() {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       memorystore.New(),
		Tiers:       ratetier.Tiers{"anonymous": ratetier.PerMinute(10)},
		DefaultTier: "anonymous",
	}))
	handler := ratetierhttp.Middleware(limiter, withWiderPrefix())(http.NotFoundHandler())
	for _, peer := range []string{
		"192.0.2.1:1024", "192.0.2.1:2048", "[::ffff:192.0.2.1]:1024", // one
		"[2001:db8:0:100::1]:1024", "[2001:db8:0:1ff::2]:1024", // another
		"@", // a Unix socket
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Header().Get("X-RateLimit-Remaining"), "left for", peer)
	}
	// Output:
	// 9 left for 192.0.2.1:1024
	// 8 left for 192.0.2.1:2048
	// 7 left for [::ffff:192.0.2.1]:1024
	// 9 left for [2001:db8:0:100::1]:1024
	// 8 left for [2001:db8:0:1ff::2]:1024
	// 9 left for @
}
