# Each target has its help text behind it; `make` alone shows them.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X main.version=$(VERSION)
TIMEOUT ?= 20m
PKG ?= ./...
# The race detector needs a C compiler.
RACE := $(shell command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 && echo -race)
# A server for all test binaries together: each test has a database of its own in it.
WITH_POSTGRES := go run ./internal/pgtest/cmd/pgserve
TOOL := go tool -modfile=tools/go.mod

.PHONY: help build run network test test-short killloop soak nodes-test bench generate contracts verify lint format openapi-lint browser-test corpus postgres clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/pactwire
	go build -ldflags '$(LDFLAGS)' -o bin/pactwire ./cmd/pactwire

network: build postgres ## start a network of N=3 members on this machine: one chain, a database for each
	exec bin/pactwire dev --members $(or $(N),3) $(ARGS)

run: build postgres ## build and start everything on this machine: chain, database, service (ARGS="--listen ..." for flags)
	exec bin/pactwire dev $(ARGS)

test: postgres ## run all tests with the race detector (PKG=./store FILTER=TestName for some)
	@[ -n "$(RACE)" ] || echo "no C compiler: the tests run without the race detector" >&2
	$(WITH_POSTGRES) go test $(RACE) -timeout $(TIMEOUT) $(if $(FILTER),-run '$(FILTER)') $(PKG)

test-short: postgres ## run the tests without the long ones and without the race detector
	$(WITH_POSTGRES) go test -short -timeout $(TIMEOUT) $(if $(FILTER),-run '$(FILTER)') $(PKG)

nodes-test: postgres ## test against geth --dev and anvil, which it builds and installs
	@[ -x bin/geth ] || GOBIN=$(CURDIR)/bin go install github.com/ethereum/go-ethereum/cmd/geth@v1.17.8
	cd tools && npm ci --silent
	PACTWIRE_TEST_GETH=$(CURDIR)/bin/geth PACTWIRE_TEST_ANVIL=$(CURDIR)/tools/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil \
		$(WITH_POSTGRES) go test $(RACE) -timeout $(TIMEOUT) -run TestOtherNodes -v ./internal/e2e

killloop: postgres ## kill service, database, chain and connections at random for a long time, and check that no event is lost (DURATION=3m for each form)
	PACTWIRE_TEST_KILLLOOP=$(or $(DURATION),3m) $(WITH_POSTGRES) go test -timeout 2h -run 'TestKillLoop' -v ./internal/e2e

soak: postgres ## run one service with 1,000 WebSocket clients for a long time and print its memory (DURATION=10m)
	PACTWIRE_TEST_SOAK=$(or $(DURATION),10m) $(WITH_POSTGRES) go test -timeout 24h -run 'TestSoak' -v ./internal/e2e

bench: postgres ## run the benchmarks
	$(WITH_POSTGRES) go test -run '^$$' -bench '$(or $(FILTER),.)' -benchmem -timeout $(TIMEOUT) $(PKG)

generate: ## generate gen/ from openapi/openapi.yaml
	go generate ./gen

contracts: ## compile contracts/src with the pinned solc
	scripts/compile-contracts.sh

verify: ## check that gen/ and contracts/artifacts are what their sources give
	scripts/verify-generated.sh

lint: ## go vet, staticcheck, format (who may import whom is a test: internal/archtest)
	go vet ./...
	$(TOOL) staticcheck ./...
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' ':!gen/*.gen.go' | xargs $(TOOL) gofumpt -l); \
	[ -z "$$unformatted" ] || { echo "not formatted (make format does it):"; echo "$$unformatted"; exit 1; }

format: ## format all Go files
	@git ls-files -co --exclude-standard '*.go' ':!gen/*.gen.go' | xargs $(TOOL) gofumpt -w

openapi-lint: ## check openapi.yaml and the documents of contract APIs with Redocly's recommended rules and as TypeScript
	scripts/lint-openapi.sh

browser-test: postgres ## open the pages in a real browser (Chromium, installed where it may be); pictures are left in .artefacts
	scripts/install-chromium.sh
	PACTWIRE_TEST_BROWSER=chromium $(WITH_POSTGRES) go test -count=1 -timeout $(TIMEOUT) -run 'InABrowser$$' -v ./internal/e2e

corpus: postgres ## make APIs and clients of the contracts in well-known npm packages
	cd tools/corpus && npm ci --silent --ignore-scripts
	PACTWIRE_CORPUS=$(CURDIR)/tools/corpus/node_modules $(WITH_POSTGRES) go test -count=1 -timeout $(TIMEOUT) -run 'TestRealContracts' -v ./internal/e2e

postgres: # find PostgreSQL's programs, or install them; not needed where a server is given
	@[ -n "$$PACTWIRE_DATABASE_URL$$PACTWIRE_TEST_DATABASE_URL" ] || scripts/install-postgres.sh

clean: ## remove what was built; the data folder stays
	rm -rf bin tools/node_modules tools/corpus/node_modules
