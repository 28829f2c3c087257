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
test-failover: ## Sentinel and Cluster scenarios; those after a switch that loses writes do not pass yet
	cd integration && go test -tags failover -run 'Sentinel|Cluster' -v .

.PHONY: ci
ci: ## everything CI runs, on Debian and as root
	bash .ci/run

.PHONY: ci-full
ci-full: ci redis8 valkey8 ## ci, the concurrent suites five times under race, and newer servers
	go test -race -count=5 $(CONCURRENT)
	HOLDFAST_SERVER=$(CACHE)/redis8/bin/redis-server go test -count=1 ./integration/...
	HOLDFAST_SERVER=$(CACHE)/valkey8/bin/valkey-server go test -count=1 ./integration/...

.PHONY: redis8 valkey8
redis8 valkey8:
	@test -x $(CACHE)/$@/bin/$(@:8=)-server || scripts/fetch-server.sh trixie $(@:8=) $(CACHE)/$@
