// An API with plans whose limiter can be watched: metrics for Prometheus, on an address
// of their own, and lines in the log for what an operator should know.
//
//	go run ./examples/metrics
//	curl -i -H 'X-Api-Key: key_ana' 127.0.0.1:3000/report/1
//	curl 127.0.0.1:3001/metrics
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
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
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen")
	metrics := flag.String("metrics", "127.0.0.1:3001", "where to tell Prometheus, and nobody else")
	flag.Parse()
	if err := run(*addr, *metrics, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, metricsAddr string, out io.Writer) error {
	secret := os.Getenv("LOG_SECRET")
	if secret == "" {
		secret = "not a secret" // good enough to try it out
	}
	api, metrics, err := newService(slog.Default(), secret)
	if err != nil {
		return err
	}
	pages := http.NewServeMux()
	pages.Handle("GET /metrics", metrics)

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	pagesListener, err := net.Listen("tcp", metricsAddr)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintf(out, `listening on http://%[1]s

curl -i -H 'X-Api-Key: key_ana' %[1]s/report/1   # free: 10 a minute, a report costs 5
curl -i -H 'X-Api-Key: key_eva' %[1]s/data/1     # an unknown plan gets the free one, and a line in the log
curl %[2]s/metrics
`, listener.Addr(), pagesListener.Addr())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ended := make(chan error)
	go func() { ended <- serve(ctx, pagesListener, pages) }()
	err = serve(ctx, listener, api)
	stop()
	return errors.Join(err, <-ended)
}

// serve serves until the context is done.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
