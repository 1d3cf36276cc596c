# make demo   build and run the quickstart experiment
# make test   everything CI checks: formatting, lint, unit and end-to-end tests
# make build  bin/skerry
# make docs   regenerate what in docs/ comes from the code

SHELL := /bin/bash
TOOL  := go tool -modfile=tools.mod
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# The version is told by the line above. Go's own stamp fails the build where git refuses a
# checkout that belongs to another user.
export GOFLAGS += -buildvcs=false

.PHONY: build demo test lint unit docs fmt clean
build:
	@go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/skerry ./cmd/skerry

demo: build
	@scripts/setup.sh demo
	@bin/skerry install redis
	@bin/skerry run experiments/quickstart.yaml

test: setup-test lint unit

.PHONY: setup-test
setup-test: build
	@scripts/setup.sh test
	@bin/skerry install redis
	@test/vm/setup.sh

lint:
	@test -z "$$(gofmt -l cmd internal test)" || { gofmt -d cmd internal test; echo "run make fmt" >&2; exit 1; }
	@go vet ./...
	@$(TOOL) staticcheck ./...

# What setup installed must be there: a test that skips for lack of it fails. Without
# root, tests that need root skip and the summary lists them.
ifeq ($(shell id -u),0)
REQUIRE := root,tun,redis,qemu
else
REQUIRE := redis,qemu
endif
unit:
	@SKERRY_REQUIRE=$(REQUIRE) $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg -- -race -timeout 8m ./...

docs:
	@go run ./cmd/skerry docs docs

fmt:
	@gofmt -w cmd internal test

clean:
	rm -rf bin .cache
