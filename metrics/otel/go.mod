module github.com/ratetier/ratetier/metrics/otel

go 1.26.0

require (
	github.com/ratetier/ratetier/core v0.1.0
	github.com/ratetier/ratetier/stores/memory v0.1.0
)

replace (
	github.com/ratetier/ratetier/core => ../../core
	github.com/ratetier/ratetier/stores/memory => ../../stores/memory
)
