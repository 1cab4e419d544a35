package ratetier_test

import (
	"context"
	"log/slog"
	"os"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/storetest"
)

// A line about a plan that is not configured, which names the user by a hash.
func ExampleLogEventsWith() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	limiter := ratetier.Must(ratetier.New(ratetier.Config{
		Store:       storetest.Reference(), // for this example; use a real one
		Tiers:       ratetier.Tiers{"free": ratetier.PerMinute(10)},
		DefaultTier: "free",
		Observer: ratetier.LogEventsWith(ratetier.LogConfig{
			Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})),
			Users:  ratetier.HashUsers("pepper"),
		}),
	}))
	limiter.Take(context.Background(), ratetier.Identity{User: "key_eva", Tier: "gold"}, 1)
	// Output:
	// level=WARN msg=ratetier outcome=unknown_tier allowed=true tier=gold route="" cost=1 user=00b187303e2c96cc
}
