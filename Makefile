# firsttouch. `make help` lists the commands; to begin with they need Python 3.11+, Rust 1.89+ and a C compiler.
#
#   PYTHON=/path/to/python3   instead of the newest that .ci/find-python finds
#   PYTEST_ARGS="-k pool"     more options for pytest
#   AGAIN=1                   run tests that failed once more
#   ROUNDS=9                  counted runs of each in `make demo`
#   BEFORE=a.whl AFTER=b.whl  what `make guards` compares (AFTER: the wheel of this checkout)

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

ROUNDS ?= 5
BEFORE ?=
AFTER ?= target/wheel-release/*.whl
GUARDS ?=
# What is tested with the tests that trace or swap NumPy's handler, on the oldest Python.
NUMPYS ?= 2.0.2 2.1.3 2.2.6 2.3.5 2.4.6

pythons := $(shell .ci/find-python)
newest = $(or $(firstword $(pythons)),$(error no Python))
UV := $(or $(shell command -v uv),.venv-uv/bin/uv)
STEP := $(firstword $(pythons)) .ci/steps --step
sources := $(shell find crates python wheel-data backend -type f -not -name '*.pyc' -not -name '*.so') \
    Cargo.toml Cargo.lock pyproject.toml README.md

.PHONY: help
help:
	@awk -F ':.*## ' '/^[a-z -]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- Environments from uv.lock: .venv to develop and test in, .venv-release for the wheel of users ----

.venv-uv/bin/uv:
	@$(STEP) uv '$(newest) -m venv .venv-uv && .venv-uv/bin/python -m pip --quiet install uv==0.13.9'

# $(call sync,FOLDER,GROUPS,PYTHON)
sync = $(STEP) 'environment $(1)' 'UV_PROJECT_ENVIRONMENT=$(1) $(UV) sync --quiet --locked --inexact \
    --no-install-project --no-python-downloads --python $(or $(3),$(newest)) $(2)' && touch $@
# $(call wheel,PROFILE,ENVIRONMENT): in a folder that nothing else writes to.
wheel = $(STEP) 'wheel, profile $(1)' 'rm -rf $(@D) && MATURIN_PEP517_ARGS="--profile $(1) --locked" $(UV) build \
    --wheel --no-build-isolation --python $(2)/bin/python --out-dir $(@D)' && touch $@
# $(call install,ENVIRONMENT,WHEEL)
install = $(UV) pip install --quiet --python $(1)/bin/python --no-deps --reinstall $(2)/*.whl && touch $@

.venv/synced: uv.lock | $(UV)
	@$(call sync,.venv)
.venv/neighbours: uv.lock | $(UV)
	@$(call sync,.venv,--group neighbours)
.venv/foreign: uv.lock | $(UV)
	@$(call sync,.venv,--group foreign)
.venv-release/synced: uv.lock | $(UV)
	@$(call sync,.venv-release,--no-default-groups --group build --group demo)
.venv-release/lab: uv.lock | $(UV)
	@$(call sync,.venv-release,--no-default-groups --group build --group demo --group docs --group lab)
target/wheel-fast/built: $(sources) | .venv/synced
	@$(call wheel,fast,.venv)
target/wheel-release/built: $(sources) | .venv-release/synced
	@$(call wheel,release,.venv-release)
.venv/installed: .venv/synced target/wheel-fast/built
	@$(call install,.venv,target/wheel-fast)
.venv-release/installed: .venv-release/synced target/wheel-release/built
	@$(call install,.venv-release,target/wheel-release)

# ---- The three commands, and their parts: .ci/steps has what each does ----

.PHONY: check test test-all lint quick rust python numpy fuzz test-julia test-numa test-windows numpys free-threaded
check: ## format, lint, types, the quick tests
test: ## what proves that it works: contract, random programs, Python, C, preload, a share of NumPy's tests
test-all: ## everything: slow tests, Julia, every NumPy, NUMA machines, no GIL, fuzzing, documentation, demonstration
check test test-all: ; @$(newest) .ci/steps $@
lint quick rust python numpy fuzz test-julia test-numa test-windows: ; @$(newest) .ci/steps installed $@

numpys free-threaded: .venv/installed ; @UV='$(UV)' NUMPYS='$(NUMPYS)' .ci/others $@

# ---- What people ask for ----

.PHONY: preload demo docs c-library install guards count bench gallery trust foreign format clean
demo: .venv-release/installed ## a real program, plainly and under firsttouch run
	@.venv-release/bin/python -m demo --rounds $(ROUNDS)
docs: .venv-release/lab .venv-release/installed ## the documentation, in target/docs
	@rm -rf docs/reference/api target/docs && $(STEP) documentation 'PATH="$$PWD/.venv-release/bin:$$PATH" sphinx-build --quiet --fail-on-warning --keep-going docs target/docs'
preload: ## the library behind `firsttouch run PROGRAM`, for use in this checkout
	@$(STEP) $@ 'cargo build --quiet --locked --release --package firsttouch-preload'
	install -D target/release/libfirsttouch_preload.so -t python/firsttouch/_lib
c-library: ## libfirsttouch for C, C++ and Fortran, in target/c
	@$(STEP) $@ '$(MAKE) --silent -f crates/firsttouch-c/Makefile'
install: ## install libfirsttouch: PREFIX=/usr/local DESTDIR=
	@$(STEP) $@ '$(MAKE) --silent -f crates/firsttouch-c/Makefile install'
guards: .venv-release/lab .venv-release/installed ## six figures of two wheels, interleaved: BEFORE=a.whl AFTER=b.whl
	@$(STEP) $@ '.venv-release/bin/python -m benchmarks.guards $(BEFORE) $(AFTER) $(GUARDS)'
count: ## lines and files by room, with the targets
	@$(newest) benchmarks/count.py $(BEFORE)
bench: .venv-release/lab .venv-release/installed ## measure against other allocators, into target/bench
	@$(STEP) $@ '.venv-release/bin/python -m benchmarks'
gallery: .venv-release/lab .venv-release/installed ## the programs of docs/gallery under advise and compare
	@$(STEP) $@ '.venv-release/bin/python -m benchmarks.gallery'
trust: .venv/installed ## random programs: SECONDS=3600
	@$(STEP) $@ 'cargo test -q --locked --profile fast -p firsttouch --test scratch -- --ignored && .venv/bin/python -m tests.trust --seconds $(or $(SECONDS),3600)'
foreign: .venv/foreign .venv/installed ## parts of other packages' tests, plainly and under four allocators
	@$(STEP) $@ '.venv/bin/python -m tests.suites --foreign'
format: .venv/synced ## format Rust and Python
	cargo fmt --all && .venv/bin/ruff check --quiet --fix . ; .venv/bin/ruff format --quiet .
clean: ## remove environments, builds and caches
	rm -rf python/firsttouch/_lib .venv* target docs/pictures docs/reference/api .*_cache
