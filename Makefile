# make demo   build and run the quickstart experiment
# make test   everything CI checks: formatting, lint, unit and end-to-end tests, the front end in a browser
# make conformance   the conformance suite on every database that can be had (some 15 minutes)
# make build  bin/skerry, with the front end where npm is there
# make web    the front end alone
# make docs   regenerate what in docs/ comes from the code

SHELL := /bin/bash
TOOL  := go tool -modfile=tools.mod
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# The version is told by the line above. Go's own stamp fails the build where git refuses a
# checkout that belongs to another user.
export GOFLAGS += -buildvcs=false

.PHONY: build web webtest demo test conformance lint unit docs fmt clean
build: web
	@go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/skerry ./cmd/skerry

demo: build
	@scripts/setup.sh demo
	@bin/skerry install redis
	@bin/skerry run experiments/quickstart.yaml

# The front end is built when its sources changed. Without npm the binary is built without
# it and says so where it is missed.
WEB_SOURCES := $(shell find web/src -type f) $(wildcard web/*.html web/*.ts web/package*.json)
web:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory -s web/dist/.built; \
	elif [ ! -d web/dist/report ]; then echo "web: npm is not there, so reports are plain and there is no dashboard; scripts/setup.sh build installs it" >&2; fi

web/dist/.built: web/node_modules/.package-lock.json $(WEB_SOURCES)
	@cd web && npm run --silent build
	@touch $@

web/node_modules/.package-lock.json: web/package-lock.json
	@cd web && npm ci --loglevel=error --ignore-scripts --no-audit --no-fund
	@touch $@

comma := ,
space := $(subst ,, )
# Databases that make test runs its tests with; make conformance adds the others.
TESTED := redis etcd galera cassandra
OTHERS := valkey postgres hbase mysql-group-replication ferretdb cassandra@4.1

test: setup-test lint unit webtest

conformance: build
	@scripts/setup.sh test
	@bin/skerry install $(TESTED) $(OTHERS)
	@scripts/conformance.sh $(TESTED) $(OTHERS)

.PHONY: setup-test
setup-test:
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory -s build
	@bin/skerry install $(TESTED) babeld tinc haproxy
	@test/vm/setup.sh

# Compiled as build does, once for both.
lint: export GOFLAGS += -trimpath
lint:
	@test -z "$$(gofmt -l cmd internal test)" || { gofmt -d cmd internal test; echo "run make fmt" >&2; exit 1; }
	@go vet ./...
	@$(TOOL) staticcheck ./...

# What setup installed must be there: a test that skips for lack of it fails. Without
# root, tests that need root skip and the summary lists them.
REQUIRE := $(subst $(space),$(comma),$(TESTED)),babeld,tinc,haproxy,qemu,git
ifeq ($(shell id -u),0)
REQUIRE := root,tun,$(REQUIRE)
endif
# The emulator's contract measures rates to half a percent: it runs before the others, whose emulators
# would take the processors from it. Tests of databases and labs mostly wait: four packages at a time
# keep two cores busy. The longest ones come first, so that none is left over at the end.
ALONE := skerry/internal/link/userspace
LONG := $(addprefix ./internal/database/,cassandra galera redis) ./test/e2e $(addprefix ./internal/,database/etcd overlay consensus) ./test/vm
unit: export SKERRY_REQUIRE = $(REQUIRE)
unit: GOTEST = $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg -- -race -p 4 -timeout 15m
unit:
	@$(GOTEST) $(ALONE)
	@$(GOTEST) $(LONG) $$(go list ./... | grep -vx $(ALONE))

# The front end: components in Vitest, pages in Chromium.
webtest: build
	@cd web && npm run --silent test

docs:
	@go run ./cmd/skerry docs docs

fmt:
	@gofmt -w cmd internal test

clean:
	rm -rf bin .cache
