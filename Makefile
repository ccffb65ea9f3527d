# make demo | make test | make check | make docs | make slow | make benchmarks
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: demo test check docs slow benchmarks clean

demo: .venv/installed
	$(BIN)/agra demo

test: .venv/installed-test
	$(BIN)/python -m pytest

check: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_sizes.py

slow: .venv/installed-test
	$(BIN)/python -m pytest -m slow -n 0 -rP tests

docs: .venv/installed-docs
	$(BIN)/mkdocs build --strict

benchmarks: .venv/installed-benchmarks
	$(BIN)/python benchmarks/step_cost.py
	$(BIN)/python benchmarks/draw_cost.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/learner_cost.py
	$(BIN)/python benchmarks/label_errors.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/label_model_cost.py
	$(BIN)/python benchmarks/baselines.py

clean:
	rm -rf .venv build site

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

.venv/installed-%: .venv/installed
	$(PIP) --editable '.[$*]'
	touch $@
