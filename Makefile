.DEFAULT_GOAL := help

GOLANGCI_LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# Where .ci/run keeps fetched servers.
CACHE = $(or $(HOLDFAST_CI_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/holdfast-ci)
MODULES = $(patsubst %/go.mod,%,$(wildcard ./go.mod ./*/go.mod ./*/*/go.mod))
# Packages whose tests are about interleavings, and so worth repeating.
CONCURRENT = ./internal/... ./watchdog/... ./pubsub/... ./mutex/... ./integration/...

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 14

.PHONY: test
test: ## all tests of all modules
	go test work

.PHONY: race
race: ## the same under the race detector
	go test -race work

.PHONY: lint
lint: ## golangci-lint over all modules
	@for m in $(MODULES); do echo "$$m"; (cd $$m && $(GOLANGCI_LINT) run ./...) || exit 1; done

.PHONY: quickstart
quickstart: ## the first example; REDIS_ADDR=host:port runs it on your server
	go run ./examples/quickstart

.PHONY: flashsale
flashsale: ## the second example, likewise
	go run ./examples/flashsale

.PHONY: test-failover
test-failover: ## all Sentinel and Cluster scenarios, some of which are long
	cd integration && HOLDFAST_FULL=1 go test -count=1 -timeout 30m -run 'Sentinel|Cluster|Acknowledged' -v .

.PHONY: test-faults
test-faults: ## the scenarios of docs/reliability.md
	go test -count=1 -timeout 30m -v ./integration

.PHONY: soak
soak: ## ten minutes of competing processes on a bad network
	HOLDFAST_SOAK=10m go test -count=1 -timeout 30m -run TestSoak -v ./integration

.PHONY: fuzz
fuzz: ## every fuzz target for half a minute
	@for p in ./internal/turnstile ./integration; do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do go test -run xxx -fuzz "^$$f\$$" -fuzztime 30s $$p || exit 1; done; \
	done

.PHONY: bench
bench: ## holdfast beside its peers: about half an hour; writes docs/performance.md
	cd bench && go run . -report ../docs/performance.md

.PHONY: ci
ci: ## everything CI runs, on Debian and as root
	bash .ci/run

.PHONY: ci-full
ci-full: ci redis8 valkey8 test-failover soak fuzz ## ci, the concurrent suites five times under race, and newer servers
	go test -race -count=5 -timeout 60m $(CONCURRENT)
	go test -count=1 -timeout 30m ./internal/explorer -explore=60s
	HOLDFAST_FULL=1 HOLDFAST_SERVER=$(CACHE)/redis8/bin/redis-server go test -count=1 -timeout 30m ./integration/...
	HOLDFAST_FULL=1 HOLDFAST_SERVER=$(CACHE)/valkey8/bin/valkey-server go test -count=1 -timeout 30m ./integration/...

.PHONY: redis8 valkey8
redis8 valkey8:
	@test -x $(CACHE)/$@/bin/$(@:8=)-server || scripts/fetch-server.sh trixie $(@:8=) $(CACHE)/$@
