# What CI checks and what a person runs are the same targets. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

GO ?= go
BIN := $(CURDIR)/.bin

# One list of modules drives every target. The linter is pinned in a module of its own,
# which holds no code: its requirements would choose versions for everything else.
MODULES := $(sort $(patsubst ./%/go.mod,%,$(shell find . -name go.mod -not -path './.*' -not -path ./tools/golangci/go.mod)))

# core promises the oldest Go, and OLDEST are the modules that keep the same promise.
OLDEST_GO := $(shell sed -n 's/^go //p' core/go.mod)
OLDEST := $(patsubst %/go.mod,%,$(shell grep -lx 'go $(OLDEST_GO)' $(MODULES:%=%/go.mod)))

# PORTABLE are the released modules that need no service to be tested.
PORTABLE := $(filter-out stores/redis,$(filter core stores/% adapters/% metrics/%,$(MODULES)))

packages = $(1:%=./%/...)
each = for module in $(1); do echo "$$module: $(2)"; (cd $$module && export GOWORK=off && $(2)) || exit 1; done

# What the tests of stores/redis start: redis-server, valkey-server, or a path.
export REDIS_SERVER ?= redis-server

TESTFLAGS ?=
# A count: Go before 1.27 may take the end of a time for a failure (golang/go#75804).
FUZZTIME ?= 20000x
SOAK ?= 20s
ROUNDS ?= 6
BENCHTIME ?= 300ms
BENCHDIR ?= docs

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z0-9]+):.*## (.*)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: run
run: ## Start the example service on net/http
	$(GO) run ./examples/nethttp

.PHONY: ci
ci: test vet lint actions fmt tidy race soak 32bit standalone consumer pages api fuzz committed ## Check everything that CI checks, in order

# Results are not cached: the cache does not see files outside a module, such as the
# README whose links are tested.
.PHONY: test
test: ## Test every module; needs redis-server
	@./.ci/need $(REDIS_SERVER)
	$(GO) test -count=1 $(TESTFLAGS) $(call packages,$(MODULES))

.PHONY: portable
portable: ## Test the modules that need no service, on any system
	$(GO) test $(TESTFLAGS) $(call packages,$(PORTABLE))

.PHONY: race
race: ## Test every module under the race detector; needs a C compiler
	@./.ci/need redis-server cc
	$(GO) test -race $(call packages,$(MODULES))

.PHONY: soak
soak: export SOAK := $(SOAK)
soak: ## Mix reloads, outages and a million users for SOAK, as in SOAK=10m; needs redis-server
	@./.ci/need $(REDIS_SERVER) cc
	$(GO) test -v -race -count=1 -timeout 0 -run TestSoak ./examples/soak

.PHONY: 32bit
32bit: ## Test the arithmetic where an int has 32 bits; emulated, on Linux
	@./.ci/need qemu-arm
	GOARCH=arm CGO_ENABLED=0 $(GO) test -exec qemu-arm $(call packages,core stores/memory)

.PHONY: vet
vet: ## Vet every module
	$(GO) vet $(call packages,$(MODULES))

.PHONY: lint
lint: $(BIN)/built ## Lint every module; .golangci.yml says why which rule
	$(BIN)/golangci-lint run $(call packages,$(MODULES))

.PHONY: fmt
fmt: $(BIN)/built ## Check the format of every file
	$(BIN)/golangci-lint fmt --diff

.PHONY: fix
fix: $(BIN)/built ## Format every file, and fix what the linters can
	$(BIN)/golangci-lint fmt
	$(BIN)/golangci-lint run --fix $(call packages,$(MODULES))

.PHONY: actions
actions: $(BIN)/built ## Check the workflows
	$(BIN)/actionlint

.PHONY: tidy
tidy: ## Check that every go.mod is tidy
	@$(call each,$(MODULES),$(GO) mod tidy -diff)

.PHONY: standalone
standalone: ## Build, vet and test every module without the workspace
	@./.ci/need redis-server
	@$(call each,$(MODULES),$(GO) build ./... && $(GO) vet ./... && $(GO) test ./...)

.PHONY: oldest
oldest: export GOTOOLCHAIN := go$(OLDEST_GO)
oldest: ## Test the modules that promise to work with the oldest Go, with that Go
	@$(call each,$(OLDEST),$(GO) vet ./... && $(GO) test ./...)

.PHONY: consumer
consumer: ## Build outsiders from the modules as published, and check what they pull in
	$(GO) run ./tools/consumer

.PHONY: pages
pages: ## Do what the documentation says, as printed; needs curl, and port 3000 for itself
	@./.ci/need curl
	$(GO) run ./tools/reader

.PHONY: published
published: ## The same for the modules that the world gets, once they are released
	$(GO) run ./tools/consumer -published

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@grep -rEo --include='*_test.go' '^func Fuzz\w+' $(MODULES) | sed -E 's|/[^/]*:func | |' | \
	while read -r dir name; do \
		echo "$$dir $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) ./$$dir </dev/null || exit 1; \
	done

.PHONY: bench
bench: ## Measure beside the peers, and write docs/benchmarks.md; ROUNDS, BENCHTIME and BENCHDIR for a trial
	@./.ci/need redis-server
	$(GO) run ./tools/bench -rounds $(ROUNDS) -time $(BENCHTIME) -dir $(BENCHDIR)

.PHONY: api
api: ## Compare the exported API with the last release
	$(GO) run ./tools/api

.PHONY: vuln
vuln: $(BIN)/built ## Look for known vulnerabilities; needs the database at vuln.go.dev
	@$(call each,$(MODULES),$(BIN)/govulncheck ./...)

.PHONY: version
version: ## Set VERSION=v0.2.0 in VERSION and in what modules require of each other
	$(GO) run ./tools/release -set $(or $(VERSION),$(error say which, as in VERSION=v0.2.0))

.PHONY: release
release: ci ## Show the tags of the next release; WRITE=1 writes them
	$(GO) run ./tools/release $(if $(WRITE),-write)

.PHONY: notes
notes: ## Print what the changelog says about VERSION
	@$(GO) run ./tools/release -notes

.PHONY: committed
committed: ## Check that git sees nothing to commit
	@git status --porcelain | (! grep .) || { echo "the working tree is not clean: commit, ignore or remove the above" >&2; exit 1; }

# The checkers are built from their source, at the versions that tools pins.
$(BIN)/built: tools/go.mod tools/golangci/go.mod
	cd tools && GOWORK=off $(GO) build -o $(BIN)/ tool
	cd tools/golangci && GOWORK=off $(GO) build -o $(BIN)/ tool
	@touch $@
