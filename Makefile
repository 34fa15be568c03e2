# Each target does all its own set-up: a machine needs Python 3.11 or newer, pip and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
export NO_MKDOCS_2_WARNING := 1
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: test test-all check demo paper bench structureboost docs format clean

# A file's tests stay in one process, because they share what they set up.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

test: $(INSTALLED)
	$(PYTEST) -m "not slow" $(ARGS)

test-all: $(INSTALLED)
	$(PYTEST) $(ARGS)

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/mkdocs build --strict --quiet

docs: $(INSTALLED)
	$(BIN)/mkdocs build --strict

demo: $(INSTALLED)
	$(BIN)/structent demo

# The paper's experiments and questions beyond it: make paper ARGS="months --data ../shared/data".
paper: $(INSTALLED)
	$(BIN)/python -m paper $(ARGS)

bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group bench
	$(BIN)/python -m benchmarks $(ARGS)

# The booster of the paper's author, in an environment of its own, on the data in DATA.
DATA ?= ../shared/data
PEER := .venv-structureboost
structureboost: $(INSTALLED)
	test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	$(PEER)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		structureboost polars
	$(PEER)/bin/python benchmarks/structureboost_months.py --data $(DATA)
	$(BIN)/python -m paper structureboost --out docs/results

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Reinstalled only when what is to be installed changes.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--editable '.[all]' --group test --group check
	touch $@

clean:
	rm -rf $(VENV) $(PEER) site .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
