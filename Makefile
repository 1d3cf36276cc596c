# make demo   build and run the quickstart experiment
# make test   formatting, lint, the pages' English, unit and end-to-end tests, the front end in a browser
# make slow   what takes longer: the race detector, databases in Java, YCSB itself, another kernel; CI runs both
# make conformance   the conformance suite on every database that can be had, a real Kubernetes, and OpenTofu's modules (some 25 minutes; the first time 50)
# make build  bin/skerry, bin/hydra and bin/metad; building the front end needs npm
# make web    the front end alone
# make docs   regenerate what in docs/ and web/src/go comes from the code
# make site   the documentation as a web site, in site/dist
# make pictures  the pictures of the documentation, and every page at two sizes, light and dark, in dist/screens
# make prose  check the English of pages and comments (.vale.ini)
# make notice   regenerate NOTICE, the licences of what the program holds
# make package  static binaries, .deb and .rpm for amd64 and arm64 in dist/
# make image    a container image of the .deb, where docker or podman is there

SHELL := /bin/bash
TOOL  := go tool -modfile=tools.mod
VERSION := $(shell scripts/version.sh)

# The version is told by the line above. Go's own stamp fails the build where git refuses a
# checkout that belongs to another user. Without the checkout's path in it, what was compiled in one
# checkout is used in another.
export GOFLAGS += -buildvcs=false -trimpath

# The program is static: it runs on any Linux, and in an empty container. Only the race
# detector needs C. Tests are compiled as the program is, so that both are compiled once.
export CGO_ENABLED := 0

.PHONY: notice package image
.PHONY: build web webtest demo docs fmt clean
build: web
	@mkdir -p bin
	@go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/...

demo: build
	@scripts/setup.sh demo
	@bin/skerry install redis
	@bin/skerry run experiments/quickstart.yaml

