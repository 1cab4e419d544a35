module github.com/ratetier/ratetier/stores/memory

go 1.25.0

require github.com/ratetier/ratetier/core v0.1.0

replace github.com/ratetier/ratetier/core => ../../core
