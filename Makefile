# iolab: everything a checkout needs, in one place. `make demo` and `make test` set up by themselves.
SHELL := /bin/sh
# Where a distribution has mkfs, losetup and sshd; not every user looks there.
export PATH := $(PATH):/usr/sbin:/sbin
# Without bytecode each worker compiles every test anew, and each command that a test starts all of iolab.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help

PYTHON ?= python3
# uv's releases differ in how they lock; one version makes `make setup` repeatable.
UV_VERSION := 0.13.8
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
BIN := .venv/bin
AGENT := src/iolab/_agent/$(shell uname -m)/iolab-agent
# What agents a wheel holds.
MACHINES := x86_64 aarch64
SBOM := src/iolab/_agent/iolab-agent.cdx.json
MAN_PAGE := src/iolab/_agent/iolab.1
AGENT_SOURCES := agent/Cargo.toml agent/Cargo.lock $(shell find agent/src -name '*.rs' 2>/dev/null) build_agent.py
# Where `make demo` makes its load. Name a file system on the storage that you want to know about.
DEMO_PATH ?= scratch/demo
# Where its session goes.
DEMO_OUT ?= scratch/sessions/demo-$(shell date -u +%Y%m%dT%H%M%SZ)
# How many tests run at a time on two cores: a third of unit tests' time is waiting, and half of end-to-end tests'.
# Long ones have guests, Java and rates that would take the cores from each other.
WORKERS ?= 3
e2e: WORKERS = 4
e2e-long properties: WORKERS = 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --durations 10 -rs --tb short
# Where end-to-end tests are: to look for them in all tests takes longer than most of them.
E2E := --dist loadfile --no-loadscope-reorder tests/e2e tests/fleet tests/campaign tests/session tests/hosts tests/guests tests/loads

# A real mdtest for `make mdtest-test`, and the mpiexec of the MPI that it was built for.
MDTEST ?=
MPIEXEC ?= mpiexec

# How many faults `make campaign` draws, and from what; without a seed from another each time.
FAULTS ?= 500
SEED ?=

# How many ssh hosts `make fleet` makes.
FLEET_HOSTS ?= 3

# What `make cluster` makes: how many nodes, SSDs of each, and where their bytes lie.
CLUSTER_NODES ?= 2
CLUSTER_SSDS ?= 1
CLUSTER_FOLDER ?= /var/tmp

.PHONY: help setup packages test-packages all-packages demo test test-all java-kits object-server guest-kit \
    drive-qemu lint rust unit e2e e2e-long e2e-alone properties mdtest-test campaign mutation mutation-rust \
    bench docs samples agents version wheels rust-aarch64 \
    fleet fleet-down cluster cluster-down kubernetes kubernetes-down kubernetes-test kubernetes-lint clean

help: ## show what can be made
	@sed -n 's/^\([a-z0-9-]*\):[^=]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: packages .venv/.synced $(AGENT) ## install everything that iolab needs, ending in .venv/bin/iolab
	@[ $(MAKELEVEL) -gt 0 ] || $(BIN)/iolab --version

packages:
	@tools/packages.sh required \
	    "fio:fio:to make load" \
	    "cc:gcc libc6-dev:to link the agent" \
	    "cargo:cargo:to compile the agent"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "missing: Python 3.11 or newer ($(PYTHON) is older); set PYTHON=..." >&2; exit 1; }

# Without them the tests that need them are skipped with that reason; with CI set they fail.
test-packages:
	@tools/packages.sh optional \
	    "mkfs.xfs:xfsprogs:for the tests on an XFS of their own" \
	    "losetup:mount:for the tests on loop devices" \
	    "db_bench:rocksdb-tools:for the tests with the real db_bench" \
	    "ip:iproute2:for the tests over network namespaces" \
	    "/usr/sbin/sshd:openssh-server:for the tests over ssh" \
	    "ssh:openssh-client:for the tests over ssh" \
	    "nsenter:util-linux:for the tests over ssh" \
	    "fsfreeze:util-linux:for the tests of devices that hang" \
	    "qemu-system-x86_64:qemu-system-x86:for the tests with guests" \
	    "qemu-img:qemu-utils:for the tests with guests" \
	    "mkfs.btrfs:btrfs-progs:for the tests on a mirror that loses a disk" \
	    "qemu-storage-daemon:qemu-system-common:for the disks of that mirror" \
	    "lz4:lz4:for the kernel of the guests" \
	    "zstd:zstd:for the kernel of the guests" \
	    "cpio:cpio:for what the guests boot from" \
	    "readelf:binutils:for what the guests boot from" \
	    "mke2fs -V:e2fsprogs:for the tools of the guests" \
	    "openssl:openssl:for the tests of objects over TLS" \
	    "chromium:chromium:for the tests that open the report in a browser"

