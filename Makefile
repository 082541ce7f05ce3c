# Everything a contributor or CI runs. `make check` is exactly what CI runs; `make demo` is the product in one minute.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_VENV := benchmarks/.venv
# One peer needs 3.12; with an older interpreter the benchmarks report it as absent.
BENCH_PYTHON ?= $(shell python3.12 -c 'print("python3.12")' 2>/dev/null || echo $(PYTHON))
# Each test process has its own servers.
PYTEST_FLAGS ?= -n 2 --dist loadfile
BENCH_FLAGS ?=

# $(call install,venv,lock file): the locked packages, then the project itself, as one path file.
# pip steps in where uv cannot: behind a package index that only pip's configuration knows.
define install
$(1)/bin/python -m pip install --quiet --require-hashes --requirement requirements/installer.lock
$(1)/bin/python -m uv pip install --quiet --require-hashes --requirement $(2) \
  || $(1)/bin/python -m pip install --quiet --no-compile --require-hashes --requirement $(2)
$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
endef

COMPILE = $(BIN)/python -m uv pip compile --universal --generate-hashes --quiet \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.NOTPARALLEL:
.PHONY: help setup demo check lint format typing imports sync sync-check models test soak bench lock wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## install what is missing: system packages (as root), the locked environment, the project
	@bash tools/system_packages.sh
	@bash tools/build_callers.sh $(VENV)

# Touched last: an interrupted installation starts again. Once it exists nothing here needs the network.
$(STAMP): requirements/dev.lock pyproject.toml
	@bash tools/make_venv.sh $(VENV) $(PYTHON)
	$(call install,$(VENV),requirements/dev.lock)
	@touch $@

# Needs no system package: the server is a wheel.
demo: $(STAMP)  ## settle invoices, call a provider, kill workers, then prove the ledgers
	$(BIN)/onecommit demo

check: setup lint typing imports sync-check models test  ## everything CI runs

lint: setup  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup  ## apply ruff's fixes and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typing: setup  ## mypy --strict on the package, pyright on the typing tests
	$(BIN)/mypy
	$(BIN)/pyright

imports: setup  ## the layers of the house
	$(BIN)/lint-imports

sync: setup  ## write every generated file: sync twins, errors, reference, definitions
	$(BIN)/python tools/generate_sync.py
	$(BIN)/python tools/generate_errors.py
	$(BIN)/python tools/generate_reference.py
	$(BIN)/python tools/generate_definitions.py

sync-check: setup  ## fail if a generated file differs from its source (the tests compare the definitions)
	$(BIN)/python tools/generate_sync.py --check
	$(BIN)/python tools/generate_errors.py --check
	$(BIN)/python tools/generate_reference.py --check

models: setup  ## check the Spin models, the deliberately broken ones included
	$(BIN)/python models/run.py

test: setup  ## pytest on real PostgreSQL, oldest and newest major
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

soak: setup  ## the long variants of the stress and chaos tests
	$(BIN)/python -m pytest -m soak $(PYTEST_FLAGS)

bench: setup $(BENCH_VENV)/.installed  ## benchmarks beside the peers, by hand on a quiet machine
	$(BENCH_VENV)/bin/python -m benchmarks.run $(BENCH_FLAGS)

# The peers stay out of the environment that is tested.
$(BENCH_VENV)/.installed: requirements/bench.lock pyproject.toml
	@bash tools/make_venv.sh $(BENCH_VENV) $(BENCH_PYTHON)
	$(call install,$(BENCH_VENV),requirements/bench.lock)
	@touch $@

lock: setup  ## resolve the lock files again
	$(COMPILE) --group installer --upgrade --python-version 3.11 --output-file requirements/installer.lock
	$(COMPILE) pyproject.toml --group dev --upgrade --output-file requirements/dev.lock
	$(COMPILE) pyproject.toml --group build --group bench --upgrade --constraints requirements/dev.lock --output-file requirements/bench.lock

wheel: setup  ## build the wheel and the source archive into dist/
	$(BIN)/python -m hatchling build

clean:  ## remove everything that `make` made
	rm -rf $(VENV) $(BENCH_VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools models -name __pycache__ -type d -prune -exec rm -rf {} +
