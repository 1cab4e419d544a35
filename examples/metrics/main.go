// An API with plans whose limiter can be watched: metrics for Prometheus, on an address
// of their own, and lines in the log for what an operator should know.
//
//	go run ./examples/metrics
//	curl -i -H 'X-Api-Key: key_ana' 127.0.0.1:3000/report/1
//	curl 127.0.0.1:3001/metrics
package main

import (
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	ratetierprom "github.com/ratetier/ratetier/metrics/prometheus"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// plans says which key has which plan. In a real service this is a database.
var plans = map[string]string{
	"key_ana": "free",
	"key_bea": "pro",
	"key_eva": "gold", // a plan that the limiter does not know
}

func identify(r *http.Request) (ratetier.Identity, error) {
	key := r.Header.Get("X-Api-Key")
	plan, ok := plans[key]
	if !ok {
		return ratetier.Identity{}, ratetier.ErrNoIdentity
	}
	return ratetier.Identity{User: key, Tier: plan}, nil
}

// newService returns the API, and what Prometheus is to read.
func newService(logger *slog.Logger, secret string) (api, metrics http.Handler, err error) {
	registry := prometheus.NewRegistry()
	observer, err := ratetierprom.NewObserver(registry, "memory")
	if err != nil {
		return nil, nil, err
	}
	store := memorystore.New()
	if err := ratetierprom.RegisterStats(registry, "memory", store.Stats); err != nil {
		return nil, nil, err
	}
	limiter, err := ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
		Observer: ratetier.Observers(observer, ratetier.LogEventsWith(ratetier.LogConfig{
			Logger: logger,
			Users:  ratetier.HashUsers(secret),
		})),
	})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	for _, name := range []string{"data", "report"} {
		mux.HandleFunc("GET /"+name+"/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) })
	}
	api = ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify:   identify,
		RouteCosts: ratetierhttp.RouteCosts{"GET /report/{id}": 5},
	}, mux)
	return api, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

func main() {
	secret := os.Getenv("LOG_SECRET")
	if secret == "" {
		secret = "not a secret" // good enough to try it out
	}
	api, metrics, err := newService(slog.Default(), secret)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	go func() { log.Fatal(serve("127.0.0.1:3001", mux)) }() // where only Prometheus gets to
	log.Fatal(serve("127.0.0.1:3000", api))
}

func serve(addr string, handler http.Handler) error {
	server := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	return server.ListenAndServe()
}
