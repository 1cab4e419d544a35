package main

import (
	ratetier "github.com/ratetier/ratetier/core"
	"github.com/ratetier/ratetier/tools/internal/svg"
)

// window compares with a counter that starts anew each minute.
func window() []byte {
	requests, minute, counted := every(1, 50, 120), -1, 0
	fixed := count(requests, 120, func(second float64) bool {
		if now := int(second) / 60; now != minute {
			minute, counted = now, 0
		}
		counted++
		return counted <= 10
	})
	return svg.Plot{
		Title: "10 a minute, for a client that asks once a second from second 50 on",
		Description: "The fixed window lets 20 requests through within 20 seconds, at its edge, and none for the 50 seconds after. " +
			"GCRA lets 12 through in the first 13 seconds, then one every 6 seconds.",
		X: svg.Axis{Name: "seconds", Max: 120, Tick: 10},
		Y: svg.Axis{Name: "let through", Max: 25, Tick: 5},
		Series: []svg.Series{
			{Name: "GCRA", Shape: svg.Steps, Points: newTrial(ratetier.PerMinute(10)).admitted(requests, 120)},
			{Name: "fixed window", Shape: svg.Steps, Points: fixed},
		},
	}.SVG()
}

// burst shows what is left of a bucket.
func burst() []byte {
	t := newTrial(ratetier.PerMinute(10))
	var left, allowed, refused []svg.Point
	look := func(second float64) {
		d := t.ask(second, 0)
		left = append(left, svg.Point{X: second, Y: float64(d.Limit) - d.ResetAfter.Seconds()/6})
	}
	const above = 10.7 // where the requests are drawn
	for second := range 121 {
		at := float64(second)
		look(at)
		asks := 0
		switch {
		case second == 10:
			asks = 7
		case second > 20 && second <= 50:
			asks = 1
		}
		for range asks {
			if d := t.ask(at, 1); d.Allowed {
				allowed = append(allowed, svg.Point{X: at, Y: above})
			} else {
				refused = append(refused, svg.Point{X: at, Y: above})
			}
		}
		look(at)
	}
	return svg.Plot{
		Title: "What is left of a bucket of 10 a minute",
		Description: "Seven requests at once take 7 of 10 cells. Later, a request a second empties the bucket, and from then on one in six gets through. " +
			"Left alone, the bucket is full again within a minute.",
		X: svg.Axis{Name: "seconds", Max: 120, Tick: 10},
		Y: svg.Axis{Name: "cells", Max: 11, Tick: 2},
		Series: []svg.Series{
			{Name: "left in the bucket", Shape: svg.Line, Points: left},
			{Name: "refused", Shape: svg.Crosses, Points: refused},
			{Name: "allowed", Shape: svg.Dots, Points: allowed},
		},
	}.SVG()
}

// rates shows that the tighter of two rates decides.
func rates() []byte {
	perSecond, perMinute := ratetier.PerSecond(2), ratetier.PerMinute(30)
	requests := every(0.25, 0, 40)
	admitted := func(quota ratetier.Quota) []svg.Point { return newTrial(quota).admitted(requests, 40) }
	return svg.Plot{
		Title: "Two rates, alone and together, for a client that asks four times a second",
		Description: "Alone, 2 a second lets 2 through each second, and 30 a minute lets 34 through in the first 9 seconds. " +
			"Together they let 2 through each second for 19 seconds, then one every 2 seconds.",
		X: svg.Axis{Name: "seconds", Max: 40, Tick: 5},
		Y: svg.Axis{Name: "let through", Max: 80, Tick: 20},
		Series: []svg.Series{
			{Name: "2 a second and 30 a minute", Shape: svg.Steps, Points: admitted(perSecond.And(perMinute))},
			{Name: "2 a second", Shape: svg.Steps, Points: admitted(perSecond)},
			{Name: "30 a minute", Shape: svg.Steps, Points: admitted(perMinute)},
		},
	}.SVG()
}
