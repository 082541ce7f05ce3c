# Everything a contributor or CI runs. `make check` is exactly what CI runs; `make demo` is the product in one minute.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_FLAGS ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.NOTPARALLEL:
.PHONY: help setup demo check lint format typing imports sync sync-check models test soak bench lock wheel clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## install what is missing: system packages (as root), the locked environment, the project
	@bash tools/system_packages.sh

# Touched last: an interrupted installation starts again. Once it exists nothing here needs the network.
$(STAMP): requirements/dev.lock pyproject.toml
	@bash tools/make_venv.sh $(VENV) $(PYTHON)
	$(BIN)/python -m pip install --quiet --no-compile --require-hashes --requirement requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup  ## settle invoices while workers are killed, then prove the ledger
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

sync: setup  ## write the sync twins from their async sources
	$(BIN)/python tools/generate_sync.py

sync-check: setup  ## fail if a sync twin differs from its async source
	$(BIN)/python tools/generate_sync.py --check

models: setup  ## check the Spin models, the deliberately broken ones included
	$(BIN)/python models/run.py

test: setup  ## pytest on real PostgreSQL, oldest and newest major
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

soak: setup  ## the long variants of the stress and chaos tests
	$(BIN)/python -m pytest -m soak $(PYTEST_FLAGS)

bench: setup  ## benchmarks beside the peers, by hand on a quiet machine
	$(BIN)/python benchmarks/run.py

lock: setup  ## resolve the lock file again
	$(BIN)/python -m uv pip compile pyproject.toml --group dev --universal --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --quiet --upgrade --output-file requirements/dev.lock

wheel: setup  ## build the wheel and the source archive into dist/
	$(BIN)/python -m hatchling build

clean:  ## remove everything that `make` made
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools models -name __pycache__ -type d -prune -exec rm -rf {} +
