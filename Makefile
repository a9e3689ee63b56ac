# firsttouch: `make help` says what there is.  Only Python 3.11+, a Rust toolchain and a C compiler are needed.
#
#   PYTHON=/path/to/python3   the Python to use (default: the newest one found, see .ci/find-python)
#   PYTEST_ARGS="-k pool"     more options for pytest (-n 0: in one process)
#   LOCK=numpy-2.0            the lock that `make test-quick` uses: numpy-2.0 (the oldest) or test (the newest)
#   SELECT=quick              which marks `make test-quick` runs
#   ROUNDS=9                  counted runs of each in `make demo`
#   AGAIN=1                   run tests that fail once more: those of Python alone, those of Rust all of them
#   GALLERY_ARGS=mandelbrot   the programs that `make gallery` runs (default: all)

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

PYTEST_ARGS ?=
LOCK ?= numpy-2.0
SELECT ?= quick
ROUNDS ?= 5
TRUST_S ?= 3600
SOAK_S ?= 3600
FUZZ_S ?= 60
TEST := .venv-test
QUICK := .venv-quick-$(LOCK)
BUILD := .venv-build
DEMO := .venv-demo
BENCH := .venv-bench
GALLERY := .venv-gallery
FREE := .venv-free-threaded
COVERAGE := .venv-coverage
DOCS := .venv-docs
PUBLISH := .venv-publish
FOREIGN := .venv-foreign

CARGO_FLAGS := --locked --quiet
PIP := bin/python -m pip --disable-pip-version-check install --quiet
WHEEL := target/wheels/built
FREE_WHEEL := target/wheels-free-threaded/built
PRELOAD := python/firsttouch/_lib/libfirsttouch_preload.so
TYPED := python demo release wheels $(wildcard benchmarks examples tests)

rust_files := $(shell find crates -type f) Cargo.toml Cargo.lock
python_files := $(shell find python wheel-data -type f -not -name '*.pyc' -not -name '*.so' 2>/dev/null)
metadata := pyproject.toml LICENSE-MIT LICENSE-APACHE $(wildcard README.md)
suite_files := $(shell find tests/numpy_suite -type f -not -name '*.pyc' 2>/dev/null)

# $(call step,NAME,COMMAND): says what runs and how long it took; a failure names the step and stops make.
define step
@printf '== %s\n' '$(1)'; began=$$(date +%s); if ( $(2) ); then \
    printf '   %s: done in %s s\n' '$(1)' $$(($$(date +%s) - began)); \
else printf '\n*** The step "%s" failed.\n' '$(1)' >&2; exit 1; fi
endef

# $(call tests,NAME,COMMAND): the same for test runners, whose own closing line is the last word.
define tests
@printf '== %s\n' '$(1)'; if ! ( $(2) ); then printf '\n*** The step "%s" failed.\n' '$(1)' >&2; exit 1; fi
endef

# $(call twice,COMMAND): runs tests again where AGAIN is set; what failed at first stands in the output.
define twice
( $(1) ) || { [ -n "$(AGAIN)" ] && printf '\n*** Once more, since AGAIN is set: a test that passes now depends on the scheduler.\n' >&2 && $(or $(2),$(1)); }
endef

# $(call pytest,FOLDER,OPTIONS): the tests on all processors; those that fail, where AGAIN is set, one after the other.
define pytest
$(call twice,$(call in,$(1)) -m pytest -n auto --dist loadfile $(2) --ignore tests/numpy_suite $(PYTEST_ARGS),$(call in,$(1)) -m pytest --last-failed --last-failed-no-failures none $(2) --ignore tests/numpy_suite $(PYTEST_ARGS))
endef

# $(call in,FOLDER): runs Python as in an activated environment; tests start firsttouch, meson and ninja by name.
in = PATH="$$PWD/$(1)/bin:$$PATH" $(1)/bin/python

# $(call environment,FOLDER,LOCK...,WHICH): a fresh environment with exactly what the locks name.
define environment
$(call step,the environment $(1),python=$$(.ci/find-python $(or $(3),--first)) && "$$python" -m venv --clear $(1) \
    && $(1)/$(PIP) --require-hashes $(foreach lock,$(2),-r requirements/$(lock).txt) && touch $@)
