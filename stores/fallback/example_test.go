package fallbackstore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	fallbackstore "github.com/ratetier/ratetier/stores/fallback"
)

// unreachable is a store of which nothing is heard.
type unreachable struct{}

var errUnreachable = errors.New("the primary is down")

func (unreachable) Apply(context.Context, *ratetier.Request, *ratetier.Result) error {
	return errUnreachable
}

func (unreachable) Reset(context.Context, ratetier.Key) error { return errUnreachable }

func Example() {
	shared := unreachable{} // usually redisstore.New(rdb, redisstore.Config{})
	store := fallbackstore.New(shared, fallbackstore.Config{
		Instances: 2,
		OnOutage: func(o fallbackstore.Outage) {
			if o.Over {
				slog.Info("limits are shared again", "after", o.Lasted)
			} else {
				fmt.Println("each instance limits by itself:", o.Err)
			}
		},
	})
	limiter, err := ratetier.New(ratetier.Config{
		Store: store,
		Tiers: ratetier.Tiers{"free": ratetier.PerMinute(10)},
	})
	if err != nil {
		log.Fatal(err)
	}
	ana := ratetier.Identity{User: "ana", Tier: "free"}
	for range 6 {
		d := limiter.Take(context.Background(), ana, 1)
		fmt.Println(d.Outcome, "degraded:", d.Degraded)
	}
	fmt.Printf("%+v\n", store.Stats())
	// Output:
	// allowed degraded: true
	// allowed degraded: true
	// allowed degraded: true
	// allowed degraded: true
	// each instance limits by itself: the primary is down
	// allowed degraded: true
	// limited degraded: true
	// {Down:true Outages:1 Failures:5 Local:6}
}

// Lines in the log for the beginning and the end of each outage.
func ExampleLogOutages() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // for this example
			}
			return a
		},
	}))
	config := fallbackstore.Config{OnOutage: fallbackstore.LogOutages(logger)}

	config.OnOutage(fallbackstore.Outage{Err: errUnreachable})
	config.OnOutage(fallbackstore.Outage{Over: true, Lasted: 90 * time.Second})
	// Output:
	// level=ERROR msg=ratetier outage=begun error="the primary is down"
	// level=INFO msg=ratetier outage=over lasted=1m30s
}
