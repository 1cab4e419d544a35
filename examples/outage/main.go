// An outage from beginning to end: a Redis that stops and comes back, and an instance of
// a service that limits by itself meanwhile. The Redis is one of its own, in this process.
//
//	go run ./examples/outage
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9/logging"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

var ana = ratetier.Identity{User: "key_ana", Tier: "free"}

func run(w io.Writer) error {
	redis, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer redis.Close()
	shared, err := redisstore.Open("redis://"+redis.Addr(), redisstore.Config{
		Timeout: 10 * time.Second, // in a service, the 100 ms that are the default
	})
	if err != nil {
		return err
	}
	defer func() { _ = shared.Close() }()

	over := make(chan struct{})
	store := fallbackstore.New(shared, fallbackstore.Config{
		Instances:  2,                     // each admits half of the quota by itself
		ProbeEvery: 50 * time.Millisecond, // in a service, the second that is the default
		OnOutage: func(o fallbackstore.Outage) {
			if o.Over {
				close(over)
				return
			}
			fmt.Fprintln(w, "  the outage begins")
		},
	})
	limiter, err := ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerDay(20)},
	})
	if err != nil {
		return err
	}

	fmt.Fprintln(w, "Redis is up")
	take(w, limiter, 8)

	redis.Close()
	fmt.Fprintln(w, "Redis is gone")
	take(w, limiter, 12)

	if err := redis.Restart(); err != nil {
		return err
	}
	fmt.Fprintln(w, "Redis is back")
	for waiting := true; waiting; { // a request starts a probe when it is time to
		limiter.Peek(context.Background(), ana)
		select {
		case <-over:
			waiting = false
		case <-time.After(time.Millisecond):
		}
	}
	fmt.Fprintln(w, "  the outage is over")
	take(w, limiter, 15)
	return nil
}

// take makes that many requests, and says what came of them.
func take(w io.Writer, limiter *ratetier.Limiter, requests int) {
	passed, locally := 0, 0
	for range requests {
		d := limiter.Take(context.Background(), ana, 1)
		if d.Allowed {
			passed++
		}
		if d.Degraded {
			locally++
		}
	}
	fmt.Fprintf(w, "  %d of %d requests pass, %d decided locally\n", passed, requests, locally)
}

func main() {
	logging.Disable() // the Redis client tells of each connection that it cannot make
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}