# The front end is built when its sources changed. Without npm, one that was built elsewhere is used as it is.
WEB_SOURCES := $(shell find web/src -type f) $(wildcard web/*.html web/*.ts web/package*.json)
web:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory -s web/dist/.built; \
	elif [ ! -e web/dist/report/report.html.gz ] || [ ! -e web/dist/dashboard/dashboard.html.gz ]; then \
		echo "web: npm not found: install Node.js 18 or newer with npm (on Debian: scripts/setup.sh build)" >&2; exit 1; fi

web/dist/.built: web/node_modules/.package-lock.json $(WEB_SOURCES)
	@cd web && npm run --silent build
	@touch $@

web/node_modules/.package-lock.json: web/package-lock.json
	@cd web && npm ci --loglevel=error --ignore-scripts --no-audit --no-fund
	@touch $@

comma := ,

# What databases and programs say of themselves: who wants them installed and tested. Make's own shell
# function would not do: it does not know CGO_ENABLED, and go run would compile all of it again.
wanted = $$(bin/skerry wanted $(1))
# The same in one line, with commas.
listed = $$(bin/skerry wanted $(1) | paste -sd,)

# What a step took, and the processor time of it and of all that it started.
TIMED = @TIMEFORMAT='$@: %lR, %lU + %lS of processor time'; time

# Two steps at a time: one waits for the network while the other computes. No two of them compile the same
# packages at once, since each would do so by itself. Tests of labs and of pages both compute: together they
# would keep each other waiting past their limits where something else has half of the machine.
BESIDE := --no-print-directory -s -j2

.PHONY: test slow conformance fetched contract unit
test: format
	@$(MAKE) $(BESIDE) setup vet
	@$(MAKE) $(BESIDE) fetched lint
	@$(MAKE) --no-print-directory -s contract
	@$(MAKE) --no-print-directory -s unit
	@$(MAKE) --no-print-directory -s webtest

# Packages of the system.
.PHONY: setup setup-slow
setup:
	$(TIMED) scripts/setup.sh test
setup-slow:
	$(TIMED) scripts/setup.sh slow

# What the tests use and do not build themselves: with it and setup, one package can be tested as make test does.
fetched: build
	$(TIMED) { bin/skerry install $(call wanted,tests) && test/engines/setup.sh; }

conformance: setup build
	@bin/skerry install $(call wanted,conformance)
	@scripts/conformance.sh

.PHONY: lint format vet staticcheck hclfmt prose
lint: format vet staticcheck hclfmt prose
format:
	@test -z "$$(gofmt -l cmd internal systems test)" || { gofmt -d cmd internal systems test; echo "run make fmt" >&2; exit 1; }
vet:
	$(TIMED) go vet ./...
staticcheck: vet
	$(TIMED) $(TOOL) staticcheck ./...
hclfmt: staticcheck
	@$(TOOL) hclfmt -check -require-no-change $$(find deploy -type f -name '*.tf' -o -type f -name '*.hcl') >/dev/null

# The pages that people write; those made from the code take their words from there. Vale's
# parsers are in C.
prose: export CGO_ENABLED := 1
prose:
	$(TIMED) $(TOOL) vale --output=line --glob='!docs/{experiment-reference.md,commands/*}' *.md docs cmd internal systems test web/src

# What setup installed must be there: a test that skips for lack of it fails. Without
# root, tests that need root skip and the summary lists them.
ROOT := $(if $(filter 0,$(shell id -u)),root$(comma)tun$(comma))
REQUIRE = SKERRY_REQUIRE=$(ROOT)$(call listed,$(1)),slurm,docker,git,python3,chromium,ping,front-end

# Vet has run before. Nobody debugs what is linked here: without tables for debuggers that takes half as long.
# Tests that run beside each other mostly wait: four of them where Go would run one a processor.
GOTEST = $(TOOL) gotestsum --format pkgname --format-hide-empty-pkg
FLAGS := -vet=off -ldflags='-s -w' -timeout 30m -parallel 4
# The emulator's contract measures rates to half a percent: it runs before the others, whose emulators
# would take the processors from it.
ALONE := skerry/internal/link/userspace
contract:
	$(TIMED) $(call REQUIRE,tests) $(GOTEST) -- $(FLAGS) $(ALONE)

# Tests of databases and labs mostly wait: four packages at a time keep two cores busy. The longest ones come
# first, so that none is left over at the end.
GUEST := skerry/test/vm
LONG := ./systems/consensus ./internal/lab/overlay ./internal/lab
unit: build
	$(TIMED) $(call REQUIRE,tests) $(GOTEST) -- $(FLAGS) -p 4 ./test/e2e $(call wanted,suites) $(LONG) ./test/engines ./test/docs ./test/packages $$(go list ./... | grep -vx -e $(ALONE) -e $(GUEST))

# All packages of the program with the race detector, which compiles everything anew and slows it
# down, together with the databases that take minutes of processors. The tests below test start
# the program as a process, whose races they would not see. The emulated machines come after them: they compute
# all the time, and beside others they had a twentieth of a processor.
.PHONY: fetched-slow raced planted oracle guest
slow:
	@$(MAKE) --no-print-directory -s setup-slow
	@$(MAKE) --no-print-directory -s fetched-slow
	@$(MAKE) --no-print-directory -s raced
	@$(MAKE) --no-print-directory -s planted
	@$(MAKE) --no-print-directory -s oracle
	@$(MAKE) --no-print-directory -s guest
fetched-slow: build
	$(TIMED) { bin/skerry install $(call wanted,slow) && go run ./test/oracle/fetch && test/vm/setup.sh; }
RACE = $(call REQUIRE,slow) $(GOTEST) --raw-command -- env CGO_ENABLED=1 go test -json -race $(FLAGS)
raced: build
	$(TIMED) { $(RACE) $(ALONE) && $(RACE) -p 4 $(call wanted,suites-slow) $(LONG) $$(go list ./cmd/... ./internal/... ./systems/... | grep -vx $(ALONE)); }
# Trials on an emulator with a fault that was built in, each of which must be suspect.
planted: build
	$(TIMED) $(call REQUIRE,slow) $(GOTEST) -- $(FLAGS) -tags planted -run TestPlantedFaults ./internal/run/trial
# Workloads against YCSB itself, 10^6 operations of each property file of the corpus.
oracle: build
	$(TIMED) $(call REQUIRE,slow),ycsb $(GOTEST) -- $(FLAGS) ./test/oracle
guest: build
	$(TIMED) $(call REQUIRE,slow),qemu $(GOTEST) -- $(FLAGS) $(GUEST)

# The front end: components in Vitest, pages in Chromium.
webtest: build
	$(TIMED) npm --prefix web run --silent test

docs:
	@go run ./internal/docgen docs

# Needs no network once site/node_modules is there. npx vitepress preview serves what was built.
.PHONY: site
site: site/node_modules/.package-lock.json
	@cd site && npm run --silent build

# Runs what the pictures show, some four minutes on a machine left alone, and looks at all pages, as long again. RUNS=FOLDER
# shows what ONLY=runs left in dist/runs.
.PHONY: pictures
pictures: build site
	@scripts/pictures.sh

site/node_modules/.package-lock.json: site/package-lock.json
	@cd site && npm ci --loglevel=error --ignore-scripts --no-audit --no-fund
	@touch $@

notice: web/node_modules/.package-lock.json
	@go run ./internal/docgen notice >NOTICE.new && mv NOTICE.new NOTICE

package: web
	@rm -f dist/skerry* dist/hydra* dist/metad* dist/SHA256SUMS
	@for arch in amd64 arm64; do scripts/package.sh dist $$arch deb rpm || exit; done
	@cd dist && sha256sum skerry* hydra* metad* >SHA256SUMS && ls -l

# Podman and Docker read the same recipe. BASE=IMAGE is for who has no access to Docker's registry.
image: package
	@engine=$$(command -v docker || command -v podman) || { echo "image: neither docker nor podman is there" >&2; exit 1; }; \
	$$engine build -f packaging/Containerfile $(if $(BASE),--build-arg BASE=$(BASE)) --build-arg DEB="$$(cd dist && ls *_$$(go env GOHOSTARCH).deb)" -t skerry dist

fmt:
	@gofmt -w cmd internal systems test
	@$(TOOL) hclfmt -w $$(find deploy -type f -name '*.tf' -o -type f -name '*.hcl')

clean:
	rm -rf bin dist .cache
