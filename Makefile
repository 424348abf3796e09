# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
STORE ?= results/store
RAY_INSTALLED := $(VENV)/.installed-ray

.DEFAULT_GOAL := help
.PHONY: help setup setup-ray run test test-slow test-slurm test-ray test-browser test-latex table publish report lint types check benchmark clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 14

setup: $(INSTALLED) ## make .venv with the versions pinned in constraints.txt

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[baselines,launchers,tracking,dev]'
	@touch $@

setup-ray: $(RAY_INSTALLED) ## add Ray and its launcher to .venv

# Without its dependencies, as it asks for a cloudpickle older than that of joblib; it works with the newer one.
$(RAY_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[ray]'
	$(BIN)/python -m pip install --quiet --no-deps hydra-ray-launcher==1.2.2
	@touch $@

run: $(INSTALLED) ## fit ARCO-GP to the Sachs data and store the result
	$(BIN)/python -m experiments.run data=sachs method=arco_gp

test: $(INSTALLED) ## run the tests but the slow ones
	$(BIN)/python -m pytest

test-slow: $(INSTALLED) ## run the slow tests
	$(BIN)/python -m pytest -m slow

test-slurm: $(INSTALLED) ## run the tests on a SLURM cluster of this machine alone; needs root
	scripts/local_slurm.sh start
	$(BIN)/python -m pytest -m slurm tests/experiments/launchers; code=$$?; scripts/local_slurm.sh stop; exit $$code

test-ray: $(RAY_INSTALLED) ## run the tests on a Ray cluster of this machine alone
	$(BIN)/python -m pytest -m ray tests/experiments/launchers

test-browser: $(INSTALLED) ## run the tests of the page in chromium (Debian: chromium, chromium-driver)
	$(BIN)/python -m pytest -m browser

table: $(INSTALLED) ## rebuild a table of the paper from the store: make table TABLE=degree_4 [STORE=DIR] [VERSION=N]
	$(BIN)/python -m experiments.tables name=$(TABLE) store.path=$(STORE) $(if $(VERSION),version=$(VERSION))

publish: $(INSTALLED) ## rebuild rows, tables, figures and the page from one version of the store: make publish [STORE=DIR] [VERSION=N]
	$(BIN)/python -m experiments.publication store.path=$(STORE) $(if $(VERSION),version=$(VERSION))

test-latex: $(INSTALLED) ## compile the tables with pdflatex (Debian: texlive-latex-base, texlive-latex-extra)
	$(BIN)/python -m pytest -m latex

report: $(INSTALLED) ## write one page of all published tables and figures
	$(BIN)/python -m experiments.html_report out=results/report.html tables=results/tables figures=results/figures

lint: $(INSTALLED) ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED) ## check types
	$(BIN)/mypy

check: lint types test ## lint, types and tests

benchmark: $(INSTALLED) ## measure speed, memory and accuracy on one core; a quarter of an hour
	$(BIN)/python scripts/benchmark.py

clean: ## remove .venv and caches; results stay
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