all-packages: test-packages
	@tools/packages.sh optional \
	    "/usr/sbin/slurmctld:slurmctld:for the tests with a Slurm cluster" \
	    "/usr/sbin/slurmd:slurmd:for the tests with a Slurm cluster" \
	    "srun:slurm-client:for the tests with a Slurm cluster" \
	    "prometheus:prometheus:for the tests of metrics" \
	    "ipmitool:ipmitool:for the tests of power meters" \
	    "ipmi_sim:openipmi libopenipmi-dev:for the tests of power meters" \
	    "snmpget:snmp:for the tests of power meters" \
	    "/usr/sbin/snmpd:snmpd:for the tests of power meters" \
	    "mpiexec.mpich:mpich:for the tests of mdtest under MPICH" \
	    "mpiexec.openmpi:openmpi-bin:for the tests of mdtest under Open MPI" \
	    "mvn:maven:for the tests of YCSB and Cassandra" \
	    "javac:openjdk-17-jdk-headless:for the tests of YCSB and Cassandra" \
	    "go:golang-go:for the tests with a real object server" \
	    "ceph:ceph-common:for the tests with a Ceph cluster" \
	    "ceph-mon:ceph-mon:for the tests with a Ceph cluster" \
	    "ceph-mgr:ceph-mgr:for the tests with a Ceph cluster" \
	    "ceph-osd:ceph-osd:for the tests with a Ceph cluster" \
	    "radosgw:radosgw:for the tests with a Ceph cluster"

.tools/bin/uv:
	@tools/packages.sh required "$(PYTHON) -m ensurepip --version:python3-venv:to install uv"
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet uv==$(UV_VERSION)

# The agent is a prerequisite of its own below, so the environment need not wait for its sources.
.venv/.synced: pyproject.toml uv.lock build_agent.py $(filter .tools/%,$(UV))
	@$(UV) sync --frozen --quiet --compile-bytecode --python $(PYTHON)
	@# Of the checkout's own modules too: without, the first command takes twice its time.
	@$(BIN)/python -m compileall -q src
	@touch $@

$(AGENT): $(AGENT_SOURCES) | .venv/.synced
	@$(BIN)/python build_agent.py
	@touch $@

# With one compiler for all, so that they are the same wherever they are made; without .venv, which would compile
# this machine's agent once more.
agents: packages $(AGENT_SOURCES) ## compile the agents for x86_64 and aarch64, as they are in a wheel
	@RUSTC=$$(tools/cross_rust.sh .tools/rust $(MACHINES)) && export RUSTC && \
	    $(PYTHON) build_agent.py $(MACHINES)

version: .venv/.synced ## set the version of the next release everywhere: VERSION=0.2.0
	@test -n "$(VERSION)" || { echo "name the version: make version VERSION=0.2.0" >&2; exit 2; }
	@sed -i '/^version = /s/".*"/"$(VERSION)"/' pyproject.toml agent/Cargo.toml
	@sed -i '/newTag:/s/[0-9].*/$(VERSION)/' deploy/base/kustomization.yaml
	@sed -i '/^__version__ = /s/".*"/"$(VERSION)"/' src/iolab/version.py
	@cargo update --quiet --workspace --offline --manifest-path agent/Cargo.toml
	@$(UV) lock --quiet
	@git --no-pager diff --stat

