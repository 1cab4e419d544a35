module github.com/ratetier/ratetier/adapters/chi

go 1.25.0

require github.com/ratetier/ratetier/core v0.1.0

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/ratetier/ratetier/stores/memory v0.1.0
)

replace (
	github.com/ratetier/ratetier/core => ../../core
	github.com/ratetier/ratetier/stores/memory => ../../stores/memory
)
