module github.com/ratetier/ratetier/stores/fallback

go 1.25.0

require (
	github.com/ratetier/ratetier/core v0.1.0
	github.com/ratetier/ratetier/stores/memory v0.1.0
	github.com/sony/gobreaker/v2 v2.4.0
)

replace (
	github.com/ratetier/ratetier/core => ../../core
	github.com/ratetier/ratetier/stores/memory => ../memory
)
