# The targets of the project. Each sets up what it needs in .venv; only the first run needs the network.
#
#   make demo    train a model from TFRecord files, on data that ships with the repository
#   make test    run the tests and the examples in the docstrings, with a set-up of 2 GB; the same each time:
#                tests/seed has the seed of all random draws, and make test SEED=7 draws others
#   make check   run the tests that need no framework, with a set-up of 360 MB; before each commit;
#                make check RESOLUTION=lowest-direct takes the oldest supported versions, and needs uv
#   make slice   run the tests that depend most on the version of Python; CI does so on each one that it finds
#   make durations    run the tests, and print the time by folder and the most expensive tests
#   make blame   run the tests that failed three times on this commit and on its parent: is the failure new, old or flaky?
#   make explore    search for new failures with a fresh seed, for ten minutes; make explore SECONDS=3600 takes an hour
#   make oracle  record what the real tf.data does, after a change of tests/oracle
#   make fuzz    try mutated inputs on every reader for a minute, and as long on the native kernels with sanitizers;
#                make fuzz SECONDS=600 SEED=7 sets time and seed
#   make lint    formatting, lint rules, types
#   make docs    build the site of docs/ in site/
#   make notebooks    run the notebooks and write them to docs/notebooks/
#   make faults  try every kind of fault in every kind of pipeline with many seeds, and write docs/reliability.md
#   make bench   compare with other libraries: docs/benchmarks.md (installs them in .venv-bench)
#   make bench-studies    measure individual features
#   make micro   measure the cost per element of each operator; compare.py compares two such runs
#   make clean   remove everything that the other targets create

PYTHON ?= python3
VENV := .venv
KERNELS := src/dataset/native/_kernels.so
BIN := $(VENV)/bin
EXPLORE := .venv-explore
BENCH_PIP := .venv-bench/bin/python -m pip --disable-pip-version-check install --quiet
PYTEST = PYTHONHASHSEED=0 $(BIN)/python -m pytest -n auto
PIP := $(if $(RESOLUTION),uv pip install --python $(BIN)/python --resolution $(RESOLUTION),\
  $(BIN)/python -m pip --disable-pip-version-check install --no-compile) --quiet
SLICE := $(addprefix tests/,native optimize/vectorization runtime/chunks runtime/functions runtime/resources) \
  tests/test_interrupts.py $(addprefix --deselect tests/test_interrupts.py::,test_loses_nothing test_worker_processes_lose_nothing)

.PHONY: demo test check slice durations blame explore oracle faults fuzz lint fmt docs notebooks bench bench-studies micro clean

demo: $(VENV)/.ready $(KERNELS)
	$(BIN)/python notebooks/digits/train.py --data-dir build/digits

test: $(VENV)/.ready-test $(KERNELS)
	$(PYTEST)

check: $(VENV)/.ready-check $(KERNELS)
	$(PYTEST) tests/test_architecture.py tests/test_lazy_imports.py \
	  $(addprefix tests/,autotune checkpoint commands io native ops optimize plan queues runtime) \
	  --ignore tests/io/image --ignore tests/io/files/remote --ignore tests/ops/distribute/test_distribute_ray.py

slice: $(VENV)/.ready-check $(KERNELS)
	$(PYTEST) $(SLICE)

durations: $(VENV)/.ready-test $(KERNELS)
	rm -rf build/durations
	DURATIONS=build/durations $(PYTEST); $(BIN)/python tests/support/durations.py build/durations

blame: $(VENV)/.ready-test $(KERNELS)
	$(BIN)/python tests/support/blame.py

explore: $(EXPLORE)/.ready $(KERNELS)
	$(EXPLORE)/bin/python -m tests.explore --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

oracle: $(EXPLORE)/.ready $(KERNELS)
	ORACLE=record PYTHONHASHSEED=0 $(EXPLORE)/bin/python -m pytest tests/oracle

faults: $(VENV)/.ready-test $(KERNELS)
	FAULTS=all $(BIN)/python -m pytest -n auto -m "explore or not explore" tests/faults
	PYTHONPATH=tests $(BIN)/python -m faults.page

fuzz: $(VENV)/.ready-test $(KERNELS)
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.fuzz.kernels --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

micro: $(VENV)/.ready-test $(KERNELS)
	mkdir -p build/benchmarks
	$(BIN)/python -m pytest benchmarks/micro --rounds 3 --benchmark-json build/benchmarks/micro.json

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

notebooks: $(EXPLORE)/.ready $(KERNELS)
	$(EXPLORE)/bin/python notebooks/render.py

lint: $(VENV)/.ready-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/typing/write_examples.py
	$(BIN)/mypy
	$(BIN)/mypy build/typing

fmt: $(VENV)/.ready-lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv-bench/.ready $(KERNELS)
	.venv-bench/bin/python benchmarks/run.py
	.venv-bench/bin/python benchmarks/startup.py
	.venv-bench/bin/python benchmarks/scale
	.venv-bench/bin/python benchmarks/run.py --print

bench-studies: .venv-bench/.ready $(KERNELS)
	for study in rules loops parallel scaling processes autotune resume pack; do .venv-bench/bin/python benchmarks/studies/$$study.py || exit; done
	for kind in tfrecord index text csv parquet remote commands; do .venv-bench/bin/python benchmarks/studies/files_$$kind.py || exit; done
	for kind in torch jax tables; do .venv-bench/bin/python benchmarks/studies/feed_$$kind.py || exit; done
	for backend in torch jax tensorflow; do KERAS_BACKEND=$$backend .venv-bench/bin/python benchmarks/studies/feed_keras.py || exit; done

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer is required; choose one with: make PYTHON=python3.12 ...'; exit 1; }
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip --disable-pip-version-check install --quiet --upgrade pip  # old ones take minutes to resolve
	@touch $@

# The package is installed in editable mode, so only a change of its requirements reruns this target.
$(VENV)/.ready: pyproject.toml | $(VENV)/.python
	$(PIP) --editable .
	@touch $@

# The installation compiles the kernels; this target does so after a change. Without a C compiler it only says so.
$(KERNELS): hatch_build.py $(wildcard src/dataset/native/*.[ch]) | $(VENV)/.ready
	$(BIN)/python hatch_build.py

$(VENV)/.ready-test: $(VENV)/.ready
	$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.ready-check: $(VENV)/.ready
	$(PIP) --editable '.[check]'
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/.ready-lint: $(VENV)/.ready
	$(PIP) --editable '.[lint]'
	@touch $@

$(EXPLORE)/.ready: pyproject.toml
	$(PYTHON) -m venv $(EXPLORE)
	$(EXPLORE)/bin/python -m pip --disable-pip-version-check install --no-compile --quiet --editable '.[explore]'
	@touch $@

# Some peers have no wheels for some machines. In that case install one by one and leave out those that fail.
.venv-bench/.ready: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	$(BENCH_PIP) --editable . psutil matplotlib
	$(BENCH_PIP) -r benchmarks/requirements.txt || \
	  sed -e 's/ *#.*//' -e '/^$$/d' benchmarks/requirements.txt | while read -r peer; do \
	    $(BENCH_PIP) "$$peer" < /dev/null || echo "Absent: $$peer"; \
	  done
	@touch $@

clean:
	rm -rf $(KERNELS) $(VENV) $(EXPLORE) .venv-bench build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
