# The commands of infx's repository. `make sweep` and `make test` do all their own set-up.
#
#   make sweep     the main job: sweep configs/quickstart.yaml, print where the report is
#   make check     the quick loop: linters, types, fast tests (a minute or two)
#   make test      everything that CI runs: linters, types, all tests but the proofs
#   make proof     the long proofs: kills, soak, full evaluations
#   make engines   real engines beside infx's own, in environments of their own: docs/engines.md
#   make test-engines   what needs them: flags against the parser, a sweep of two engines in one report
#
# PYTHON      the interpreter to make the environment with (3.11 to 3.13)
# TORCH_ARGS  more arguments for the installation of torch, such as an index of CPU builds

VENV ?= .venv
PYTHON ?= python3
TORCH_ARGS ?=
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: sweep check test test-engines engines proof lint types docs clean

sweep: $(VENV)/.runtime
	$(BIN)/infx sweep configs/quickstart.yaml

check: $(VENV)/.dev lint types
	$(BIN)/pytest -q -n auto -m "not slow and not proof and not engines" --hypothesis-profile quick

test: $(VENV)/.dev
	bash .ci/packages
	$(MAKE) --no-print-directory lint types
	$(BIN)/pytest -q -n auto -m "not slow and not proof and not engines"
	$(BIN)/pytest -n 2 --dist loadfile -m "slow and not alone and not proof and not engines"
	$(BIN)/pytest -m "alone and not proof and not engines"
	$(MAKE) --no-print-directory test-engines

engines: $(VENV)/.dev
	PYTHON=$(PYTHON) TORCH_ARGS="$(TORCH_ARGS)" bash .ci/engines $(VENV)

test-engines: engines
	$(BIN)/pytest -m engines --timeout 900

proof: $(VENV)/.dev
	bash .ci/packages
	$(BIN)/pytest -m proof --timeout 3600

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.dev
	$(BIN)/python docs/generate.py

$(VENV)/.runtime: pyproject.toml constraints.txt .ci/environment
	PYTHON=$(PYTHON) TORCH_ARGS="$(TORCH_ARGS)" bash .ci/environment $(VENV) bench,engine,llamacpp,png
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt .ci/environment
	PYTHON=$(PYTHON) TORCH_ARGS="$(TORCH_ARGS)" bash .ci/environment $(VENV) bench,engine,llamacpp,png,dev
	touch $@ $(VENV)/.runtime

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
