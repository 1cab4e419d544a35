// The program of the README: an API with plans on gin.
//
//	go run ./examples/quickstart
package main

import (
	"net/http"

	"github.com/gin-gonic/gin"

	ratetiergin "github.com/ratetier/ratetier/adapters/gin"
	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

// planOf looks up the plan of an API key. In a real service this is a database.
func planOf(key string) (string, bool) {
	plan, ok := map[string]string{"key_ana": "free", "key_bea": "pro"}[key]
	return plan, ok
}

func router() (*gin.Engine, error) {
	limiter, err := ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{
			"free":       ratetier.PerMinute(10),
			"pro":        ratetier.PerSecond(20).Burst(100).And(ratetier.PerDay(50_000)),
			"enterprise": ratetier.Unlimited(),
		},
		DefaultTier: "free",
		OnMissing:   ratetier.Deny(http.StatusUnauthorized),
	})
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.Use(ratetiergin.Middleware(limiter, ratetiergin.Config{
		Identify: func(c *gin.Context) (ratetier.Identity, error) {
			key := c.GetHeader("X-Api-Key")
			plan, ok := planOf(key)
			if !ok {
				return ratetier.Identity{}, ratetier.ErrNoIdentity
			}
			return ratetier.Identity{User: key, Tier: plan}, nil
		},
		RouteCosts: ratetiergin.RouteCosts{"GET /report": 5},
	}))
	r.GET("/data", func(c *gin.Context) { c.String(http.StatusOK, "data\n") })
	r.GET("/report", func(c *gin.Context) { c.String(http.StatusOK, "report\n") })
	return r, nil
}

func main() {
	r, err := router()
	if err == nil {
		err = r.Run("127.0.0.1:3000")
	}
	if err != nil {
		panic(err)
	}
}
