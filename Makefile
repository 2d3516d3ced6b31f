# Every target sets up what it needs. `make demo` and `make test` are the two to start with.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
BENCH_READY := .bench-venv/.ready
SOURCES := conjure_jupyter conjure scripts
LAB_FLAGS := $(if $(filter 0,$(shell id -u)),--allow-root)

# A folder of its own for each run's files: pytest's shared one is cleaned by every run that ends.
pytest = scratch=$$(mktemp -d) && { $(1) --basetemp="$$scratch/t"; code=$$?; rm -rf "$$scratch"; exit $$code; }

# Python starts half a second later wherever the machine forbids it to keep bytecode.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: help setup demo lab test lint rules format types notebooks outputs browser docker image unit bench picture lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(READY) ## make .venv with the package and everything the other targets need

$(READY): requirements-dev.txt pyproject.toml scripts/setup_env.py
	@$(PYTHON) -m scripts.setup_env .venv requirements-dev.txt
	@touch $@

$(BENCH_READY): requirements-bench.txt pyproject.toml scripts/setup_env.py
	@$(PYTHON) -m scripts.setup_env .bench-venv requirements-bench.txt
	@touch $@

demo: $(READY) ## run the quickstart notebook in ./demo and show what it did
	@$(BIN)/conjure demo

lab: $(READY) ## open the quickstart notebook in JupyterLab
	@$(BIN)/conjure demo --no-run
	$(BIN)/jupyter lab $(LAB_FLAGS) --ServerApp.root_dir=demo --LabApp.default_url=/lab/tree/01_quickstart.ipynb

# What takes longest to set up begins at once; `docker` waits for it.
test: $(READY) ## run every check; each runs even when an earlier one fails
	@$(BIN)/python -m scripts.setup_docker >/dev/null 2>&1 &
	@$(MAKE) --no-print-directory --keep-going lint types browser notebooks unit

lint: rules format ## ruff: rules and format

rules: $(READY)
	$(BIN)/ruff check .

format: $(READY)
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy $(SOURCES)

notebooks: docker ## run the notebooks offline and compare their outputs
	CONJURE_CLIENT=offline $(BIN)/python -m tests.with_engine $(BIN)/pytest --nbval -p no:cacheprovider notebooks

outputs: docker ## run the notebooks offline and save their outputs anew
	CONJURE_CLIENT=offline $(BIN)/python -m tests.with_engine $(BIN)/jupyter nbconvert --to notebook --execute \
		--inplace --ExecutePreprocessor.record_timing=False notebooks/*.ipynb

browser: $(READY) ## drive JupyterLab in a real browser, in a process of its own
	@$(BIN)/python -m scripts.setup_browser
	@$(call pytest,$(BIN)/pytest -m browser tests/notebook/test_browser*.py)

docker: $(READY) ## get an engine and an image for the tests of containers
	@$(BIN)/python -m scripts.setup_docker

image: docker ## build the whole sandbox image and use it; minutes, and the network
	@$(call pytest,$(BIN)/pytest -m image tests/executors/docker)

# In the order of the folders, which has the slow files early: the default leaves files of few tests to the end.
unit: $(READY) docker ## every other test
	@$(BIN)/python -m scripts.setup_render
	@$(call pytest,$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder)

bench: $(BENCH_READY) ## measure against named peers, in an environment of their own
	.bench-venv/bin/python -m tests.benchmarks $(BENCH)

picture: $(READY) ## draw docs/images/notebook.png anew
	@$(BIN)/python -m scripts.setup_browser
	$(BIN)/python -m tests.notebook.picture

lock: $(READY) ## bring the lock files up to date with pyproject.toml
	@$(BIN)/python -m scripts.lock

clean: ## remove environments, caches and build products; ./demo stays
	rm -rf .venv .bench-venv .cache build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
