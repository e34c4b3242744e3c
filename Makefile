# make demo, make test: everything is set up on the way; a fresh machine needs Python 3.11 to 3.14 and Git.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: demo test lint bench smoke smoke-short smoke-test clean

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
		|| { echo "stackctl needs Python 3.11 to 3.14: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash tests/demo.sh

test: $(READY) lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "not smoke"

lint: $(READY)
	$(BIN)/ruff check stackctl tests checks

bench: $(READY)
	$(BIN)/python -m tests.bench.bench_stack
	$(BIN)/python -m tests.bench.bench_audit

# Real SGLang code without a GPU: an environment of 1.6 GB in the cache folder, made at the first run.
# Another release: make smoke RELEASE=0.5.22. Some scenarios only: make smoke SCENARIOS="endpoints order".
RELEASE ?= 0.5.23
SCENARIOS ?=
smoke: $(READY)
	$(BIN)/stackctl upstream add $(RELEASE)
	$(BIN)/stackctl smoke run $(SCENARIOS) --onto v$(RELEASE)

# The short form of it for CI: every route, and one run of the load with long prompts. A CI machine may be too noisy
# to tell times (exit code 2, said in the output); wrong answers, errors and broken order are red on any machine.
smoke-short: $(READY)
	$(BIN)/stackctl upstream add $(RELEASE)
	$(BIN)/stackctl smoke run endpoints --onto v$(RELEASE) --arm on --arm inline --case generation --case embedding \
		|| [ $$? -eq 2 ]
	$(BIN)/stackctl smoke run mixed --onto v$(RELEASE) --arm on --arm inline --case shared --runs 1 --set seconds=5 \
		|| [ $$? -eq 2 ]

# Tests that boot servers themselves: mutations are caught, nothing is left behind, kills are survived.
smoke-test: $(READY)
	$(BIN)/python -m pytest -m smoke tests/smoke

clean:
	rm -rf $(VENV) .demo build *.egg-info
