// The smallest service with plans: two of them, one route, limits in memory.
//
//	go run ./examples/start
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// plans says which key has which plan. In a real service this is a database.
var plans = map[string]string{"key_ana": "free", "key_bea": "pro"}

func identify(r *http.Request) (ratetier.Identity, error) {
	key := r.Header.Get("X-Api-Key")
	plan, ok := plans[key]
	if !ok {
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	}
	return ratetier.Identity{User: key, Tier: plan}, nil
}

func newHandler() http.Handler {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerSecond(20).Burst(100),
		},
		OnMissing: ratetier.Deny(http.StatusUnauthorized),
	}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /data", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "data") })
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{Identify: identify}, mux)
}

func main() {
	server := &http.Server{Addr: "127.0.0.1:3000", Handler: newHandler(), ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}
