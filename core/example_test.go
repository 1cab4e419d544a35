package ratetier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/storetest"
)

// The examples use the store of the test suite; a service uses memorystore.
func newLimiter(tiers ratetier.Tiers) (*ratetier.Limiter, *clocktest.Clock) {
	clock := clocktest.New(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	return ratetier.Must(ratetier.New(ratetier.Config{
		Store: storetest.Reference(),
		Tiers: tiers,
		Clock: clock,
	})), clock
}

func ExampleNew() {
	_, err := ratetier.New(ratetier.Config{
		Store: storetest.Reference(),
		Tiers: ratetier.Tiers{
			"free": ratetier.PerMinute(0),
			"pro":  ratetier.PerSecond(20).Burst(100),
		},
		DefaultTier: "fre",
	})
	fmt.Println(err)
	// Output:
	// ratetier: tier "free": count 0: must be at least 1
	// default tier "fre" is not among the tiers ["free" "pro"]
}

func ExampleLimiter_Take() {
	limiter, clock := newLimiter(ratetier.Tiers{"free": ratetier.PerMinute(10)})
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	for _, cost := range []int64{8, 5} {
		d := limiter.Take(context.Background(), ana, cost)
		fmt.Println(d.Outcome, d.Remaining, "left, retry after", d.RetryAfter)
	}
	clock.Advance(18 * time.Second)
	d := limiter.Take(context.Background(), ana, 5)
	fmt.Println(d.Outcome, d.Remaining, "left, full again in", d.ResetAfter)
	// Output:
	// allowed 2 left, retry after 0s
	// limited 2 left, retry after 18s
	// allowed 0 left, full again in 1m0s
}

func ExampleLimiter_SetTiers() {
	limiter, _ := newLimiter(ratetier.Tiers{"free": ratetier.PerHour(100)})
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	limiter.Take(context.Background(), ana, 50)
	err := limiter.SetTiers(ratetier.Tiers{"free": ratetier.PerHour(10)})
	d := limiter.Peek(context.Background(), ana)
	fmt.Println(d.Remaining, "of", d.Limit, err)
	// Output:
	// 5 of 10 <nil>
}

// A request of unknown cost reserves an estimate, and settles when the work is done.
func ExampleAdmission_Settle() {
	limiter, _ := newLimiter(ratetier.Tiers{"pro": ratetier.PerMinute(1000)})
	bea := ratetier.Identity{User: "bea", Tier: "pro"}

	ctx, admission := limiter.Admit(context.Background(), ratetier.Check{Identity: bea, Cost: 400})
	if !admission.Decision().Allowed {
		return
	}
	tokens := int64(120) // what the work turned out to be
	err := admission.Settle(ctx, tokens)
	fmt.Println(limiter.Peek(ctx, bea).Remaining, err)
	// Output:
	// 880 <nil>
}

func ExampleFromContext() {
	limiter, _ := newLimiter(ratetier.Tiers{"free": ratetier.PerMinute(10)})
	ctx, _ := limiter.Admit(context.Background(), ratetier.Check{Identity: ratetier.Identity{User: "ana", Tier: "free"}, Cost: 1})
	if admission, ok := ratetier.FromContext(ctx); ok {
		d := admission.Decision()
		fmt.Println(d.Remaining, "of", d.Limit)
	}
	// Output:
	// 9 of 10
}

func ExampleParseQuota() {
	quota, err := ratetier.ParseQuota("20/s burst 100 and 50000/day")
	fmt.Println(quota.Rates(), err)
	_, err = ratetier.ParseQuota("10/month")
	fmt.Println(err)
	// Output:
	// [20/s burst 100 50000/day] <nil>
	// ratetier: quota "10/month": window "month": write s, min, h, day, days as in "7day" or a duration such as "30s"
}

func ExampleTiers() {
	var tiers ratetier.Tiers
	err := json.Unmarshal([]byte(`{"free": "10/min", "enterprise": "unlimited"}`), &tiers)
	fmt.Println(tiers["free"], tiers["enterprise"], err)
	// Output:
	// 10/min unlimited <nil>
}

func ExampleQuota_Shadow() {
	limiter, _ := newLimiter(ratetier.Tiers{"free": ratetier.PerMinute(1).Shadow()})
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	limiter.Take(context.Background(), ana, 1)
	d := limiter.Take(context.Background(), ana, 1)
	fmt.Println(d.Outcome, d.Allowed)
	// Output:
	// limited true
}

func ExampleObserver() {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       storetest.Reference(),
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(10)},
		DefaultTier: "free",
		Observer: func(event ratetier.Event) {
			if event.Defaulted == ratetier.OutcomeUnknownTier {
				fmt.Fprintf(os.Stdout, "unknown tier %q\n", event.Identity.Tier)
			}
		},
	}))
	limiter.Take(context.Background(), ratetier.Identity{User: "eva", Tier: "gold"}, 1)
	// Output:
	// unknown tier "gold"
}
