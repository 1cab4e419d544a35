module github.com/ratetier/ratetier/stores/redis

go 1.26.0

require github.com/ratetier/ratetier/core v0.1.0

replace github.com/ratetier/ratetier/core => ../../core
