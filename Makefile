# make demo   build and run the quickstart experiment
# make test   everything CI checks: formatting, lint, unit and end-to-end tests, the front end in a browser
# make conformance   the conformance suite on every database that can be had (some 15 minutes)
# make build  bin/skerry, with the front end where npm is there
# make web    the front end alone
# make docs   regenerate what in docs/ and web/src/go comes from the code
# make site   the documentation as a web site, in site/dist
# make prose  hold the pages to the project's English (.vale.ini)
# make notice   regenerate NOTICE, the licences of what the program holds
# make package  static binaries, .deb and .rpm for amd64 and arm64 in dist/
# make image    a container image of the .deb, where docker or podman is there

SHELL := /bin/bash
TOOL  := go tool -modfile=tools.mod
VERSION := $(shell scripts/version.sh)

# The version is told by the line above. Go's own stamp fails the build where git refuses a
# checkout that belongs to another user.
export GOFLAGS += -buildvcs=false

# The program is static: it runs on any Linux, and in an empty container. Only the race
# detector needs C.
export CGO_ENABLED := 0

.PHONY: notice package image
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
empty :=
space := $(empty) $(empty)
# What databases and programs say of themselves: who wants them installed and tested.
wanted = $(shell go run -trimpath ./cmd/skerry wanted $(1))

test: setup-test lint unit webtest

conformance: build
	@scripts/setup.sh test
	@bin/skerry install $$(bin/skerry wanted conformance)
	@scripts/conformance.sh

.PHONY: setup-test
setup-test:
	@scripts/setup.sh test
	@$(MAKE) --no-print-directory -s build
	@bin/skerry install $$(bin/skerry wanted tests)
	@test/vm/setup.sh
	@test/engines/setup.sh

# Compiled as build does, once for both.
lint: export GOFLAGS += -trimpath
lint:
	@test -z "$$(gofmt -l cmd internal test)" || { gofmt -d cmd internal test; echo "run make fmt" >&2; exit 1; }
	@go vet ./...
	@$(TOOL) staticcheck ./...
	@$(TOOL) hclfmt -check -require-no-change $$(find deploy -type f -name '*.tf' -o -type f -name '*.hcl') >/dev/null
	@$(MAKE) --no-print-directory -s prose

# The pages that people write; those made from the code take their words from there. Vale's
# parsers are in C.
.PHONY: prose
prose: export CGO_ENABLED := 1
prose:
	@$(TOOL) vale --output=line --glob='!docs/{experiment-reference.md,commands/*}' *.md docs

# What setup installed must be there: a test that skips for lack of it fails. Without
# root, tests that need root skip and the summary lists them.
REQUIRE = $(if $(filter 0,$(shell id -u)),root$(comma)tun$(comma))$(subst $(space),$(comma),$(call wanted,tests)),qemu,slurm,git,chromium
# The emulator's contract measures rates to half a percent: it runs before the others, whose emulators
# would take the processors from it. Tests of databases and labs mostly wait: four packages at a time
# keep two cores busy. The longest ones come first, so that none is left over at the end.
ALONE := skerry/internal/link/userspace
LONG = $(call wanted,suites) ./test/e2e ./internal/lab/overlay ./internal/system/consensus ./test/vm
unit: GOTEST = $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg -- -race -p 4 -timeout 15m
unit: export CGO_ENABLED := 1
unit:
	@export SKERRY_REQUIRE=$(REQUIRE); \
	$(GOTEST) $(ALONE) && \
	$(GOTEST) $(LONG) $$(go list ./... | grep -vx $(ALONE))

# The front end: components in Vitest, pages in Chromium.
webtest: build
	@cd web && npm run --silent test

docs:
	@go run ./cmd/skerry docs docs

# Needs no network once site/node_modules is there. npx vitepress preview serves what was built.
.PHONY: site
site: site/node_modules/.package-lock.json
	@cd site && npm run --silent build

site/node_modules/.package-lock.json: site/package-lock.json
	@cd site && npm ci --loglevel=error --ignore-scripts --no-audit --no-fund
	@touch $@

notice: web/node_modules/.package-lock.json
	@go run ./cmd/skerry packaging notice . >NOTICE.new && mv NOTICE.new NOTICE

package: web
	@rm -rf dist
	@for arch in amd64 arm64; do scripts/package.sh dist $$arch deb rpm || exit; done
	@cd dist && sha256sum * >SHA256SUMS && ls -l

# Podman and Docker read the same recipe. BASE=IMAGE is for who has no access to Docker's registry.
image: package
	@engine=$$(command -v docker || command -v podman) || { echo "image: neither docker nor podman is there" >&2; exit 1; }; \
	$$engine build -f packaging/Containerfile $(if $(BASE),--build-arg BASE=$(BASE)) --build-arg DEB="$$(cd dist && ls *_$$(go env GOHOSTARCH).deb)" -t skerry dist

fmt:
	@gofmt -w cmd internal test
	@$(TOOL) hclfmt -w $$(find deploy -type f -name '*.tf' -o -type f -name '*.hcl')

clean:
	rm -rf bin dist .cache
