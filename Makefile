# The targets a user or a developer needs; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

REPEAT ?= 1
SEED ?= 1
CONTROLLER ?= shed

.PHONY: help
help: # Groups are lines that start with ##@.
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

PICTURE ?= target/demo/timeline.svg
.PHONY: demo demo-cron demo-quality
demo: ## Meet a deadline on a local cluster: cluster, operator, a word count (REPEAT=10 repeats it; PICTURE=FILE.svg)
	REPEAT=$(REPEAT) SHED_DEMO_PICTURE=$(PICTURE) e2e/demo.sh
demo-cron: ## The same for a CronJob that is due at a time of day, with a straggler
	SHED_DEMO_PICTURE=$(PICTURE) e2e/demo.sh cron
QUALITY ?=
demo-quality: ## Run 200 tasks of a trace under three policies, on the cluster and in the simulator (30 min; needs SHED_TRACES)
	cargo run --locked --quiet --package shed-e2e --bin demo_quality -- $(QUALITY)

.PHONY: up down
up: ## Start the local cluster (SHED_KUBERNETES=1.37.2: another minor; docs/reference/versions.md)
	e2e/cluster/cluster up
down: ## Stop the local cluster and delete everything of it
	e2e/cluster/cluster down

##@ Before each commit

.PHONY: check unit alerts lint docs generate
check: ## Format, clippy, unit tests and words of what changed (under a minute)
	.ci/check $(BASE)
unit: ## All unit tests, property tests and golden vectors of the product, without a cluster (8 min)
	cargo test --locked --workspace
	cargo test --locked --workspace --test vectors -- --nocapture
	.ci/example-policy
	scripts/fetch-traces-test
	scripts/release-test
	go -C e2e/cluster/manager test .
	go -C e2e/health test -count=1 .
	e2e/docs-commands-test.py
	e2e/docs-site-test.py
	e2e/docs-facts-test.py
	e2e/docs-programs-test.py
	e2e/runbooks-test.py
	e2e/docs-commands.py offline
	if node -e 'process.exit(process.features.require_module ? 0 : 1)' 2>/dev/null; then \
	  node --test --test-reporter=dot e2e/page/units_test.mjs; else echo 'skipped: the units of the live page need Node.js 20.19'; fi
alerts: ## Each alert fires on its symptom, is silent without it, and resolves after it; the metrics follow Prometheus' rules (ten seconds; the first time it builds promtool)
	"$$(e2e/cluster/cluster tool promtool | tail -n 1)" check rules --lint=all --lint-fatal charts/shed/files/alerts.yaml
	"$$(e2e/cluster/cluster tool promtool | tail -n 1)" test rules e2e/alerts-test.yaml
	python3 -B e2e/metrics-page.py | "$$(e2e/cluster/cluster tool promtool | tail -n 1)" check metrics
lint: ## Format, clippy, words, links, purity of the core, licenses and sources of dependencies, generated files
	for lock in $$(git ls-files '*Cargo.lock'); do \
	  cargo update --quiet --workspace --locked --manifest-path "$${lock%.lock}.toml" || { echo "$$lock is old: cargo update --workspace" >&2; exit 1; }; done
	cargo fmt --all --check
	test -z "$$(gofmt -l e2e examples clients | tee /dev/stderr)"
	go -C e2e/cluster/manager vet .
	go -C e2e/health vet .
	e2e/cluster/cluster modules --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	.ci/prose
	.ci/names
	.ci/docs-links
	e2e/docs-commands.py --check
	.ci/purity
	.ci/layers
	.ci/campaign-mutants --check
	.ci/licenses --check
	.ci/deny
	.ci/workflows
	scripts/release version
	docs/research/figures.py --check
	.ci/docs --check
	e2e/generate.sh --check
docs: ## Build the documentation as a site in target/docs (the first time it builds mdBook)
	.ci/docs