# The commit's own time: a wheel of it is the same whenever it is made.
wheels: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)
wheels: agents .venv/.synced $(filter .tools/%,$(UV)) ## build the wheel for PyPI, with all agents, and the source archive in dist
	@rm -rf dist
	@RUSTC=$$(tools/cross_rust.sh .tools/rust $(MACHINES)) && export RUSTC && \
	    $(PYTHON) tools/sbom.py $$(getconf GNU_LIBC_VERSION | cut -d" " -f2) >$(SBOM) && \
	    $(BIN)/iolab --man >$(MAN_PAGE) && \
	    IOLAB_MACHINES="$(MACHINES)" $(UV) build --quiet --wheel --out-dir dist
	@$(UV) build --quiet --sdist --out-dir dist
	@$(UV) run --frozen --quiet --isolated --only-group release twine check --strict dist/*
	@$(UV) run --frozen --quiet --isolated --only-group release kubernetes-validate --strict --quiet deploy/base/[!k]*.yaml
	@cp $(SBOM) dist
	@cd dist && sha256sum iolab* | tee SHA256SUMS

demo: setup ## measure a scratch directory with the cluster-kpi study and write a report
	@mkdir -p $(DEMO_PATH)
	@$(BIN)/iolab demo --path $(abspath $(DEMO_PATH)) --out $(DEMO_OUT)

# To link the agent takes one core for a minute, and to check types another. End-to-end tests wait for half of their
# time: unit tests have the processors meanwhile, and give way to them.
test: .venv/.synced test-packages ## lint, types and the tests that tell whether iolab works
	@tools/phases.sh "setup lint" rust "unit e2e"

test-all: setup all-packages ## the rest: long end-to-end tests, and properties with new examples
	@tools/phases.sh docs java-kits object-server guest-kit drive-qemu e2e-long e2e-alone properties

# Fetched and compiled once into the user's cache: 75 MB from Maven Central. A session does it by itself.
java-kits: setup ## build the Java programs of the tests: YCSB with its bindings, and Cassandra
	@$(BIN)/python tools/java_kits.py

# Fetched and compiled once into the user's cache: a program of 60 MB.
object-server: setup ## build versitygw, the object server of the tests, from its Go module
	@$(BIN)/python -m tests.versitygw

# Made once into the user's cache, of the distribution's kernel package (30 MB). A session does it by itself.
guest-kit: setup ## make what the guests of the tests boot from: a kernel, the agent, this machine's fio
	@$(BIN)/python tools/guest_kit.py

# Unpacked once into the user's cache, where this machine's QEMU is older than 9.1: 20 MB of backports.
drive-qemu: setup ## fetch a QEMU whose NVMe drives count what their flash writes
	@$(BIN)/python -m tests.drive_qemu

lint: packages .venv/.synced ## formats, linters, types, and the subjects of new commits
	@tools/subjects.sh
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@cargo fmt --manifest-path agent/Cargo.toml --check
	@cargo clippy --manifest-path agent/Cargo.toml --quiet --locked --all-targets -- -D warnings

rust: setup ## the tests of the agent
	@cargo test --manifest-path agent/Cargo.toml --quiet --locked \
	    --target $$($(PYTHON) -c 'import build_agent as b, platform; print(b.target(platform.machine()))')

# What is skipped needs what qemu-user lacks: io_uring, name spaces of one thread, the program's own file.
rust-aarch64: agents ## the tests of the agent for aarch64, emulated
	@tools/packages.sh required "qemu-aarch64-static:qemu-user-static:to run programs for aarch64"
	@RUSTC=$$(tools/cross_rust.sh .tools/rust $(MACHINES)) && export RUSTC && \
	    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld \
	    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64-static \
	    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static RUSTFLAGS="-C target-feature=+crt-static" \
	    cargo test --manifest-path agent/Cargo.toml --quiet --locked \
	    --target $$($(PYTHON) -c 'import build_agent; print(build_agent.target("aarch64"))') -- \
	    --skip it_survives_the_writer_being_killed --skip what_is_mounted_inside_stays_with_all_in_it \
	    --skip one_write_at_a_time_to_a_file_is_made_by_a_plain_call

unit: setup ## the unit tests
	@nice $(PYTEST) --dist loadfile -m "not e2e"

e2e: setup ## the end-to-end tests of make test
	@$(PYTEST) $(E2E) -m "e2e and not long and not alone"

e2e-long: setup ## those that make test-all adds
	@$(PYTEST) $(E2E) -m "e2e and long and not alone"

# One at a time: what they look at, the company of others would change.
e2e-alone: override WORKERS := 0
e2e-alone: setup ## those that no company may disturb
	@$(PYTEST) $(E2E) -m "e2e and alone"

properties: setup ## the properties, with new examples
	@$(PYTEST) --dist loadfile -m "hypothesis and not e2e" --hypothesis-profile free

mdtest-test: setup ## the same tests of mdtest with a real one: MDTEST=/path/mdtest MPIEXEC=mpiexec.mpich
	@test -n "$(MDTEST)" || { echo "name a real mdtest: make mdtest-test MDTEST=/path/to/mdtest" >&2; exit 2; }
	@IOLAB_TEST_MDTEST=$(MDTEST) IOLAB_TEST_MPIEXEC=$(MPIEXEC) \
	    $(BIN)/python -m pytest -m e2e tests/e2e/test_mdtest.py tests/fleet/test_mdtest.py

campaign: setup ## sessions under faults drawn from a seed (root): FAULTS=500 SEED=7
	@$(BIN)/python -m tests.campaign.campaign --faults $(FAULTS) $(if $(SEED),--seed $(SEED))

# What to try and for how long: MUTATION="--only percentiles --most 50 --minutes 10 --seed 7".
MUTATION ?=

mutation: setup ## change the code in small ways, and tell which changes no test finds
	@$(UV) run --frozen --quiet --group mutation python tools/mutation.py $(MUTATION)

# A sixteenth of all changes is ten minutes of a processor; 0/1 is all of them.
SHARD ?= 0/16

mutation-rust: setup ## the same of the agent, with cargo-mutants
	@cargo mutants --version >/dev/null 2>&1 || { \
	    echo "missing: cargo-mutants; install it with: cargo install cargo-mutants --locked" >&2; exit 1; }
	@cargo mutants --dir agent --shard $(SHARD) --sharding round-robin --output scratch --colors never

bench: setup ## iolab measures itself; prints ratios of two things timed in turn
	@for script in $$(grep -l __main__ bench/*.py bench/*/__main__.py); do \
	    module=$$(echo "$${script%.py}" | sed 's,/__main__$$,,; s,/,.,g'); \
	    echo "== $$module"; $(BIN)/python -m "$$module" || exit 1; done
	@cargo bench --manifest-path agent/Cargo.toml --quiet --locked

