"""Configuration of all tests. Because of this file, pytest puts the folder on the import path.

The gate runs all tests but those that are marked ``explore``. It draws the same cases each time: those of tests/seed.
``SEED=7 pytest ...`` draws others, and ``SWITCH_INTERVAL=1e-6 pytest ...`` switches threads a thousand times as often.
"""

import contextlib
import datetime as dt
import gc
import os
import signal
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from support.seeds import IS_FRESH, SEED, rng

# The tests do not limit the duration of examples, on which the load of the machine depends.
settings.register_profile("dataset", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("gate", settings.get_profile("dataset"), derandomize=True, database=None)
settings.load_profile("dataset" if IS_FRESH else "gate")
if not IS_FRESH:  # Hypothesis also draws constants of the modules that are imported, so of tests that ran before
    providers._get_local_constants = providers.Constants

os.environ.setdefault("KERAS_BACKEND", "torch")  # read when Keras is imported; other backends need other processes
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when datasets is imported; no test reaches the network
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise a thread of Ray Data queries a server all the time

with contextlib.suppress(ImportError):
    import triton  # noqa: F401  # Triton and TensorFlow both contain LLVM. TensorFlow imports Keras, which imports torch,
    # which imports Triton: if Triton is imported after TensorFlow, the process aborts.

from chains.names import build  # noqa: E402
from dataset import set_random_seed  # noqa: E402  # after the settings that must precede all imports
from dataset.autotune.tuning_memory import forget  # noqa: E402
from dataset.native import library  # noqa: E402
from dataset.runtime.random import streams  # noqa: E402
from support import flaky  # noqa: E402
from support.browser import Browser  # noqa: E402
from support.durations import Recorder  # noqa: E402
from support.resume_files import write_files  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts programs in the background like this
    signal.signal(signal.SIGINT, signal.default_int_handler)  # otherwise the programs that tests start inherit it

if "SWITCH_INTERVAL" in os.environ:
    sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL"]))


EXAMPLES_WITH_TENSORFLOW = {f"dataset.api.adapters.AdapterMethods.{name}" for name in ("from_tf", "to_tf")}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if getattr(config.option, "randomly_seed", None) == "default":
        config.option.randomly_seed = SEED  # the order of the tests, and the global generators
    if "DURATIONS" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["DURATIONS"])))


def pytest_report_header():
    return [] if "EXPLORE" in os.environ else flaky.header(today())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.name in EXAMPLES_WITH_TENSORFLOW:
            item.add_marker("explore")
    if "EXPLORE" not in os.environ:  # the search and make blame run the flaky tests, too
        flaky.deselect(config, items, today())


def today():
    return dt.datetime.now(dt.UTC).date()


@pytest.fixture(autouse=True, scope="module")
def _cheap_garbage_collection():
    """Exclude the objects of earlier modules from garbage collection: check_operator runs thousands of collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeds_of_ops_without_one(request, monkeypatch):
    """Draw the seeds of ops without one from the test's own generator, and leave no global seed to other tests."""
    monkeypatch.setattr(streams, "secrets", SimpleNamespace(randbits=rng(request.node.nodeid).getrandbits))
    yield
    set_random_seed(None)


@pytest.fixture(autouse=True)
def _nothing_learned():
    """Let no pipeline begin with what those of other tests have learned about the speed of the same functions."""
    forget()


@pytest.fixture
def switch_interval(request):
    """Run half of the tests that use it with thread switches as often as possible, selected by the test's name."""
    before = sys.getswitchinterval()
    if zlib.crc32(request.node.nodeid.encode()) % 2:
        sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def no_collector():
    """The garbage collector is disabled: objects are freed only when their last reference is dropped."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(params=["twins", "kernels"] if library.kernels() else ["twins"], scope="module")
def native(request):
    """Run the tests of a module with the native kernels, if there are any on this machine, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATASET_NATIVE", str(int(request.param == "kernels")))
        library.load.cache_clear()
        yield request.param
    library.load.cache_clear()


@pytest.fixture(scope="module")
def browser():
    with contextlib.closing(Browser()) as browser:
        yield browser


@pytest.fixture(scope="module")
def case_files(tmp_path_factory):
    """The folder of the files that the cases of support/resume_cases.py read."""
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return folder


@pytest.fixture(scope="module")
def built(case_files, tmp_path_factory):
    """A function that builds the pipeline of a case, with an empty folder to write to."""
    return lambda chain: build(str(chain), case_files, tmp_path_factory.mktemp("scratch"))