generate: ## Write the CRD, the chart's generated files, manifests/, figures of docs/ and the local cluster's Go modules
	e2e/generate.sh
	docs/research/figures.py
	e2e/cluster/cluster modules

##@ Before each merge

# Cargo compiles a crate once for each set of features, and a set depends on the packages that a command names. So the
# steps name the whole workspace, and use the programs that its tests were built with.
PROGRAMS = $${CARGO_TARGET_DIR:-target}/debug

.PHONY: test
test: ## Everything that CI checks, with end-to-end tests on a local cluster (45 min)
	@e2e/step.sh --begin
	e2e/step.sh "cluster and tools" --budget 14 $(MAKE) --no-print-directory tools
	e2e/step.sh "Rust builds" --budget 12 $(MAKE) --no-print-directory builds
	e2e/step.sh "format, lints, purity, generated files" --budget 3 env SHED=$(PROGRAMS)/shed $(MAKE) --no-print-directory lint
	e2e/step.sh "unit and property tests, golden vectors" --budget 8 $(MAKE) --no-print-directory unit
	e2e/step.sh "research, if it changed" --budget 35 .ci/check --research
	e2e/step.sh "chart" --budget 1 e2e/chart-test.sh
	e2e/step.sh "alerts" --budget 1 $(MAKE) --no-print-directory alerts
	e2e/step.sh "end to end" --budget 20 e2e/run.sh
	e2e/step.sh "upstream Job suite" --budget 6 $(MAKE) --no-print-directory upstream-jobs-if-containers
	e2e/step.sh "built-in Job controller as oracle" --budget 3 env SHED_PROGRAMS=$(PROGRAMS) $(MAKE) --no-print-directory test-differential COUNT=60
	e2e/step.sh "faults, a sample" --budget 4 env SHED_PROGRAMS=$(PROGRAMS) $(MAKE) --no-print-directory campaign-sample
	@e2e/step.sh --summary

# Separate from the steps that use them, so that each step's time is its own.
.PHONY: tools builds
tools: # Kubernetes and the other programs that the tests start; no containers and no images.
	e2e/cluster/cluster tool kube
	e2e/cluster/cluster tool helm
	e2e/cluster/cluster tool kwok
	e2e/cluster/cluster tool vale
	e2e/cluster/cluster tool promtool
	.ci/deny build
	e2e/upstream-jobs.sh build
builds: # Everything that cargo compiles for the tests, and, where containers can run, the operator's image.
	cargo clippy --locked --quiet --workspace --all-targets
	cargo test --locked --quiet --workspace --no-run
	if [ "$$(id -u)" = 0 ] && [ "$${SHED_E2E_NODES-}" != kwok ]; then e2e/image.sh; fi

# Only where containers can run. On a cluster of the user's own, another controller runs other users' Jobs.
.PHONY: upstream-jobs-if-containers
upstream-jobs-if-containers:
	if [ -z "$${SHED_KUBECONFIG-}" ] && [ "$$(id -u)" = 0 ] && [ "$${SHED_E2E_NODES-}" != kwok ]; then \
	  $(MAKE) --no-print-directory test-upstream-jobs CONTROLLER=shed FOCUS=; \
	else echo 'skipped: it needs containers and a cluster of its own'; fi

.PHONY: test-upstream-jobs
test-upstream-jobs: ## Kubernetes' own end-to-end specs of batch/v1 Job (CONTROLLER=builtin: against the built-in controller)
	e2e/upstream-jobs.sh $(CONTROLLER) $(if $(FOCUS),"$(FOCUS)")

COUNT ?= 1000
.PHONY: test-differential
test-differential: ## Random batch/v1 Jobs under shed and under the built-in controller, with equal outcomes (COUNT=1000 SEED=1; 20 min)
	e2e/differential.sh --count $(COUNT) --seed $(SEED)

