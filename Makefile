# All tasks of this source tree. `make` alone prints this list.
# Needs GNU make, bash and Python >= 3.11; `test` and `demo` also need Java 17, and `test` Maven.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Most modules of the packages are never imported, so none is compiled but those of a daemon. An older Python's pip takes
# three times as long to find what to install as the one that constraints.txt names.
PIP_INSTALL := $(BIN)/python -m pip install -q --no-compile -c constraints.txt

# Downloads are stored outside the tree: pip's cache here, Apache Pulsar's distribution beside it.
export PIP_CACHE_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rgd/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Whatever the environment says: without bytecode each test process compiles all tests again (9 of 15 s), and each
# daemon that a test starts all of rgd.
export PYTHONDONTWRITEBYTECODE :=

# The interpreter that creates .venv: the first of these that runs, is new enough and has venv.
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3 python)

CODE := rgd sim tests proto examples observability $(if $(wildcard bench/*.py),bench)
LIGHT := not pulsar and not spark and not e2e and not slow
# All others. Tests that share one Apache Pulsar, or one Spark, are one worker's (tests/conftest.py).
HEAVY := pulsar or spark or e2e or slow
# Of two cores: many tests wait for rounds, polls, reports of Pulsar and processes, so that two workers leave a third idle.
WORKERS ?= $(shell echo $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) * 3 / 2 )))
PYTEST := $(BIN)/python -m pytest

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## create .venv with rgd and every tool, at the pinned versions
	@:

$(STAMP): pyproject.toml constraints.txt
	@python=""; \
	for candidate in $(PYTHONS); do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	  then python="$$candidate"; break; fi; \
	done; \
	[ -x $(BIN)/python ] || [ -n "$$python" ] || { \
	  echo "make setup: no Python 3.11 or newer with venv found ($(PYTHONS)): install one (Debian: python3-venv too) or run make setup PYTHON=/path/to/python3" >&2; \
	  exit 1; }; \
	[ -x $(BIN)/python ] || { echo "making $(VENV) with $$($$python --version)"; "$$python" -m venv $(VENV); }; \
	echo "installing into $(VENV) (some minutes the first time)"; \
	$(PIP_INSTALL) pip hatchling editables setuptools wheel; \
	$(PIP_INSTALL) --no-build-isolation -e '.[dev]'; \
	$(BIN)/python -c 'import rgd.app.demo.run, rgd.app.planes.plane_process, rgd.app.planes.serving, rgd.cli.main'
	@touch $@

.PHONY: check
check: fmt-check lint arch spell proto-check ## everything that needs neither Java nor Pulsar; about two minutes on two cores
	@$(MAKE) -j 2 types light # mypy has one thread

.PHONY: light
light: $(STAMP)
	$(PYTEST) -q -n $(WORKERS) -m "$(LIGHT)"

.PHONY: test
test: check ## check, then every test on the real components
	$(PYTEST) -q -n $(WORKERS) --dist loadgroup -m "$(HEAVY)" --durations=25

.PHONY: size
size: $(STAMP) ## lines of code of each package beside its budget
	@$(BIN)/python -m tests.tidy.size

.PHONY: cover
cover: $(STAMP) ## coverage of the light tests; core, views and wire at least 95 %
	$(BIN)/coverage run -m pytest -q -m "$(LIGHT)"
	$(BIN)/coverage report
	$(BIN)/coverage report --include='rgd/core/*,rgd/views/*,rgd/wire/*' --fail-under=95 >/dev/null

.PHONY: demo
demo: $(STAMP) ## three daemons, real load, a report by Spark: writes demo-out/
	@$(BIN)/rgd demo --out demo-out

.PHONY: bench
bench: $(STAMP) ## every benchmark, a line of JSON each (bench/README.md names the figures)
	@for script in bench/*.py; do \
	  [ -e "$$script" ] || { echo "no benchmarks yet"; break; }; \
	  echo "$$script"; $(BIN)/python "$$script" --json; \
	done

.PHONY: docs
docs: $(STAMP) ## write the tables of docs/ that declarations in the code say
	@$(BIN)/python -m tests.tidy.pages
	@$(BIN)/python -m rgd.analysis.lake_schema docs/lake.md

.PHONY: dashboards
dashboards: $(STAMP) ## write observability/dashboards/*.json, for Grafana
	@$(BIN)/python -m observability.make_dashboards

.PHONY: manifests
manifests: ## render k8s/rgd.yaml, one file for kubectl apply -f, and the alerts' PrometheusRule (needs kubectl)
	kubectl kustomize k8s/base > k8s/rgd.yaml
	@{ printf '%s\n' 'apiVersion: monitoring.coreos.com/v1' 'kind: PrometheusRule' 'metadata:' '  name: rgd' \
	  '  namespace: rgd' 'spec:'; sed 's/^./  &/' observability/alerts.yaml; } > k8s/components/alerts/prometheusrule.yaml

.PHONY: fmt
fmt: $(STAMP) ## format, and fix what ruff can fix
	$(BIN)/ruff check -q --fix-only $(CODE)
	$(BIN)/ruff format $(CODE)

.PHONY: fmt-check
fmt-check: $(STAMP)
	$(BIN)/ruff format --check -q $(CODE)

.PHONY: lint
lint: $(STAMP) ## ruff's rules
	$(BIN)/ruff check -q $(CODE)

.PHONY: types
types: $(STAMP) ## mypy, strict
	$(BIN)/mypy $(CODE)

.PHONY: arch
arch: $(STAMP) ## the import contracts of .importlinter
	$(BIN)/lint-imports --no-logo

.PHONY: spell
spell: $(STAMP)
	$(BIN)/codespell

.PHONY: proto
proto: $(STAMP) ## generate rgd/wire/*_pb2.py and .pyi from proto/
	$(BIN)/python proto/generate.py

.PHONY: proto-check
proto-check: $(STAMP)
	$(BIN)/python proto/generate.py --check

.PHONY: clean
clean: ## remove the files of these targets, .venv too; the cache outside the tree stays
	rm -rf $(VENV) build dist demo-out rgd-log .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  .import_linter_cache .coverage spark-warehouse metastore_db derby.log
	find rgd sim tests bench proto -name __pycache__ -type d -prune -exec rm -rf {} +
