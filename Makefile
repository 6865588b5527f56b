# iolab: everything a checkout needs, in one place. `make demo` and `make test` set up by themselves.
SHELL := /bin/sh
.DEFAULT_GOAL := help

PYTHON ?= python3
# uv's releases differ in how they lock; one version makes `make setup` repeatable.
UV_VERSION := 0.13.8
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
BIN := .venv/bin
AGENT := src/iolab/_agent/iolab-agent
AGENT_SOURCES := agent/Cargo.toml agent/Cargo.lock $(shell find agent/src -name '*.rs' 2>/dev/null) build_agent.py
# Where `make demo` makes its load. Name a file system on the storage that you want to know about.
DEMO_PATH ?= scratch/demo
PYTEST_WORKERS ?= 2
# End-to-end tests mostly wait, so two at a time take half the time. One at a time disturbs none.
E2E_WORKERS ?= 1
# Where they are: to look for them in all tests takes longer than most of them.
E2E_TESTS := tests/e2e tests/fleet tests/run

# A real mdtest for `make mdtest-test`, and the mpiexec of the MPI that it was built for.
MDTEST ?=
MPIEXEC ?= mpiexec

# How many ssh hosts `make fleet` makes.
FLEET_HOSTS ?= 3

# What `make cluster` makes: how many nodes, SSDs of each, and where their bytes lie.
CLUSTER_NODES ?= 2
CLUSTER_SSDS ?= 1
CLUSTER_FOLDER ?= /var/tmp

.PHONY: help setup packages test-packages demo test java-kits guest-kit lint unit e2e mdtest-test bench fleet fleet-down cluster cluster-down clean

help: ## show what can be made
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup: packages .venv/.synced $(AGENT) ## install everything that iolab needs, ending in .venv/bin/iolab
	@$(BIN)/iolab --version

packages:
	@tools/packages.sh required \
	    "fio:fio:to make load" \
	    "cc:gcc libc6-dev:to link the agent" \
	    "cargo:cargo:to compile the agent"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "missing: Python 3.11 or newer ($(PYTHON) is older); set PYTHON=..." >&2; exit 1; }

test-packages:
	@tools/packages.sh optional \
	    "mkfs.xfs:xfsprogs:for the tests on an XFS of their own (tests/e2e)" \
	    "losetup:mount:for the tests on loop devices (tests/e2e)" \
	    "db_bench:rocksdb-tools:for the tests with the real db_bench (tests/e2e, tests/run)" \
	    "ip:iproute2:for the tests over network namespaces (tests/e2e, tests/run)" \
	    "/usr/sbin/sshd:openssh-server:for the tests over ssh (tests/fleet)" \
	    "ssh:openssh-client:for the tests over ssh (tests/fleet)" \
	    "nsenter:util-linux:for the tests over ssh (tests/fleet)" \
	    "fsfreeze:util-linux:for the tests of faults of the native engine (tests/e2e)" \
	    "/usr/sbin/slurmctld:slurmctld:for the tests with a Slurm cluster (tests/fleet/test_slurm.py)" \
	    "/usr/sbin/slurmd:slurmd:for the tests with a Slurm cluster (tests/fleet/test_slurm.py)" \
	    "srun:slurm-client:for the tests with a Slurm cluster (tests/fleet/test_slurm.py)" \
	    "mpiexec.mpich:mpich:for the tests of mdtest under MPICH (tests/e2e, tests/fleet)" \
	    "mpiexec.openmpi:openmpi-bin:for the tests of mdtest under Open MPI (tests/e2e, tests/fleet)" \
	    "mvn:maven:for the tests of YCSB and Cassandra (tests/e2e)" \
	    "javac:openjdk-17-jdk-headless:for the tests of YCSB and Cassandra (tests/e2e)" \
	    "qemu-system-x86_64:qemu-system-x86:for the tests with guests (tests/e2e, tests/fleet)" \
	    "qemu-img:qemu-utils:for the tests with guests (tests/e2e, tests/fleet)" \
	    "lz4:lz4:for the kernel of the guests (tests/e2e)" \
	    "zstd:zstd:for the kernel of the guests (tests/e2e)" \
	    "cpio:cpio:for the tests of what guests boot from (tests/e2e)" \
	    "readelf:binutils:for the tests of what guests boot from (tests/e2e)" \
	    "mke2fs -V:e2fsprogs:for the tools of the guests (tests/e2e)" \
	    "chromium:chromium:for the tests that open the report in a browser (tests/report)"