.PHONY: frozen adversaries model
frozen: ## Compare digests of simulated runs with crates/shed-sim/tests/frozen (2 min; SHED_FROZEN=write updates them)
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed-sim --test frozen -- --include-ignored
adversaries: ## Print the deadlines that a tenant meets next to a hostile one, by act
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed-sim --test adversaries -- --ignored --nocapture
model: ## Model-check the controller's step exhaustively (30 min; docs/develop/model.md)
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed --test model -- \
	  --include-ignored --nocapture --test-threads 1

##@ Faults and scale (hours)

TASKS ?= 200
SCALE ?=

.PHONY: campaign campaign-crash campaign-fence campaign-sample
campaign: ## Every fault at every point of the reference workloads (FAULTS=… selects some)
	e2e/campaign.sh $(if $(FAULTS),--fault $(FAULTS))
campaign-crash: ## Kill the operator after every write, once each
	e2e/campaign.sh --fault crash
campaign-fence: ## TASKS=200 fenced tasks with three live copies on real nodes, with killed operators and frozen nodes
	SHED_FENCE_TASKS=$(TASKS) e2e/run.sh three_live_copies_publish_once --nocapture
campaign-sample: ## A random sample of the campaign (SEED=1), without the slow faults (4 min)
	e2e/campaign.sh --fault crash,lost-answer,stale-pods,stale-jobs,stale-both,gone,conflicts,errors,foreign-pods,cordon,clock-skew,overloaded \
	  --workload plain,clones,failures,adopted,mixed,unplaceable,quota,big-spec --sample 16 --seed $(SEED)

ROUNDS ?= 3
.PHONY: verify research otel fuzz scale clone-cost polls prometheus airflow workflows clients page
verify: scale otel fuzz research prometheus airflow workflows clients page test-differential ## The operator at scale, the laboratory, slow webhooks, overload, large objects, alerts on a real Prometheus, a real Airflow, workflows with a slow node, kubectl shed and the clients, the live page in Chromium, 1000 random Jobs under both controllers, slow commands of the docs (90 min)
	e2e/release-registry.sh
	e2e/scale.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" --scenario finished --finished 1000
	e2e/campaign.sh --fault none,crash --workload big-spec,many-finished,bloated --sample 12 --seed $(SEED)
	e2e/campaign.sh --fault slow-webhook,overloaded --sample 40 --seed $(SEED)
	cargo build --locked --quiet --package shed-sim --bins
	cargo build --locked --quiet --manifest-path research/Cargo.toml --bins
	e2e/docs-commands.py verify
	@echo 'Commands of the pages that no test runs:'
	@e2e/docs-commands.py --list
research: ## Format, clippy and tests of the laboratory in research/, a workspace of its own, and the papers' figures against their page (30 min; `make test` runs it when it changed)
	cargo fmt --manifest-path research/Cargo.toml --check
	cargo clippy --locked --manifest-path research/Cargo.toml --all-targets -- -D warnings
	cargo test --locked --manifest-path research/Cargo.toml
	cargo run --locked --quiet --manifest-path research/Cargo.toml -- reproduce all --check docs/research/reproduction.md
otel: ## Clippy and the tests of spans with the export over OTLP (5 min)
	cargo clippy --locked --package shed --features otel --all-targets -- -D warnings
	cargo test --locked --package shed --features otel --lib -- span
fuzz: ## Each parser of foreign bytes by libFuzzer, SECONDS_EACH=60 (8 min, and a build of 10 min; docs/develop/fuzzing.md)
	fuzz/run
airflow: ## The DAG of docs/how-to/airflow.md on a real Airflow, on real nodes (6 min; the first time it installs Airflow)
	SHED_E2E_THEN=e2e/airflow.sh e2e/run.sh example_tasks
workflows: ## A workflow of three Jobs with a slow node, from a shell script and from a real Airflow, with shed and without (20 min; the first time it installs Airflow)
	SHED_E2E_THEN=e2e/workflows.sh e2e/run.sh example_tasks
