package migrating

import (
	"context"
	"testing"
	"time"

	"golang.org/x/time/rate"

	ratetier "github.com/ratetier/ratetier/core"
	memorystore "github.com/ratetier/ratetier/stores/memory"
)

func fromXTimeRate() func(user string) bool {
	limiters := map[string]*rate.Limiter{}
	return func(user string) bool {
		limiter := limiters[user]
		if limiter == nil {
			limiter = rate.NewLimiter(rate.Every(6*time.Second), 10)
			limiters[user] = limiter
		}
		return limiter.AllowN(time.Now(), 1)
	}
}

func fromMapToTake(ctx context.Context) func(user string) bool {
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store: memorystore.New(),
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
	}))
	return func(user string) bool {
		return limiter.Take(ctx, ratetier.Identity{User: user, Tier: "free"}, 1).Allowed
	}
}

func TestXTimeRateAllowsTheSame(t *testing.T) {
	for name, allowed := range map[string]func(string) bool{"x/time/rate": fromXTimeRate(), "ratetier": fromMapToTake(t.Context())} {
		for _, user := range []string{"ana", "bea"} {
			passed := 0
			for range 20 {
				if allowed(user) {
					passed++
				}
			}
			if passed != 10 {
				t.Errorf("%s let %d of 20 requests of %s through, want 10", name, passed, user)
			}
		}
	}
}
