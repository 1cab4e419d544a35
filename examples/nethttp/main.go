// An API with plans on net/http. The key in X-Api-Key decides the plan, and each
// route has its cost.
//
//	go run ./examples/nethttp
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	ratetierhttp "github.com/ratetier/ratetier/adapters/nethttp"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// plans says who has which plan. In a real service this is a database.
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

// observe reports what the limiter had to make do with.
func observe(event ratetier.Event) {
	if event.Defaulted == ratetier.OutcomeUnknownTier {
		fmt.Fprintf(os.Stderr, "unknown tier %q for %s\n", event.Identity.Tier, event.Identity.User)
	}
}

func newHandler(store ratetier.Store) (http.Handler, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(10),
			"pro":  ratetier.PerMinute(100),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
		Observer:    observe,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, name := range []string{"data", "report", "backup"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, name)
		})
	}
	return ratetierhttp.Mux(limiter, ratetierhttp.Config{
		Identify: identify,
		RouteCosts: ratetierhttp.RouteCosts{
			"GET /report": 5,
			"GET /backup": 50, // more than the free plan ever allows at once
		},
	}, mux), nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "where to listen")
	redis := flag.String("redis", "", "URL of a Redis to keep the limits in (default: this process)")
	flag.Parse()
	if err := run(*addr, *redis, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newStore returns where the limits are kept: in Redis if there is a URL, or else in
// this process.
func newStore(redisURL string) (ratetier.Store, error) {
	if redisURL == "" {
		return memorystore.New(), nil
	}
	return redisstore.Open(redisURL, redisstore.Config{})
}

func run(addr, redis string, out io.Writer) error {
	store, err := newStore(redis)
	if err != nil {
		return err
	}
	handler, err := newHandler(store)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `listening on http://%[1]s

curl -i -H 'X-Api-Key: key_ana' %[1]s/data     # free: 10 a minute
curl -i -H 'X-Api-Key: key_bea' %[1]s/report   # pro: 100 a minute, a report costs 5
curl -i -H 'X-Api-Key: key_eva' %[1]s/backup   # an unknown plan gets the free one
curl -i %[1]s/data                             # no key
`, listener.Addr())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
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