clients: ## kubectl shed in pipes and terminals, and the clients of three languages, on real nodes (6 min; pip and Maven download packages)
	clients/generate.sh --check
	go -C clients/go vet ./...
	SHED_E2E_THEN='e2e/kubectl-shed.sh && e2e/clients.sh' e2e/run.sh example_tasks
PAGE ?=
page: ## The live page in a real Chromium, on real nodes (8 min; the first time it installs Chromium; PAGE="--report docs" writes the pictures of the docs)
	SHED_E2E_THEN='e2e/page.sh $(PAGE)' e2e/run.sh example_tasks
MONITORING ?=
prometheus: ## Each alert fires and resolves on a real Prometheus, and each query of the dashboards returns data (20 min; MONITORING="--report docs/develop" writes docs/develop/alerts-verified.md, "--alert ShedNoLeader" sees one alert)
	e2e/monitoring.sh $(MONITORING)
scale: ## 10000 live attempts, 1000 specifications of 1 MB, 10000 finished jobs (SCALE="--scenario job --live 500" changes it)
	CARGO_PROFILE_RELEASE_LTO=off cargo build --locked --quiet --release --package shed
	e2e/scale.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" $(SCALE)
clone-cost: ## What a clone costs the control plane: CPU of the apiserver, writes, bytes (4 min)
	e2e/clone-cost.sh $(ROUNDS)
polls: ## 5000 attempts polled by one operator: counts, CPU, memory
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed --lib -- \
	  --ignored --nocapture five_thousand_attempts

.PHONY: mutants campaign-mutants
mutants: ## Mutation testing of optimizers and estimation (needs cargo-mutants)
	CARGO_PROFILE_TEST_DEBUG=0 .ci/mutate shed-core --out target/mutants/core
	CARGO_PROFILE_TEST_DEBUG=0 .ci/mutate shed-papers --out target/mutants/papers
campaign-mutants: ## Which test notices each fault seeded into the controller (.ci/seeded-faults.yaml; half an hour)
	.ci/campaign-mutants

##@ Measure

.PHONY: bench bench-planner bench-scale bench-latency bench-large league whole-days frontier reproduction profile
bench: ## Time of passes and optimizers, allocations, distance of each optimizer from the optimum
	cargo bench --locked --package shed-papers --bench passes --bench optimizers
	cargo bench --locked --package shed-formulas --bench dollymp
	cargo test --locked --package shed-papers --test optimality_gap -- --nocapture --test-threads 1
bench-planner: ## What a planning pass of the operator costs, part by part, against the size of the cluster
	CARGO_PROFILE_RELEASE_LTO=off cargo test --locked --release --package shed --lib -- \
	  --ignored --nocapture what_a_pass_costs
BENCH_SCALE ?=
bench-scale: ## Compare shed with the built-in Job controller: docs/develop/bench-scale.md (an hour; continues after a stop; BENCH_SCALE="--size 1000x10 --repeat 1")
	CARGO_PROFILE_RELEASE_LTO=off cargo build --locked --quiet --release --package shed
	e2e/bench-scale.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" --report docs/develop $(BENCH_SCALE)
BENCH_LATENCY ?=
bench-latency: ## How long shed takes to delete losers, clone stragglers and begin jobs, over the load: docs/develop/bench-latency.md (30 min; continues after a stop; BENCH_LATENCY="--rate 1,2")
	CARGO_PROFILE_RELEASE_LTO=off cargo build --locked --quiet --release --package shed
	e2e/bench-latency.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" --report docs/develop $(BENCH_LATENCY)
LARGE ?=
bench-large: ## Many nodes and tasks under lost nodes, killed leaders and a bad connection, with every invariant checked: docs/develop/bench-large.md (LARGE="--nodes 1000 --jobs 200 --tasks 100")
	CARGO_PROFILE_RELEASE_LTO=off cargo build --locked --quiet --release --package shed
	e2e/bench-large.sh --operator "$${CARGO_TARGET_DIR:-target}/release/shed" --report docs/develop $(LARGE)
