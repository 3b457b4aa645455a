# Every target makes what it needs: on a fresh machine, Python 3.11 or newer (or uv) is enough.

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)

# pip where the environment has it, uv where it was made by uv.
INSTALL = if [ -x $(BIN)/pip ]; then $(BIN)/python -m pip install --quiet --disable-pip-version-check $(1); \
	else uv pip install --quiet --python $(BIN)/python $(1); fi

.PHONY: demo test lint format bench clean

demo: $(VENV)/.local  ## The main job on a real server with a real model, from nothing, in under 3 minutes.
	$(BIN)/truecall preflight --local --fail-on never

test: lint  ## All checks.
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python bench/cli_start.py
	$(BIN)/python bench/detector.py
	$(BIN)/python bench/judge.py
	$(BIN)/python bench/preflight.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# A Python without ensurepip (Debian's, without python3-venv) can't finish its venv: then uv makes it.
$(VENV)/.made:
	@if [ -n "$(PYTHON)" ] && "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "making $(VENV) with $$($(PYTHON) --version)"; "$(PYTHON)" -m venv $(VENV); \
	elif command -v uv >/dev/null; then \
		echo "making $(VENV) with uv"; uv venv --quiet --allow-existing --python '>=3.11' $(VENV); \
	else \
		echo "needs Python 3.11 or newer with the venv module (Debian: python3-venv), or uv" >&2; exit 1; \
	fi
	@touch $@

$(VENV)/.local: pyproject.toml | $(VENV)/.made
	$(call INSTALL,-e '.[local]')
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(call INSTALL,-e '.[dev]')
	@touch $@ $(VENV)/.local
