package memorystore_test

import (
	"context"
	"fmt"
	"log"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func Example() {
	limiter, err := ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(2)},
	})
	if err != nil {
		log.Fatal(err)
	}
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	for range 3 {
		fmt.Println(limiter.Take(context.Background(), ana, 1).Outcome)
	}
	// Output:
	// allowed
	// allowed
	// limited
}

func ExampleNewWith() {
	store, err := memorystore.NewWith(memorystore.Config{
		MaxBuckets: 100_000,
		OnEvict: func(e memorystore.Eviction) {
			log.Printf("too many users at once: forgot one %v early", e.FullIn)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(2)},
	}))
	limiter.Take(context.Background(), ratetier.Identity{User: "ana", Tier: "free"}, 1)
	fmt.Printf("%+v\n", store.Stats())
	// Output: {Buckets:1 Evictions:0}
}
