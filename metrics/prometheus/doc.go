// Package ratetierprom counts what limiters decide, and what their stores do, for
// Prometheus.
package ratetierprom