# The group is installed aside: nothing of it is in .venv. What pages say of the code is made first.
docs: setup ## build the documentation as a site with search, in scratch/site
	@$(BIN)/python -m tests.site_parts scratch/site-parts
	@NO_MKDOCS_2_WARNING=1 $(UV) run --frozen --quiet --isolated --only-group docs mkdocs build --strict

samples: setup ## write the samples of output in the documentation, and the readme's picture, again
	@$(BIN)/python -m tests.samples
	@$(BIN)/python -m tests.picture

fleet: setup ## make ssh hosts in network namespaces to try a fleet with (root); prints its inventory
	@$(BIN)/python tools/fleet.py up --hosts $(FLEET_HOSTS)

fleet-down: ## remove that fleet completely
	@$(BIN)/python tools/fleet.py down

cluster: setup ## make nodes with SSDs and ports to boot guests on (root); prints their inventory
	@$(BIN)/python tools/cluster.py up --nodes $(CLUSTER_NODES) --ssds $(CLUSTER_SSDS) \
	    --folder $(CLUSTER_FOLDER)

cluster-down: ## remove that cluster completely
	@$(BIN)/python tools/cluster.py down --folder $(CLUSTER_FOLDER)

kubernetes: ## start a real Kubernetes on this machine (root), built from Go modules at the first time
	@tools/packages.sh required "containerd:containerd:to run pods" "runc:runc:to run pods" \
	    "buildah:buildah:to build images" "debootstrap:debootstrap:to build images" \
	    "ip:iproute2:to connect nodes" "/usr/lib/cni/bridge:containernetworking-plugins:to connect pods"
	@wheel=$$(ls dist/*.whl 2>/dev/null | head -1); \
	    { [ -n "$$wheel" ] && [ -z "$$(find src -type f ! -name '*.pyc' -newer "$$wheel" -print -quit)" ]; } || \
	    { rm -f dist/*.whl && IOLAB_MACHINES=$$(uname -m) $(UV) build --quiet --wheel --out-dir dist; }
	@tools/kubernetes/cluster.sh up

kubernetes-down: ## remove that Kubernetes completely; what was built stays in the cache
	@tools/kubernetes/cluster.sh down

kubernetes-lint: .venv/.synced $(filter .tools/%,$(UV)) ## lint deploy/ by kustomize, kubeconform and kube-score, built at the first time
	@$(UV) run --frozen --quiet --isolated --only-group release tools/kubernetes/lint.sh

kubernetes-test: setup kubernetes-lint ## the tests in that Kubernetes, after make kubernetes
	@$(BIN)/python -m pytest -n 0 -v --durations 10 -m kubernetes tests/kubernetes

clean: ## remove what was built here
	@rm -rf .venv .tools scratch agent/target src/iolab/_agent .mypy_cache .ruff_cache .pytest_cache
