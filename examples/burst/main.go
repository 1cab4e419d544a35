// A fixed window against GCRA, both at 10 per minute: 10 requests arrive in second
// 59, and another 10 in second 60.
//
//	go run ./examples/burst
package main

import (
	"context"
	"fmt"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

const limit = 10

func main() {
	clock := clocktest.New(time.Unix(0, 0))
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(limit)},
		Clock: clock,
	}))
	ana := ratetier.Identity{User: "ana", Tier: "free"}

	inWindow := map[int64]int{} // a counter for each minute
	fixed, gcra := 0, 0
	for _, second := range []int64{59, 60} {
		clock.Set(time.Unix(second, 0))
		for range 10 {
			if minute := second / 60; inWindow[minute] < limit {
				inWindow[minute]++
				fixed++
			}
			if limiter.Take(context.Background(), ana, 1).Allowed {
				gcra++
			}
		}
	}
	fmt.Printf("fixed window: %d of 20 allowed in 2 seconds\n", fixed)
	fmt.Printf("GCRA:         %d of 20 allowed in 2 seconds\n", gcra)
}
