# runlens: `make run` for a running API over sample data, `make test` for every test.

ENGINE     := deploy/engine/node_modules/.package-lock.json
POSTGRES   := deploy/postgres/node_modules/.package-lock.json
GENERATORS := deploy/generators/node_modules/.package-lock.json
CONSOLE    := deploy/console/node_modules/.package-lock.json
VERSION    := $(shell git describe --tags --match 'v[0-9]*' --always --dirty 2>/dev/null || echo dev)
COMMIT     := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS    := -X main.version=$(VERSION) -X main.linkedCommit=$(COMMIT)

.PHONY: help run test build engine postgres generators console lint kit release bench soak mutants fuzz test-container \
	image zones clean

help: ## Show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

run: build engine ## Set up everything and run the API over sample data
	@deploy/demo/run.sh

# What runs concurrently, and takes less than a minute: it is tested with the race detector where there is a C compiler.
# (ingest/worker and the query engine take minutes: run `go test -race` on them when you change them.)
# The first two take longest.
RACED := ./ingest/write ./olap/snapshot ./http/auth ./http/conns ./http/limit ./olap/cache ./olap/keys ./olap/maintain
RACE   = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# The client is a module of its own, and so not among ./...
CLIENT   := github.com/runlens/runlens/http/client/...
PACKAGES := ./... $(CLIENT)
# Those that are named are tested first, since they take longest.
UNRACED   = ./cmd/runlens ./olap ./ingest/worker ./ingest/move ./olap/rollup ./olap/clickhouse ./http ./cmd/soak \
	./ingest/purge ./schema $(CLIENT) \
	$(filter-out $(RACED:./%=github.com/runlens/runlens/%),$(shell go list ./...))

# Of many packages the tests wait more than they work: one is tested more than there are processors.
AT_ONCE := -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Tests read what other programs print, which has no colours then, and reach servers of this machine without a proxy,
# some by names that end in .example.
NEAR    := 127.0.0.1,localhost,::1,.example,$(or $(NO_PROXY),$(no_proxy))
GO_TEST := env -u FORCE_COLOR NO_PROXY='$(NEAR)' no_proxy='$(NEAR)' go test

# With -short, tests try a sample of cases that are many and alike; `make soak` tries all. Lint has vetted them already.
# Without debug information (-w), of which no failure shows anything, the 60 test binaries are linked in a third of the
# time.
test: engine postgres generators console lint ## Set up everything and run every test
	@echo go test -short, of all packages but those that come later with -race
	@$(GO_TEST) $(AT_ONCE) -short -vet=off -ldflags=-w -timeout 30m $(UNRACED)
	$(GO_TEST) $(AT_ONCE) $(RACE) -vet=off -ldflags=-w -timeout 10m $(RACED)
	@[ -n "$(RACE)" ] || echo 'WARNING: not tested for data races: go test -race needs a C compiler'

build: ## Build bin/runlens
	go build -ldflags '$(LDFLAGS)' -o bin/runlens ./cmd/runlens

engine: $(ENGINE) ## Fetch the embedded ClickHouse engine

$(ENGINE): deploy/engine/package.json deploy/engine/package-lock.json
	cd deploy/engine && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

postgres: $(POSTGRES) ## Fetch the PostgreSQL server that tests run against

$(POSTGRES): deploy/postgres/package.json deploy/postgres/package-lock.json
	cd deploy/postgres && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

generators: $(GENERATORS) ## Fetch the client generators and linters that the API's description is tested with

$(GENERATORS): deploy/generators/package.json deploy/generators/package-lock.json
	cd deploy/generators && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

console: $(CONSOLE) ## Fetch what the console's pages are compared and tested with

$(CONSOLE): deploy/console/package.json deploy/console/package-lock.json
	cd deploy/console && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

# The checker of code takes a sixth less time if it collects garbage less often.
lint: export GOGC := 400
lint: ## Fail on unformatted or suspicious code, and on dependencies that may not be used
	@files=$$(gofmt -l cmd olap ingest http schema deploy/engine/*.go); if [ -n "$$files" ]; then echo "not formatted: $$files"; exit 1; fi
	go vet $(PACKAGES)
	go tool staticcheck $(PACKAGES)
	go run ./cmd/deps

# Tools with a thousand modules, in a module of their own: compiling them takes three to ten minutes, once. The chart is
# outside that module, where go test does not see that a file changed: -count=1.
kit: build engine postgres ## Test the chart, the release and the processes of compose.yaml
	@files=$$(gofmt -l deploy/tools); if [ -n "$$files" ]; then echo "not formatted: $$files"; exit 1; fi
	cd deploy/tools && go vet ./... && go test -count=1 ./... && go tool goreleaser check ../release/goreleaser.yaml
	deploy/try.sh --check

RELEASE := $(if $(shell git describe --exact-match --tags --match 'v[0-9]*' 2>/dev/null),,--snapshot)

release: ## Build archives and packages of the tagged commit into bin/release
	cd deploy/tools && go build -o ../../bin/ tool
	PATH="$(CURDIR)/bin:$$PATH" goreleaser release --clean $(RELEASE) --config deploy/release/goreleaser.yaml

BENCH_SCALE ?= 0.1

bench: build engine postgres ## Measure against references (BENCH_SCALE=1 is 10,000,000 runs, BENCH_FLAGS more)
	go run ./cmd/bench --scale $(BENCH_SCALE) $(BENCH_FLAGS)

soak: build engine postgres ## Prove for hours that nothing breaks under load, attacks and kills (SOAK_FLAGS)
	go run ./cmd/soak $(SOAK_FLAGS)

mutants: engine ## Break the lines that exactness rests on, one at a time, and see the tests fail (MUTANTS_FLAGS)
	go run ./cmd/mutants $(MUTANTS_FLAGS)

FUZZTIME ?= 1m

fuzz: ## Run every fuzz target for FUZZTIME (1m)
	go test ./olap/query -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(FUZZTIME)
	go test ./olap/cursor -run '^$$' -fuzz '^FuzzOpen$$' -fuzztime $(FUZZTIME)
	go test ./http/auth -run '^$$' -fuzz '^FuzzParseKey$$' -fuzztime $(FUZZTIME)
	go test ./ingest/normalize -run '^$$' -fuzz '^FuzzJSON$$' -fuzztime $(FUZZTIME)
	go test ./ingest/source -run '^$$' -fuzz '^FuzzParquet$$' -fuzztime $(FUZZTIME)

test-container: ## Run every test against a ClickHouse container (RUNLENS_TEST_IMAGE names the image)
	RUNLENS_TEST_CONTAINER=1 go test -count=1 -p 1 ./...

image: engine ## Build the container image runlens: our binary with the engine
	LDFLAGS='$(LDFLAGS)' deploy/image/build.sh

zones: ## Generate the canonical zones from the installed tz database
	go generate ./olap/daterange

clean: ## Remove what was built and the sample data
	rm -rf bin data