league: ## Every policy over presets, loads and deadlines (hours; needs SHED_TRACES; continues after a stop)
	cargo run --locked --release --quiet --manifest-path research/Cargo.toml -- league --results target/league.jsonl --out docs/research/league.md --data docs/research/data/league-presets.csv
DAYS_FLAGS ?= --seed 0..3
DAYS_POLICIES ?= hadoop-ns,shed-plus,shed-plus{joint=off,keep=end},s-resume-event,mantri,preemption{by=edf},preemption{by=lst},edf-admission,shed-prime
whole-days: ## Nine policies on whole traces (hours; needs SHED_TRACES; continues after a stop; DAYS_FLAGS="--seed 0..1")
	cargo run --locked --quiet --manifest-path research/Cargo.toml -- league --results target/whole-days.jsonl --out docs/research/whole-days.md --data docs/research/data/whole-days.csv \
	  --presets Wp1,Wp3,Wy4,Wy2,Wg12,Wg5,Wg3,Wp1n,Wp3n,Wy4n,Wy2n,Wg12n,Wg5n,Wg3n --flags '$(DAYS_FLAGS)' --policies '$(DAYS_POLICIES)' $(DAYS)
frontier: ## Prices of a clone compared with other policies, and the bars of shed-prime (an hour; needs SHED_TRACES; continues after a stop)
	research/frontier.sh

reproduction: ## The papers' figures run again on 20 seeds: docs/research/reproduction.md (40 min of CPU; needs SHED_TRACES; `make research` compares the page)
	cargo run --locked --quiet --manifest-path research/Cargo.toml -- reproduce all --out docs/research/reproduction.md
profile: ## Flame graphs of the simulator and of the operator under a bench (needs perf)
	e2e/profile.sh

##@ Release

.PHONY: image
image: ## Build the operator's image into an archive
	CARGO_PROFILE_RELEASE_LTO=thin e2e/image.sh
.PHONY: release-registry release-dry-run release-version release-image release-chart release-plugin release-sbom release-schema release-notes release-index release-checksums release-sign advisories
release-registry: ## Push the chart and the image to a registry on this machine, and install them from there if a local cluster is up (2 min)
	e2e/release-registry.sh
# All steps take the same commit, also if another one is made meanwhile.
release-dry-run: export SHED_RELEASE_COMMIT := $(shell git rev-parse HEAD)
release-dry-run: release-version release-image release-chart release-plugin release-sbom release-schema release-notes release-index release-checksums release-sign ## Make all files of a release in target/release-files, and publish nothing (docs/develop/release.md; 25 min)
	scripts/release table
release-version: ## Check that Cargo.toml, the chart, CITATION.cff and the tag (TAG=v0.1.0) have the same version
	clients/generate.sh --check
	scripts/release version $(TAG)
release-image: ## Build the image twice from HEAD, and compare the archives byte by byte
	scripts/release image
release-chart: ## Package the chart twice from HEAD, and compare the packages
	scripts/release chart
release-plugin: ## Build kubectl-shed from HEAD for PLATFORMS (by default this one), with its manifest for krew (BASE_URL=https://… is where the files are published)
	scripts/release plugin $(PLATFORMS)
release-sbom: ## List the packages in both programs, as CycloneDX (the first time it builds cargo-cyclonedx)
	scripts/release sbom
release-schema: ## Write the JSON schema of a DeadlineJob, for editors and validators
	scripts/release schema
release-notes: ## Take the version's section of CHANGELOG.md
	scripts/release notes
release-index: ## Write the index.yaml of a Helm repository that has the chart
	scripts/release index
release-checksums: ## Write the SHA-256 of the files
	scripts/release checksums
release-sign: ## Sign the checksums and a provenance (SIGNING_KEY=FILE; without it a dry run with a key that is thrown away)
	scripts/release sign
advisories: ## Compare the dependencies with RustSec's database of vulnerabilities (downloads it)
	.ci/deny advisories
