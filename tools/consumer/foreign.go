package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ratetier/ratetier/tools/internal/repo"
)

// foreign says which modules of others belong to which of ours, by the beginnings of
// their paths. What belongs to one, no other module may bring. A module that is not
// here brings nothing but modules of this repository.
var foreign = map[string][]string{
	"adapters/chi":       {"github.com/go-chi/chi"},
	"adapters/echo":      {"github.com/labstack/echo"},
	"adapters/gin":       {"github.com/gin-gonic/gin"},
	"adapters/grpc":      {"google.golang.org/grpc", "go.opentelemetry.io/otel"}, // which grpc knows of
	"metrics/otel":       {"go.opentelemetry.io/otel"},
	"metrics/prometheus": {"github.com/prometheus/client_golang"},
	"stores/fallback":    {"github.com/sony/gobreaker"},
	"stores/redis":       {"github.com/redis/go-redis", "github.com/alicebob/miniredis"},
}

// checkPulled returns an error that names each module which somebody who wanted the
// one in dir did not ask for.
func checkPulled(dir string, p pulled) error {
	var errs []error
	for _, path := range p.linked {
		if !belongs(dir, path) {
			errs = append(errs, fmt.Errorf("links %s: it is not for this module to bring", path))
		}
	}
	for _, path := range p.known {
		if !belongs(dir, path) && !slices.Contains(p.linked, path) {
			errs = append(errs, fmt.Errorf("requires %s: it is not for this module to bring", path))
		}
	}
	return errors.Join(errs...)
}

func belongs(dir, path string) bool {
	own, brings := foreign[dir]
	if strings.HasPrefix(path, repo.Prefix) || under(own, path) {
		return true
	}
	for _, prefixes := range foreign {
		if under(prefixes, path) {
			return false
		}
	}
	return brings
}

// under tells whether the path of a module begins with one of the prefixes.
func under(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}
