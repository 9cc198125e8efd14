# The targets a user or a developer needs; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

REPEAT ?= 1
SEED ?= 1
CONTROLLER ?= shed

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

.PHONY: demo
demo: ## From nothing to a met deadline: a cluster, the operator, a word count (REPEAT=10 repeats it)
	REPEAT=$(REPEAT) cargo run --locked --quiet --package shed-e2e --bin demo

QUALITY ?=

.PHONY: demo-quality
demo-quality: ## 200 tasks of a trace under three policies on the cluster, and in the simulator; half an hour (SHED_TRACES: folder of traces)
	cargo run --locked --quiet --package shed-e2e --bin demo_quality -- $(QUALITY)

.PHONY: test
test: ## Everything that CI checks: lint, unit and property tests, vectors, chart, end to end
	@e2e/step.sh --begin
	e2e/step.sh "cluster and tools" --budget 10 $(MAKE) --no-print-directory tools
	e2e/step.sh "Rust builds" --budget 12 $(MAKE) --no-print-directory builds
	e2e/step.sh "format, lints, purity, generated files" --budget 3 $(MAKE) --no-print-directory lint
	e2e/step.sh "unit and property tests, golden vectors" --budget 8 $(MAKE) --no-print-directory unit
	e2e/step.sh "chart" --budget 1 e2e/chart-test.sh
	e2e/step.sh "end to end" --budget 16 e2e/run.sh
	e2e/step.sh "upstream Job suite" --budget 6 $(MAKE) --no-print-directory upstream-jobs-if-containers
	e2e/step.sh "faults, a sample" --budget 4 $(MAKE) --no-print-directory campaign-sample
	@e2e/step.sh --summary

# Apart from the steps that use them, so that each step's time is its own.
.PHONY: tools builds
tools: # Kubernetes and what else the tests start; no containers and no images.
	e2e/cluster/cluster tool kube
	e2e/cluster/cluster tool helm
	e2e/cluster/cluster tool kwok
	e2e/upstream-jobs.sh build
builds: # All that cargo compiles for the tests, and, where containers can run, the operator's image.
	cargo clippy --locked --quiet --workspace --all-targets
	cargo test --locked --quiet --workspace --no-run
	if [ "$$(id -u)" = 0 ] && [ "$${SHED_E2E_NODES-}" != kwok ]; then e2e/image.sh; fi

# Where containers can run. On a cluster of the user's own another controller runs the Jobs of others.
.PHONY: upstream-jobs-if-containers
upstream-jobs-if-containers:
	if [ -z "$${SHED_KUBECONFIG-}" ] && [ "$$(id -u)" = 0 ] && [ "$${SHED_E2E_NODES-}" != kwok ]; then \
	  $(MAKE) --no-print-directory test-upstream-jobs CONTROLLER=shed FOCUS=; \
	else echo 'left out: it needs containers, and a cluster of its own'; fi

TASKS ?= 200

.PHONY: campaign campaign-crash campaign-fence campaign-sample
campaign: ## Every fault at every point of the reference workloads: hours; FAULTS=… names some
	e2e/campaign.sh $(if $(FAULTS),--fault $(FAULTS))
campaign-crash: ## The operator killed after every write, once each
	e2e/campaign.sh --fault crash
campaign-fence: ## TASKS=200 fenced tasks of three live copies on real nodes, operators killed, nodes frozen
	SHED_FENCE_TASKS=$(TASKS) e2e/run.sh three_live_copies_publish_once --nocapture
campaign-sample: ## A sample of the campaign drawn by SEED, without what takes minutes
	e2e/campaign.sh --fault crash,lost-answer,stale-pods,stale-jobs,stale-both,gone,conflicts,errors,foreign-pods,cordon,clock-skew,overloaded \
	  --workload plain,clones,failures,adopted,mixed,unplaceable,quota,big-spec --sample 16 --seed $(SEED)

SCALE ?=

.PHONY: verify scale
verify: scale ## What is too long for `make test`: the operator at scale, slow webhooks, overload, large objects; an hour
	e2e/scale.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" --scenario finished --finished 1000
	e2e/campaign.sh --fault none,crash --workload big-spec,many-finished,bloated --sample 12 --seed $(SEED)
	e2e/campaign.sh --fault slow-webhook,overloaded --sample 40 --seed $(SEED)
scale: ## 10000 live attempts, 1000 specifications of 1 MB, 10000 finished jobs, a slow tenant; SCALE="--scenario job --live 500" changes it
	CARGO_PROFILE_RELEASE_LTO=off cargo build --locked --quiet --release --package shed
	e2e/scale.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" $(SCALE)

.PHONY: test-upstream-jobs
test-upstream-jobs: ## Kubernetes' own end-to-end specs of batch/v1 Job, run by shed (CONTROLLER=builtin: by the built-in controller)
	e2e/upstream-jobs.sh $(CONTROLLER) $(if $(FOCUS),"$(FOCUS)")

.PHONY: unit
unit: ## Unit tests, property tests, golden vectors: no cluster
	cargo test --locked --workspace --exclude shed-e2e
	cargo test --locked --package shed-papers --test vectors -- --nocapture
	.ci/example-policy

.PHONY: model
model: ## Model checking of the controller's step, exhaustively: half an hour (docs/model.md)
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed --test model -- \
	  --include-ignored --nocapture --test-threads 1

.PHONY: frozen
frozen: ## Digests of whole simulated runs against the table (crates/shed-sim/tests/frozen); SHED_FROZEN=write writes it
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed-sim --test frozen -- --include-ignored

.PHONY: campaign-mutants
campaign-mutants: ## Faults seeded into the controller (.ci/mutants): which test notices each; an hour
	.ci/campaign-mutants

.PHONY: polls
polls: ## 5000 attempts asked for progress by one operator: counts, CPU, memory
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed --lib -- \
	  --ignored --nocapture five_thousand_attempts

.PHONY: lint
lint: ## Format, clippy, purity of the core, each crate alone, drift of generated files
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	.ci/purity
	.ci/campaign-mutants --check
	e2e/generate.sh --check

.PHONY: bench
bench: ## Time of passes and optimizers, allocations, and how far each optimizer is from the optimum
	cargo bench --locked --package shed-core --features fixtures --bench passes --bench optimizers
	cargo bench --locked --package shed-papers --bench dollymp
	cargo test --locked --package shed-core --test optimality_gap -- --nocapture --test-threads 1

.PHONY: league
league: ## Every policy over presets, loads and deadlines: hours; needs SHED_TRACES; goes on after a stop
	cargo run --locked --release --quiet --package shed-lab -- league --results target/league.jsonl --out docs/league.md

.PHONY: mutants
mutants: ## Mutation testing of optimizers and estimation; needs cargo-mutants
	CARGO_PROFILE_TEST_DEBUG=0 .ci/mutate

.PHONY: generate
generate: ## Write the CRD, the chart's copy of it and manifests/ anew
	e2e/generate.sh

.PHONY: image
image: ## Build the image of the operator into an archive
	e2e/image.sh

.PHONY: up down
up: ## Bring the local cluster up
	e2e/cluster/cluster up
down: ## Take the local cluster down; nothing of it stays
	e2e/cluster/cluster down
