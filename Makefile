# Two commands are enough on a fresh machine: `make run` and `make test`. Each sets up what it needs first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= data
LISTENERS ?= PLAINTEXT://127.0.0.1:9092
SOURCES := $(wildcard broker protocol compat-tests benchmarks)
INSTALLED := $(VENV)/.installed

.PHONY: run install test unit lint type format compat bench wheel clean

run: install
	@echo "data: $(abspath $(DATA))"
	@$(BIN)/odradek serve --override listeners=$(LISTENERS) --override log.dirs=$(abspath $(DATA))

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable .
	@touch $@

test: install
	$(BIN)/pytest

unit: install
	$(BIN)/pytest protocol/tests broker/tests

compat: install
	$(BIN)/pytest compat-tests

lint: install
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports

type: install
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: install
	$(BIN)/python -m benchmarks

wheel: install
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist build
