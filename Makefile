.DEFAULT_GOAL := help

GOLANGCI_LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
APIDIFF = go run golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4
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
	go test -timeout 20m work

.PHONY: race
race: ## the same under the race detector
	go test -race -timeout 40m work

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
	cd integration && HOLDFAST_FULL=1 go test -count=1 -timeout 40m -run 'Sentinel|Cluster|cknowledg|Isolated|Replica' -v .

.PHONY: test-faults
test-faults: ## the scenarios of docs/reliability.md
	HOLDFAST_FULL=1 go test -count=1 -timeout 60m -v ./integration

.PHONY: soak
soak: ## ten minutes of processes, 10,000 held locks and random faults; HOLDFAST_SOAK_SEED=n repeats the faults
	HOLDFAST_SOAK=10m go test -count=1 -timeout 30m -run TestSoak -v ./integration

.PHONY: fuzz
fuzz: ## every fuzz target for half a minute
	@for p in $$(go list work); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do go test -run xxx -fuzz "^$$f\$$" -fuzztime 30s $$p || exit 1; done; \
	done

.PHONY: bench
bench: ## holdfast beside its peers: about half an hour; writes docs/performance.md
	cd bench && go run . -report ../docs/performance.md

.PHONY: docs
docs: ## the links, the code and the commands in the documents
	go test -count=1 -timeout 2m ./internal/docs

.PHONY: api
api: ## what has changed incompatibly since the latest tag
	@tag=$$(git tag --list 'v*' --sort=-v:refname | head -1); \
	if [ -z "$$tag" ]; then echo "there is no tag yet: any API is compatible"; exit 0; fi; \
	set -e; old=$$(mktemp -d); trap 'git worktree remove --force "$$old/tree"; rm -rf "$$old"' EXIT; \
	git worktree add --quiet --detach "$$old/tree" "$$tag"; \
	(cd "$$old/tree" && GOWORK=off $(APIDIFF) -m -w "$$old/api" github.com/holdfast-go/holdfast); \
	GOWORK=off $(APIDIFF) -m -incompatible "$$old/api" github.com/holdfast-go/holdfast >"$$old/changes"; \
	if grep -vE '/(internal|watchdog|pubsub)|^Ignoring' "$$old/changes"; then echo "incompatible with $$tag"; exit 1; fi; \
	echo "compatible with $$tag"

.PHONY: ci
ci: ## everything CI runs, on Debian and as root
	bash .ci/run

.PHONY: ci-full
ci-full: ci redis8 valkey8 soak fuzz ## ci, all scenarios on three servers, the concurrent suites five times under race; hours
	go test -race -count=5 -timeout 60m $(CONCURRENT)
	go test -count=1 -timeout 30m ./internal/explorer -explore=60s
	HOLDFAST_FULL=1 go test -count=1 -timeout 40m ./integration/...
	HOLDFAST_FULL=1 HOLDFAST_SERVER=$(CACHE)/redis8/bin/redis-server go test -count=1 -timeout 40m ./integration/...
	HOLDFAST_FULL=1 HOLDFAST_SERVER=$(CACHE)/valkey8/bin/valkey-server go test -count=1 -timeout 40m ./integration/...

.PHONY: redis8 valkey8
redis8 valkey8:
	@test -x $(CACHE)/$@/bin/$(@:8=)-server || scripts/fetch-server.sh trixie $(@:8=) $(CACHE)/$@
