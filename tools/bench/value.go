package main

import (
	"fmt"
	"math"
)

// ours is how the benchmarks call what is compared with its peers.
const ours = "ratetier"

// value is a figure of the page, and whether there are the results that it takes.
type value func(*runs) (float64, bool)

// median is the median of a benchmark's results in the unit.
func median(name, unit string) value {
	return func(r *runs) (float64, bool) { return r.median(name, unit) }
}

func minus(a, b value) value { return combine(a, b, func(a, b float64) float64 { return a - b }) }
func over(a, b value) value  { return combine(a, b, func(a, b float64) float64 { return a / b }) }

func combine(a, b value, with func(a, b float64) float64) value {
	return func(r *runs) (float64, bool) {
		x, hasX := a(r)
		y, hasY := b(r)
		return with(x, y), hasX && hasY
	}
}

// fastest is the time of the peer that takes the least.
func fastest(name string) value {
	return func(r *runs) (float64, bool) {
		least := math.Inf(1)
		for _, peer := range r.peers(name) {
			if took, ok := r.median(of(name, peer), seconds); ok && peer != ours {
				least = min(least, took)
			}
		}
		return least, !math.IsInf(least, 1)
	}
}

func duration(seconds float64) string {
	if math.Abs(seconds) < 10e-6 {
		return fmt.Sprintf("%.0f ns", seconds*1e9)
	}
	return fmt.Sprintf("%.1f µs", seconds*1e6)
}

// rate shows the time that one takes as how many there are in a second.
func rate(seconds float64) string { return fmt.Sprintf("%.0f 000/s", 1/seconds/1000) }

func count(n float64) string { return fmt.Sprintf("%.0f", n) }
func size(n float64) string  { return fmt.Sprintf("%.0f B", n) }
func times(n float64) string { return fmt.Sprintf("%.2f×", n) }
