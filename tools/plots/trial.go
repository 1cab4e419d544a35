package main

import (
	"context"
	"time"

	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/core/clocktest"
	"github.com/ratetier/ratetier/core/storetest"
	"github.com/ratetier/ratetier/tools/internal/svg"
)

// trial is one user of one quota, from second 0 on.
type trial struct {
	start   time.Time
	clock   *clocktest.Clock
	limiter *ratetier.Limiter
}

func newTrial(quota ratetier.Quota) *trial {
	start := time.Unix(0, 0)
	clock := clocktest.New(start)
	return &trial{start, clock, ratetier.Must(ratetier.New(ratetier.Config{
		Store: storetest.Reference(),
		Tiers: ratetier.Tiers{"free": quota},
		Clock: clock,
	}))}
}

// ask sends a request of that cost at that second.
func (t *trial) ask(second float64, cost int64) ratetier.Decision {
	t.clock.Set(t.start.Add(time.Duration(second * float64(time.Second))))
	return t.limiter.Take(context.Background(), ratetier.Identity{User: "ana", Tier: "free"}, cost)
}

// admitted asks at each of the seconds, and returns how many requests have been
// allowed by then, up to the end.
func (t *trial) admitted(seconds []float64, end float64) []svg.Point {
	return count(seconds, end, func(second float64) bool { return t.ask(second, 1).Allowed })
}

func count(seconds []float64, end float64, allowed func(second float64) bool) []svg.Point {
	points, total := []svg.Point{{}}, 0.0
	for _, second := range seconds {
		if allowed(second) {
			total++
			points = append(points, svg.Point{X: second, Y: total})
		}
	}
	return append(points, svg.Point{X: end, Y: total})
}

// every returns the seconds from one to another, the last excluded, in equal steps.
func every(step, from, to float64) []float64 {
	var seconds []float64
	for i := 0; from+float64(i)*step < to; i++ {
		seconds = append(seconds, from+float64(i)*step)
	}
	return seconds
}