endef

# $(call wheel,FOLDER,WHEELS): puts the wheel that was built last into an environment.
define wheel
$(call step,install the wheel into $(1),$(1)/$(PIP) --no-deps --force-reinstall $(or $(2),target/wheels)/*.whl && touch $@)
endef

# $(call build,PYTHON,ENVIRONMENT): builds the wheel for a Python with the maturin of an environment.
define build
$(call step,build the wheel,rm -rf $(@D) && $(2)/bin/maturin build --quiet --release --locked \
    --interpreter $(1) --out $(@D) && touch $@)
endef

.PHONY: help
help: ## what there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- Environments and the wheel -------------------------------------------------------------------------------

.PHONY: tools
tools:
	@for tool in cargo cc; do command -v $$tool >/dev/null || { \
	    echo "*** $$tool is missing: firsttouch is built with a Rust toolchain (1.89+) and a C compiler." >&2; \
	    exit 1; }; done

$(BUILD)/made: requirements/build.txt
	$(call environment,$(BUILD),build)
$(TEST)/made: requirements/test.txt requirements/lint.txt requirements/project.txt
	$(call environment,$(TEST),test lint project)
$(QUICK)/made: requirements/$(LOCK).txt
	$(call environment,$(QUICK),$(LOCK))
$(DEMO)/made: requirements/demo.txt
	$(call environment,$(DEMO),demo)
$(BENCH)/made: requirements/bench.txt
	$(call environment,$(BENCH),bench)
$(DOCS)/made: requirements/docs.txt
	$(call environment,$(DOCS),docs)
$(FOREIGN)/made: requirements/foreign.txt
	$(call environment,$(FOREIGN),foreign)
$(GALLERY)/made: requirements/gallery.txt
	$(call environment,$(GALLERY),gallery)
$(FREE)/made: requirements/build.txt requirements/test.txt
	$(call environment,$(FREE),build test,--free-threaded)
$(PUBLISH)/made: requirements/wheels.txt
	$(call environment,$(PUBLISH),wheels)

$(COVERAGE)/made: requirements/test.txt requirements/project.txt
	$(call environment,$(COVERAGE),test project)

# Not a part of the Python module: other programs load it. The wheel takes it along. install removes the old file first,
# where cp would write into what programs run with.
$(PRELOAD): $(rust_files) | tools
	$(call step,the library for other programs,cargo build $(CARGO_FLAGS) --release --package firsttouch-preload \
	    && mkdir -p $(@D) && install "$${CARGO_TARGET_DIR:-target}/release/$(@F)" $@)

$(WHEEL): $(BUILD)/made $(rust_files) $(python_files) $(metadata) $(if $(filter Linux,$(shell uname)),$(PRELOAD)) | tools
	$(call build,$(BUILD)/bin/python,$(BUILD))

# Free-threaded Python has no stable interface yet: its wheel is for one version.
$(FREE_WHEEL): $(FREE)/made $(rust_files) $(python_files) $(metadata) $(if $(filter Linux,$(shell uname)),$(PRELOAD)) | tools
	$(call build,$(FREE)/bin/python,$(FREE))

$(TEST)/installed: $(TEST)/made $(WHEEL)
	$(call wheel,$(TEST))
$(QUICK)/installed: $(QUICK)/made $(WHEEL)
	$(call wheel,$(QUICK))
$(DEMO)/installed: $(DEMO)/made $(WHEEL)
	$(call wheel,$(DEMO))
$(BENCH)/installed: $(BENCH)/made $(WHEEL)
	$(call wheel,$(BENCH))
$(DOCS)/installed: $(DOCS)/made $(WHEEL)
	$(call wheel,$(DOCS))
$(FOREIGN)/installed: $(FOREIGN)/made $(WHEEL)
	$(call wheel,$(FOREIGN))
$(GALLERY)/installed: $(GALLERY)/made $(WHEEL)
	$(call wheel,$(GALLERY))
$(FREE)/installed: $(FREE)/made $(FREE_WHEEL)
	$(call wheel,$(FREE),$(dir $(FREE_WHEEL)))

.PHONY: wheel
wheel: $(WHEEL) ## build the wheel into target/wheels

.PHONY: preload
preload: $(PRELOAD) ## build the library behind `firsttouch run PROGRAM` for use in this checkout

.PHONY: wheels
wheels: $(PUBLISH)/made | tools ## build into dist, for an old glibc and for musl, what can be published; audit it and test each
	$(call tests,wheels and sdist,$(call in,$(PUBLISH)) -m wheels)

.PHONY: test-fresh-root
test-fresh-root: $(PUBLISH)/made ## install the wheel of `make wheels` in a Debian without a compiler (debootstrap), and run a program
	$(call tests,a fresh root,$(call in,$(PUBLISH)) -m wheels.fresh_root)

# ---- What people ask for --------------------------------------------------------------------------------------

.PHONY: demo
demo: tools $(DEMO)/installed ## a real program on real data, plainly and under firsttouch run
	@$(DEMO)/bin/python -m demo --rounds $(ROUNDS)

.PHONY: test
test: tools lint test-rust c-library test-numpy test-python test-julia ## everything: Rust, Python, lint, types, NumPy's own tests

.PHONY: lint
lint: rust-lint python-lint types lint-project ## formatting, clippy, the crates' documentation, ruff, types, workflows

.PHONY: bench
bench: $(BENCH)/installed ## measure against the other allocators and write BENCHMARKS.md
	@$(BENCH)/bin/python -m benchmarks --write BENCHMARKS.md

.PHONY: docs
docs: $(DOCS)/installed ## build the documentation into target/docs
	$(call step,the documentation,PATH="$$PWD/$(DOCS)/bin:$$PATH" sphinx-build --quiet --fail-on-warning --keep-going docs target/docs)

.PHONY: gallery
gallery: $(GALLERY)/installed ## run the programs of docs/gallery under advise and compare, and write its pages
	@$(call in,$(GALLERY)) -m benchmarks.gallery run $(GALLERY_ARGS)

.PHONY: gallery-render
gallery-render: $(GALLERY)/installed ## write the pages of docs/gallery again from what was recorded
	@$(GALLERY)/bin/python -m benchmarks.gallery render

# ---- The steps of the test ------------------------------------------------------------------------------------

.PHONY: rust-lint
rust-lint: tools $(BUILD)/made
	$(call step,cargo fmt,cargo fmt --all --check)
	$(call step,clippy,PYO3_PYTHON="$$PWD/$(BUILD)/bin/python" \
	    cargo clippy $(CARGO_FLAGS) --workspace --all-targets -- -D warnings)
	$(call step,cargo doc,RUSTDOCFLAGS="-D warnings" cargo doc $(CARGO_FLAGS) --no-deps --package firsttouch --package firsttouch-trace)

# Both tools have what they need in their wheels: neither asks the network.
.PHONY: lint-project
lint-project: $(TEST)/made ## the workflows and dependabot.yml: their syntax, and what attackers could use
	$(call step,zizmor,$(TEST)/bin/zizmor --quiet --offline --no-progress .github)
	$(call step,the schema of workflows,$(TEST)/bin/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml)

.PHONY: python-lint
python-lint: $(TEST)/made
	$(call step,ruff check,$(TEST)/bin/ruff check --quiet --output-format concise .)
	$(call step,ruff format,$(TEST)/bin/ruff format --quiet --diff .)

.PHONY: types
types: $(TEST)/installed
	$(call step,mypy,$(TEST)/bin/mypy $(TYPED))
	$(call step,stubtest,$(TEST)/bin/python -m mypy.stubtest firsttouch._firsttouch)

.PHONY: test-rust
test-rust: | tools
	$(call step,cargo test (debug),$(call twice,cargo test $(CARGO_FLAGS) --package firsttouch --package firsttouch-trace))
	$(call step,the library that a Python test loads,cargo build $(CARGO_FLAGS) --package firsttouch --example own_scratch)
	$(call step,cargo test (a part in release),$(call twice,cargo test $(CARGO_FLAGS) --package firsttouch --release \
	    --lib --test contract --test model --test threads))
	$(call step,the schedules of a model checker,RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle \
	    cargo test $(CARGO_FLAGS) --package firsttouch --no-default-features --test shuttle)

# Only the core is instrumented: neither the standard library nor the allocators in C, and no test that forks.
TSAN := --cfg tsan -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer
.PHONY: tsan
tsan: | tools ## threads in the core under ThreadSanitizer
	$(call step,threads under ThreadSanitizer,RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(TSAN)" CARGO_TARGET_DIR=target/tsan \
	    TSAN_OPTIONS="suppressions=$$PWD/crates/firsttouch/tests/tsan.supp" \
	    "$$(.ci/find-python --first)" -m tests.trust.rust_tests ThreadSanitizer \
	    cargo test $(CARGO_FLAGS) --package firsttouch --no-default-features --target "$$(rustc --print host-tuple)" \
	    --test threads --test scratch_threads)

.PHONY: c-library
c-library: | tools ## build libfirsttouch for C, C++ and Fortran into target/c
	$(call step,the C library,$(MAKE) --silent -f crates/firsttouch-c/Makefile)

.PHONY: install
install: | tools ## install libfirsttouch: PREFIX=/usr/local DESTDIR=
	@$(MAKE) --silent -f crates/firsttouch-c/Makefile install

.PHONY: test-julia
test-julia: c-library ## the tests of the Julia package, with a julia that is found or else Debian's
	$(call tests,the Julia package,.ci/test-julia)

.PHONY: test-python
test-python: $(TEST)/installed ## the Python tests
	$(call tests,pytest,$(call pytest,$(TEST)))

.PHONY: trust
trust: $(TEST)/installed ## look for faults with random programs: TRUST_S=3600 TRUST_SEED=1
	@$(call in,$(TEST)) -m tests.trust --seconds $(TRUST_S) $(if $(TRUST_SEED),--seed $(TRUST_SEED))

.PHONY: trust-repairs
trust-repairs: $(TEST)/installed $(BUILD)/made ## take repairs out one by one, and see the tester find each defect again: REPAIRS="reserve"
	@$(call in,$(TEST)) -m tests.trust.repairs $(REPAIRS)

.PHONY: soak
soak: $(TEST)/installed ## run a mixed program for long, whose memory must not grow: SOAK_S=3600
	@$(call in,$(TEST)) -m tests.soak --seconds $(SOAK_S)

.PHONY: foreign
foreign: $(FOREIGN)/installed ## parts of other packages' tests, plainly and under four allocators
	@$(call in,$(FOREIGN)) -m tests.foreign

# These need a nightly toolchain; what they run with it is in the scripts.
.PHONY: fuzz
fuzz: $(TEST)/installed ## fuzz every parser and format: FUZZ_S=60 seconds each
	@PATH="$$PWD/$(TEST)/bin:$$PATH" .ci/fuzz $(FUZZ_S)

.PHONY: asan
asan: | tools ## the tests of the core and of traces under AddressSanitizer (a nightly toolchain)
	@.ci/asan

.PHONY: miri
miri: | tools ## the core's unit tests under Miri, which interprets them (a nightly toolchain with Miri)
	@.ci/miri

.PHONY: test-numpy
test-numpy: $(TEST)/numpy-suite-passed ## NumPy's own tests, with and without firsttouch
$(TEST)/numpy-suite-passed: $(TEST)/installed $(suite_files)
	$(call step,the NumPy suite,$(call in,$(TEST)) -m tests.numpy_suite && touch $@)

.PHONY: test-quick
test-quick: $(QUICK)/installed ## the quick tests on another Python (PYTHON=) and NumPy (LOCK=)
	$(call tests,quick tests with requirements/$(LOCK).txt,$(call pytest,$(QUICK),-m '$(SELECT)'))

.PHONY: test-free-threaded
test-free-threaded: ## the quick tests and threads under stress without the GIL, on the Python found or given by PYTHON=
	@status=0; .ci/find-python --free-threaded >/dev/null || status=$$?; case $$status in \
	    0) $(MAKE) --no-print-directory free-threaded-tests;; \
	    77) echo '   the tests without the GIL are skipped' >&2;; \
	    *) exit $$status;; esac

.PHONY: free-threaded-tests
free-threaded-tests: $(FREE)/installed
	$(call tests,quick tests without the GIL,export FIRSTTOUCH_STRESS_SECONDS=$${FIRSTTOUCH_STRESS_SECONDS:-60}; \
	    $(call pytest,$(FREE),-m quick))

.PHONY: test-numpy-free-threaded
test-numpy-free-threaded: ## NumPy's own tests without the GIL, with and without firsttouch
	@status=0; .ci/find-python --free-threaded >/dev/null || status=$$?; case $$status in \
	    0) $(MAKE) --no-print-directory $(FREE)/numpy-suite-passed;; \
	    77) echo '   the NumPy suite without the GIL is skipped' >&2;; \
	    *) exit $$status;; esac
$(FREE)/numpy-suite-passed: $(FREE)/installed $(suite_files)
	$(call step,the NumPy suite without the GIL,$(call in,$(FREE)) -m tests.numpy_suite && touch $@)

# What traces, replays or swaps NumPy's handler depends on NumPy's own functions, which no minor version promises to keep.
NUMPYS ?= numpy-2.0 numpy-2.1 numpy-2.2 numpy-2.3 numpy-2.4
.PHONY: test-numpys
test-numpys: ## the tests that trace, replay and swap the handler on every minor NumPy: all on the oldest, the quick ones on the others
	@select='not slow'; for lock in $(NUMPYS); do $(MAKE) --no-print-directory test-quick LOCK=$$lock SELECT="$$select" \
	    PYTEST_ARGS='tests/trace tests/handlers tests/process $(PYTEST_ARGS)' || exit 1; select=quick; done

.PHONY: test-numa
test-numa: $(TEST)/installed ## boot machines with several NUMA nodes (qemu) and test placement in them
	$(call step,machines with several NUMA nodes,$(call twice,$(TEST)/bin/python -m tests.numa))

# It runs no Python but the one that boots the machines; --pages and names of test programs choose some.
.PHONY: test-aarch64
test-aarch64: tools $(TEST)/made ## the tests of the core on emulated 64-bit ARM, with pages of 4 and of 16 KiB: AARCH64_ARGS="--pages 16 fork"
	$(call step,64-bit ARM,$(TEST)/bin/python -m tests.aarch64 $(AARCH64_ARGS))

.PHONY: profilers
profilers: $(TEST)/made ## add the profilers that tests look for; what cannot be had is left out
	-@$(TEST)/$(PIP) --require-hashes -r requirements/peers.txt || echo 'no memray: its tests will be skipped' >&2

.PHONY: neighbours
neighbours: $(TEST)/made ## add other people's packages that take our arrays; what cannot be had is left out
	-@$(TEST)/$(PIP) --require-hashes -r requirements/neighbours.txt \
	    || echo 'not all of JAX, PyArrow, pandas, xarray, Numba, Dask and IPython: their tests will be skipped' >&2

# ---- What a release needs, with cargo-deny and cargo-semver-checks (cargo install --locked NAME) ----------------

# The database of advisories is on GitHub: DENY="advisories bans licenses sources" fetches it.
DENY ?= bans licenses sources
.PHONY: deny
deny: ## licences and sources of the crates we build on; DENY="advisories ..." asks for known faults, too
	$(call step,cargo deny,cargo deny --locked --workspace --all-features --log-level warn check $(DENY))

.PHONY: semver
semver: ## compare the crates' interfaces with the last release
	$(call step,cargo semver-checks,.ci/semver)

.PHONY: coverage
coverage: $(COVERAGE)/made $(BUILD)/made $(if $(filter Linux,$(shell uname)),$(PRELOAD)) | tools ## lines that the tests reach, in Rust and in Python, in one summary (see .ci/coverage)
	@PYTEST_ARGS='$(PYTEST_ARGS)' .ci/coverage $(COVERAGE) $(BUILD)/bin/maturin

.PHONY: release
release: ## tag the version of Cargo.toml, or say what is out of step
	@"$$(.ci/find-python --first)" -m release tag

# ---- Keeping house --------------------------------------------------------------------------------------------

.PHONY: format
format: $(TEST)/made ## put Rust and Python into their usual form
	cargo fmt --all
	$(TEST)/bin/ruff check --quiet --fix . && $(TEST)/bin/ruff format --quiet .

.PHONY: clean
clean: ## remove environments, builds and caches
	rm -rf python/firsttouch/_lib .venv-* target dist docs/pictures docs/reference/api .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
