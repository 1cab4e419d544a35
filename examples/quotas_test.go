package examples

// The snippets of docs/quotas.md.

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example_quotas() {
	tiers := ratetier.Tiers{
		"free":       ratetier.PerMinute(10),
		"custom":     ratetier.Per(17, 30*time.Second),
		"smooth":     ratetier.PerSecond(100).Burst(1),
		"pro":        ratetier.PerSecond(20).Burst(100).And(ratetier.PerDay(50_000)),
		"enterprise": ratetier.Unlimited(),
		"suspended":  ratetier.Blocked(),
	}
	text, err := json.MarshalIndent(tiers, "", "  ")
	fmt.Println(string(text), err)
	// Output:
	// {
	//   "custom": "17/30s",
	//   "enterprise": "unlimited",
	//   "free": "10/min",
	//   "pro": "20/s burst 100 and 50000/day",
	//   "smooth": "100/s burst 1",
	//   "suspended": "blocked"
	// } <nil>
}

func Example_quotaText() {
	var tiers ratetier.Tiers
	err := json.Unmarshal([]byte(`{"free": "10/min", "pro": "20/s burst 100 and 50000/day"}`), &tiers)
	fmt.Println(tiers["pro"], err)

	_, err = ratetier.ParseQuota("0")
	fmt.Println(err)
	// Output:
	// 20/s burst 100 and 50000/day <nil>
	// ratetier: quota "0": write a rate such as "10/min" or "20/s burst 100", "unlimited" or "blocked"
}

func Example_reload() {
	ctx, ana := context.Background(), ratetier.Identity{User: "ana", Tier: "free"}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerHour(100)},
		Clock: clocktest.New(time.Unix(0, 0)),
	}))
	limiter.Take(ctx, ana, 90)

	err := limiter.SetTiers(ratetier.Tiers{"free": ratetier.PerHour(10)})
	d := limiter.Peek(ctx, ana)
	fmt.Println(d.Remaining, "of", d.Limit, err) // 90 of 100 used is 9 of 10 used

	err = limiter.SetTiers(ratetier.Tiers{"free": ratetier.PerHour(0)})
	fmt.Println(err)
	// Output:
	// 1 of 10 <nil>
	// ratetier: tiers unchanged: tier "free": count 0: must be at least 1
}

func Example_reloadToAnotherWindow() {
	ctx, ana := context.Background(), ratetier.Identity{User: "ana", Tier: "free"}
	for _, change := range [][2]ratetier.Quota{
		{ratetier.PerHour(10), ratetier.PerHour(100)},
		{ratetier.PerHour(10), ratetier.PerMinute(10)},
		{ratetier.PerMinute(10), ratetier.PerHour(10)},
	} {
		limiter := ratetier.Must(ratetier.New(ratetier.Config{
			Store: memorystore.New(),
			Tiers: ratetier.Tiers{"free": change[0]},
			Clock: clocktest.New(time.Unix(0, 0)),
		}))
		limiter.Take(ctx, ana, 10)
		err := limiter.SetTiers(ratetier.Tiers{"free": change[1]})
		d := limiter.Peek(ctx, ana)
		fmt.Println(change, d.Remaining, "left, full in", d.ResetAfter, err)
	}
	// Output:
	// [10/h 100/h] 0 left, full in 1h0m0s <nil>
	// [10/h 10/min] 0 left, full in 1m1s <nil>
	// [10/min 10/h] 9 left, full in 1m0s <nil>
}

func Example_shadow() {
	ctx, ana := context.Background(), ratetier.Identity{User: "ana", Tier: "free"}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(1).Shadow()},
		Clock: clocktest.New(time.Unix(0, 0)),
	}))
	for range 2 {
		d := limiter.Take(ctx, ana, 1)
		fmt.Println(d.Outcome, d.Allowed, d.Shadow)
	}
	// Output:
	// allowed true false
	// limited true true
}
