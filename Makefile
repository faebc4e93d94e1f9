# The targets of the project. Each sets up what it needs in .venv; only the first run needs the network.
#
#   make demo    train a model from TFRecord files, on data that ships with the repository
#   make test    run all tests, the examples in the docstrings and the notebooks; then the tests that need their own
#                process: the comparisons with the real tf.data, and Keras on its other backends
#   make check   run the tests that need no framework: in six minutes, with a set-up of 360 MB; before each commit;
#                make check RESOLUTION=lowest-direct takes the oldest supported versions, and needs uv
#   make fuzz    try mutated inputs on every reader for a minute, and as long on the native kernels with sanitizers;
#                make fuzz SECONDS=600 SEED=7 sets time and seed
#   make lint    formatting, lint rules, types
#   make docs    build the site of docs/ in site/
#   make notebooks    run the notebooks and write them to docs/notebooks/
#   make faults  try every kind of fault in every kind of pipeline with many seeds, and write docs/reliability.md
#   make bench   compare with other libraries: docs/benchmarks.md (installs them in .venv-bench)
#   make bench-studies    measure individual features
#   make micro   measure the cost per element of each operator; CI shows it, and compare.py compares two such runs
#   make clean   remove everything that the other targets create

PYTHON ?= python3
VENV := .venv
KERNELS := src/dataset/native/_kernels.so
BIN := $(VENV)/bin
BENCH_PIP := .venv-bench/bin/python -m pip --disable-pip-version-check install --quiet
PYTEST = $(BIN)/python -m pytest -n auto $(if $(SEED),--randomly-seed=$(SEED) --hypothesis-seed=$(SEED))
PIP := $(if $(RESOLUTION),uv pip install --python $(BIN)/python --resolution $(RESOLUTION),\
  $(BIN)/python -m pip --disable-pip-version-check install --no-compile) --quiet

.PHONY: demo check test faults fuzz lint fmt docs notebooks bench bench-studies micro clean

demo: $(VENV)/.ready $(KERNELS)
	$(BIN)/python notebooks/digits/train.py --data-dir build/digits

# Every part runs, even if an earlier one failed; the exit code tells.
test: $(VENV)/.ready-test $(KERNELS)
	status=0; \
	$(PYTEST) --ignore tests/oracle || status=1; \
	$(PYTEST) tests/oracle || status=1; \
	for backend in jax tensorflow; do \
	  KERAS_BACKEND=$$backend $(PYTEST) tests/adapters/test_to_keras.py || status=1; \
	done; \
	exit $$status

check: $(VENV)/.ready-check $(KERNELS)
	$(PYTEST) tests/test_architecture.py tests/test_lazy_imports.py \
	  $(addprefix tests/,autotune checkpoint commands io native ops optimize plan queues runtime) \
	  --ignore tests/io/image --ignore tests/io/files/remote --ignore tests/ops/distribute/test_distribute_ray.py

faults: $(VENV)/.ready-test $(KERNELS)
	rm -rf build/faults
	FAULTS=all $(BIN)/python -m pytest -n auto tests/faults
	PYTHONPATH=tests $(BIN)/python -m faults.page

fuzz: $(VENV)/.ready-test $(KERNELS)
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.fuzz.kernels --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

micro: $(VENV)/.ready-test $(KERNELS)
	mkdir -p build/benchmarks
	$(BIN)/python -m pytest benchmarks/micro --rounds 3 --benchmark-json build/benchmarks/micro.json

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

notebooks: $(VENV)/.ready-test $(KERNELS)
	$(BIN)/python notebooks/render.py

lint: $(VENV)/.ready-lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/typing/write_examples.py
	$(BIN)/mypy
	$(BIN)/mypy build/typing
	$(BIN)/pyright

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
	$(PIP) --editable '.[test,oracle]'
	@touch $@

$(VENV)/.ready-check: $(VENV)/.ready
	$(PIP) --editable '.[check]'
	@touch $@

$(VENV)/.ready-docs: $(VENV)/.ready
	$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/.ready-lint: $(VENV)/.ready
	$(PIP) --editable '.[test,lint]'
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
	rm -rf $(KERNELS) $(VENV) .venv-bench build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
