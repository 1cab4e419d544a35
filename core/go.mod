module github.com/ratetier/ratetier/core

go 1.25.0
