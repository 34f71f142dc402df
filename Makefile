# Everything happens in .venv; stamp files in it remember what is done, so that a second run needs no network.
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
JAVA := $(shell find java -name '*.java' 2>/dev/null)

.PHONY: setup bridge demo demo-kafka test test-cluster epochs random-state properties lint docs dist check-wheel bench faults soak evaluation lock clean

setup: $(STAMPS)/package bridge

$(STAMPS)/python:
	python=$$(scripts/find_python.sh) && { test -x $(BIN)/python || "$$python" -m venv $(VENV); }
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/locked: requirements.lock $(STAMPS)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

$(STAMPS)/jdk: $(STAMPS)/python
	scripts/install_jdk.sh
	touch $@

$(STAMPS)/package: pyproject.toml hatch_build.py hatch_readme.py $(STAMPS)/locked $(STAMPS)/jdk
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	touch $@

# For tests only; without it those of the reports' pages are skipped.
$(STAMPS)/chromium: scripts/install_chromium.sh $(STAMPS)/python
	scripts/install_chromium.sh
	touch $@

# For tests only; without it those of the alerts are skipped.
$(STAMPS)/prometheus: scripts/install_prometheus.sh $(STAMPS)/python
	scripts/install_prometheus.sh $(abspath $(VENV))
	touch $@

# For tests and demo-kafka only; without it those that need a broker are skipped.
$(STAMPS)/broker: penstock/testing/kafka_jars.txt $(STAMPS)/package
	-$(BIN)/python -c "from penstock.testing.kafka_jars import cached_jars; cached_jars()"
	touch $@

bridge: $(STAMPS)/bridge

$(STAMPS)/bridge: $(JAVA) penstock/spark/build_bridge.py $(STAMPS)/package
	$(BIN)/python -P penstock/spark/build_bridge.py
	touch $@

demo: setup
	$(BIN)/penstock demo

# From topic to topic, on a broker of its own, for half a minute.
demo-kafka: setup $(STAMPS)/broker
	$(BIN)/penstock demo-kafka

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Those that start Spark one after the other: it takes both cores.
test: lint $(STAMPS)/chromium $(STAMPS)/prometheus $(STAMPS)/broker
	$(BIN)/python -m pytest -m "not slow and not spark" --numprocesses 2 --dist loadfile
	$(BIN)/python -m pytest -m "not slow and spark"

# The documentation as a site, in site/; a link that leads nowhere fails it.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html, or with its search: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

# The wheel and the source archive, in dist/; PENSTOCK_REPOSITORY is the public address of the repository, if there is one.
dist: setup
	$(BIN)/python -m build --no-isolation --outdir dist

# The wheel in fresh environments outside of the checkout, with every Python that is here: it runs a flow in each.
check-wheel: dist
	scripts/check_wheel.sh dist

# The properties of the epochs' protocol with many more schedules: some minutes.
epochs: setup
	PENSTOCK_EXAMPLES=$(or $(EXAMPLES),500) $(BIN)/python -m pytest --timeout=3600 tests/epochs

# Random flows with state on Spark: SEEDS others each time, some 20 s each; a test that fails names the seed to play again.
random-state: setup
	PENSTOCK_SEEDS=$(or $(SEEDS),20) $(BIN)/python -m pytest tests/spark/test_random_state.py

# All properties of parts without Spark with other examples each time; what fails is told in a form to play again.
properties: setup
	PENSTOCK_RANDOM=1 $(BIN)/python -m pytest -m "not spark and not slow"

# The tests of the runtime once more, with two executors in processes of their own; PENSTOCK_TEST_SHUFFLE names the shuffle between them.
test-cluster: setup
	PENSTOCK_TEST_MASTER="local-cluster[2,24,1024]" $(BIN)/python -m pytest tests/spark -m spark

bench: setup $(STAMPS)/broker
	$(BIN)/penstock bench --quick

# Every row of the fault table three times: about 25 minutes on two cores.
faults: setup
	$(BIN)/penstock faults --repeat 3 --out faults.jsonl --into docs/reliability.md

# An hour of load with random kills; TRACE=FILE is a CSV of a real one (timestamp, value).
soak: setup
	$(BIN)/penstock soak $(if $(TRACE),--trace $(TRACE)) --out soak --into docs/reliability.md

# Every application of the papers on Spark: half an hour on two cores with nothing else to do.
evaluation: setup
	$(BIN)/penstock evaluate --out evaluation --into docs/evaluation.md

# Run after changing the dependencies in pyproject.toml; the lock file must not depend on this machine.
lock: $(STAMPS)/python
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header --no-emit-index-url --no-emit-find-links \
		--extra apps --extra arrow --extra dashboard --extra kafka --extra livestream --extra metrics --extra report --extra bench --extra dev --extra docs --output-file requirements.lock pyproject.toml

clean:
	rm -rf build dist site penstock/spark/jars penstock/bench/jars .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f $(STAMPS)/package $(STAMPS)/bridge
	find penstock tests -name __pycache__ -type d -prune -exec rm -rf {} +
