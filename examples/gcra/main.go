// GCRA step by step: 10 requests per minute, on a clock that moves when told.
//
//	go run ./examples/gcra
package main

import (
	"context"
	"fmt"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func main() {
	start := time.Unix(0, 0)
	clock := clocktest.New(start)
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
		Clock: clock,
	}))
	ana := ratetier.Identity{User: "ana", Tier: "free"}

	steps := []struct {
		wait     time.Duration
		requests int
	}{{0, 11}, {6 * time.Second, 2}, {30 * time.Second, 6}}
	for _, step := range steps {
		t := clock.Advance(step.wait).Sub(start)
		for range step.requests {
			if d := limiter.Take(context.Background(), ana, 1); d.Allowed {
				fmt.Printf("t=%2.0fs  200  remaining %d\n", t.Seconds(), d.Remaining)
			} else {
				fmt.Printf("t=%2.0fs  429  retry after %.0f s\n", t.Seconds(), d.RetryAfter.Seconds())
			}
		}
	}
}
