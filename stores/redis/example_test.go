package redisstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	ratetier "github.com/ratetier/ratetier/core"
	redisstore "github.com/ratetier/ratetier/stores/redis"
)

// Two instances of a service share the limit.
func Example() {
	server, err := miniredis.Run() // your Redis
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	newInstance := func() *ratetier.Limiter {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		limiter, err := ratetier.New(ratetier.Config{
			Store: redisstore.New(rdb, redisstore.Config{}),
			Tiers: ratetier.Tiers{"free": ratetier.PerMinute(2)},
		})
		if err != nil {
			log.Fatal(err)
		}
		return limiter
	}

	one, two := newInstance(), newInstance()
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	fmt.Println(one.Take(context.Background(), ana, 1).Outcome)
	fmt.Println(two.Take(context.Background(), ana, 1).Outcome)
	fmt.Println(one.Take(context.Background(), ana, 1).Outcome)
	// Output:
	// allowed
	// allowed
	// limited
}

func ExampleOpen() {
	server, err := miniredis.Run() // your Redis
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	url := "redis://" + server.Addr()
	store, err := redisstore.Open(url, redisstore.Config{Secret: "from the environment"})
	if err != nil {
		log.Panic(err)
	}
	defer store.Close()
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(2)},
	}))
	fmt.Println(limiter.Take(context.Background(), ratetier.Identity{User: "ana", Tier: "free"}, 1).Outcome)
	// Output: allowed
}