.tools/bin/uv:
	@tools/packages.sh required "$(PYTHON) -m ensurepip --version:python3-venv:to install uv"
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install --quiet uv==$(UV_VERSION)

# The agent is a prerequisite of its own below, so the environment need not wait for its sources.
.venv/.synced: pyproject.toml uv.lock build_agent.py $(filter .tools/%,$(UV))
	@$(UV) sync --frozen --quiet --python $(PYTHON)
	@touch $@

$(AGENT): $(AGENT_SOURCES) | .venv/.synced
	@$(BIN)/python build_agent.py
	@touch $@

demo: setup ## measure a scratch directory with the cluster-kpi study and write a report
	@mkdir -p $(DEMO_PATH)
	@$(BIN)/iolab run cluster-kpi --path $(abspath $(DEMO_PATH)) --scale small \
	    --out scratch/sessions/demo-$$(date -u +%Y%m%dT%H%M%SZ) --report

test: setup test-packages java-kits guest-kit lint unit e2e ## lint, types and all tests

# Fetched and compiled once into the user's cache: 75 MB from Maven Central. A session does it by itself.
java-kits: setup ## build the Java programs of the tests: YCSB with its bindings, and Cassandra
	@$(BIN)/python tools/java_kits.py

# Made once into the user's cache, of the distribution's kernel package (30 MB). A session does it by itself.
guest-kit: setup ## make what the guests of the tests boot from: a kernel, the agent, this machine's fio
	@$(BIN)/python tools/guest_kit.py

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@cargo fmt --manifest-path agent/Cargo.toml --check
	@cargo clippy --manifest-path agent/Cargo.toml --quiet --locked --all-targets -- -D warnings

unit: setup
	@cargo test --manifest-path agent/Cargo.toml --quiet --locked
	@$(BIN)/python -m pytest -m "not e2e" -n $(PYTEST_WORKERS)

e2e: setup
	@failed=0; \
	$(BIN)/python -m pytest -m "e2e and not alone" -n $(E2E_WORKERS) --dist loadfile \
	    --no-loadscope-reorder --durations 12 $(E2E_TESTS) || failed=1; \
	$(BIN)/python -m pytest -m "e2e and alone" --durations 12 $(E2E_TESTS) || failed=1; \
	exit $$failed

mdtest-test: setup ## the same tests of mdtest with a real one: MDTEST=/path/mdtest MPIEXEC=mpiexec.mpich
	@test -n "$(MDTEST)" || { echo "name a real mdtest: make mdtest-test MDTEST=/path/to/mdtest" >&2; exit 2; }
	@IOLAB_TEST_MDTEST=$(MDTEST) IOLAB_TEST_MPIEXEC=$(MPIEXEC) \
	    $(BIN)/python -m pytest -m e2e tests/e2e/test_mdtest.py tests/fleet/test_mdtest.py

bench: setup ## iolab measures itself; prints ratios of two things timed in turn
	@for script in $$(grep -l __main__ bench/*.py bench/*/__main__.py); do \
	    echo "== $$script"; $(BIN)/python $$script || exit 1; done
	@cargo bench --manifest-path agent/Cargo.toml --quiet --locked

fleet: setup ## make ssh hosts in network namespaces to try a fleet with (root); prints its inventory
	@$(BIN)/python tools/fleet.py up --hosts $(FLEET_HOSTS)

fleet-down: ## remove that fleet completely
	@$(BIN)/python tools/fleet.py down

cluster: setup ## make nodes with SSDs and ports to boot guests on (root); prints their inventory
	@$(BIN)/python tools/cluster.py up --nodes $(CLUSTER_NODES) --ssds $(CLUSTER_SSDS) \
	    --folder $(CLUSTER_FOLDER)

cluster-down: ## remove that cluster completely
	@$(BIN)/python tools/cluster.py down --folder $(CLUSTER_FOLDER)

clean: ## remove what was built here
	@rm -rf .venv .tools scratch agent/target $(dir $(AGENT)) .mypy_cache .ruff_cache .pytest_cache
