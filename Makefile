# `make demo` and `make test` need python3, make and a package registry, nothing else; .venv is made once and again only when pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
SPARK := .venv/.installed-spark
DOCS := .venv/.installed-docs
BROWSER := .venv/.installed-browser

MINUTES ?= 60

.PHONY: size setup demo paper test lint format types check test-more soak test-spark test-browser bench pictures docs dist clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $(STAMP)

demo: $(STAMP) ## the whole job on real data: a year of rain, hour by hour
	$(BIN)/offrecord demo --output out/demo --force

paper: $(STAMP) ## every number, table and figure of the paper, computed anew
	$(BIN)/offrecord reproduce --output out/paper --force

test: lint types check ## all that continuous integration runs

lint: $(STAMP)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .

types: $(STAMP)
	$(BIN)/mypy --cache-dir=/dev/null

check: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-more: $(STAMP) ## more random cases of what `make test` checks already
	$(BIN)/python -m pytest -n auto --dist worksteal -m soak

soak: $(STAMP) ## random cases for an hour, or MINUTES=10; writes docs/reliability.md
	$(BIN)/python -W ignore -m soak run --minutes $(MINUTES)
	$(BIN)/python -W ignore -m soak report

$(SPARK): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[spark]"
	touch $(SPARK)

test-spark: $(SPARK) ## the same release from a real local Spark; needs Java 17
	java -version
	$(BIN)/python -m pytest tests/tables/engines/test_spark.py

$(BROWSER): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group browser
	touch $(BROWSER)

test-browser: $(BROWSER) ## the explorer and the report in a real browser; needs Chromium
	chromium --version
	$(BIN)/python -m pytest tests/browser -m browser -s

bench: $(STAMP) ## speed, each figure beside its limit
	$(BIN)/python -W ignore benchmarks/bench.py

pictures: $(STAMP) ## the pictures of README and docs
	$(BIN)/python docs/pictures.py

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	touch $(DOCS)

docs: $(DOCS) ## the documentation as a site, out/docs; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(STAMP) ## sdist and wheel in dist/, looked into, and the demo from the wheel in a fresh environment
	$(BIN)/python distribution/check.py

format: $(STAMP)
	$(BIN)/ruff check --no-cache --fix .
	$(BIN)/ruff format --no-cache .

size: $(STAMP) ## lines, files, tokens a function, comments: by package
	$(BIN)/python tools/size.py

clean:
	rm -rf .venv out dist
