# Two commands are enough on a fresh machine: `make run` and `make test`. Each sets up what it needs first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= data
LISTENERS ?= PLAINTEXT://127.0.0.1:9092
# The tests' worker processes. Most tests wait most of the time, so that two cores are enough for three.
WORKERS ?= 3
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SOURCES := $(wildcard conftest.py broker protocol compat-tests benchmarks pipeline)
INSTALLED := $(VENV)/.installed
PIPELINE_INSTALLED := $(VENV)/.pipeline-installed

.PHONY: run pipeline pipeline-proof pipeline-cluster install test unit lint type format compat compat-kafka bench soak fuzz wheel clean

run: install
	@echo "data: $(abspath $(DATA))"
	@$(BIN)/odradek serve --override listeners=$(LISTENERS) --override log.dirs=$(abspath $(DATA))

# The data pipeline on PySpark, with a broker of its own; ends with a report. Needs Java 17.
pipeline: MINUTES ?= 2
pipeline: $(PIPELINE_INSTALLED)
	@$(BIN)/python -m pipeline run --minutes $(MINUTES)

# The jobs killed ten times, the broker five times. CI kills each once.
pipeline-proof: $(PIPELINE_INSTALLED)
	$(BIN)/pytest -s pipeline/tests/test_kill.py --kills 10

# A standalone Spark master and two workers, for spark-submit: `pipeline/README.md` has the command.
pipeline-cluster: $(PIPELINE_INSTALLED)
	@$(BIN)/python -m pipeline cluster

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable .
	@touch $@

$(PIPELINE_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --group pipeline
	@touch $@

test: install $(PIPELINE_INSTALLED)
	$(BIN)/pytest $(PARALLEL)

unit: install
	$(BIN)/pytest $(PARALLEL) protocol/tests broker/tests

# The suite against Odradek, and the report card; with Kafka's results kept from the last `make compat-kafka`.
compat: install
	@$(BIN)/pytest $(PARALLEL) compat-tests --results compat-tests/results/odradek.json; status=$$?; \
	$(BIN)/python compat-tests/report_card.py; exit $$status

# What the card says of Kafka: the clients' tests against each release.
compat-kafka: install
	@status=0; cd compat-tests; \
	for release in $$(../$(BIN)/python -c "from harness.versions import *; print(KAFKA_4, KAFKA_3)"); do \
	  ../$(BIN)/pytest $(PARALLEL) clients --target kafka-$$release --results results/kafka-$$release.json || status=$$?; \
	done; ../$(BIN)/python report_card.py; exit $$status

# One client: make compat-aiokafka
compat-%: install
	@$(BIN)/pytest $(PARALLEL) compat-tests/clients/$* --results compat-tests/results/odradek.json; status=$$?; \
	$(BIN)/python compat-tests/report_card.py $*; exit $$status

lint: install
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/lint-imports

type: install $(PIPELINE_INSTALLED)
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

# Options of `python -m benchmarks`: make bench BENCH="--brokers odradek kafka kfake"
bench: install $(PIPELINE_INSTALLED)
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m benchmarks $(BENCH)

# A mixed load with restarts: make soak MINUTES=5
soak: MINUTES ?= 60
soak: install
	$(BIN)/python broker/tests/strength/soak.py --minutes $(MINUTES)

# The fuzz targets for MINUTES each: make fuzz MINUTES=5
fuzz: MINUTES ?= 5
fuzz: install
	$(BIN)/python -m pip install --quiet --group fuzz
	@for target in connection records recovery; do \
	  PYTHONPATH=broker/tests $(BIN)/python -m fuzzing $$target --minutes $(MINUTES) || exit; \
	done

wheel: install
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) dist build
