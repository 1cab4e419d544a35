// Package ratetierotel counts what limiters decide, and what their stores do, through
// the metrics API of OpenTelemetry.
package ratetierotel
