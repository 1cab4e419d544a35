module github.com/ratetier/ratetier/tools

go 1.26.0
