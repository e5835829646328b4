# make demo      install into .venv, fit the Titanic table, show what was found, classify games and patients
# make test      the tests
# make slow      the heavier statistical tests, the README, documentation, examples and notebooks
# make lint      style, format, types, and which room imports which
# make docs      the documentation, into build/docs
# make bench     speed and memory, beside their targets
# make examples  run README, documentation and notebooks, and write what they print into them
# make clean     remove whatever these made
#
# Needs Python 3.11 or newer, git and make; PYTHON=python3.12 chooses another interpreter.

PYTHON ?= python3
VENV ?= .venv

bin := $(VENV)/bin
demo := build/demo
pip := $(bin)/python -m pip install -qq --disable-pip-version-check
# uv takes a third of pip's time; pip, with its own settings, installs where uv cannot
uv := $(bin)/uv pip install -q --compile-bytecode --python $(bin)/python
install = ($(pip) uv && $(uv) --editable '.[$(extras)]') 2>/dev/null || $(pip) --editable '.[$(extras)]'

# Each process that a test starts would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test slow lint docs bench examples clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.installed
	mkdir -p $(demo)
	$(bin)/bayescascade fit data/titanic.csv --drop survived --model leaf --leaf independent --expected-leaves 8 --seed 0 --out $(demo)/titanic.json --trace $(demo)/titanic.nc
	$(bin)/bayescascade show $(demo)/titanic.json --given sex=male
	$(bin)/bayescascade diagnose $(demo)/titanic.nc
	$(bin)/bayescascade classify data/tic_tac_toe.csv --target outcome --max-size 3 --seed 0 --out $(demo)/games.json
	$(bin)/bayescascade budget data/liver_clinic.csv --target outcome --costs data/liver_clinic_costs.csv --budgets 5,10,20,43 --method prune --seed 0 --plot $(demo)/patients.png

test: $(VENV)/.installed-test
	$(bin)/python -m pytest -n 2 --dist worksteal

slow: $(VENV)/.installed-test
	$(bin)/python -m pytest -n 2 --dist worksteal -m slow

lint: $(VENV)/.installed-dev
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/lint-imports

# Warnings, such as of a link to nowhere, are errors.
docs: $(VENV)/.installed-docs
	$(bin)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

# Benchmarks are kept out of the default run by options that must not apply here.
bench: $(VENV)/.installed-dev
	$(bin)/python -m pytest -o addopts= --import-mode=importlib tests/benchmarks

examples: $(VENV)/.installed-test
	PYTHONPATH=. $(bin)/python docs/pictures.py
	$(bin)/python -m tests.documents

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The dot files say what was installed; a change of pyproject.toml installs again.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: extras := plots,traces
$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	@echo "Installing into $(VENV), up to a minute ..."
	@$(install)
	touch $@

$(VENV)/.installed-%: extras = $*
$(VENV)/.installed-%: pyproject.toml | $(VENV)/.made
	@echo "Installing into $(VENV) with what [$*] needs, up to a minute ..."
	@$(install)
	touch $@ $(VENV)/.installed
