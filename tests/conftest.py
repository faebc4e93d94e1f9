"""Configuration of all tests. Because of this file, pytest puts the folder on the import path.

``SWITCH_INTERVAL=1e-6 pytest ...`` runs the tests with thread switches a thousand times as often as by default.
"""

import contextlib
import gc
import os
import signal
import sys
import zlib

import pytest
from hypothesis import settings

settings.register_profile("dataset", deadline=None)  # the tests do not limit the duration of examples
settings.load_profile("dataset")

os.environ.setdefault("KERAS_BACKEND", "torch")  # read when Keras is imported; other backends need other processes
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when datasets is imported; no test reaches the network
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise a thread of Ray Data queries a server all the time

with contextlib.suppress(ImportError):
    import triton  # noqa: F401  # Triton and TensorFlow both contain LLVM. TensorFlow imports Keras, which imports torch,
    # which imports Triton: if Triton is imported after TensorFlow, the process aborts.

from dataset import set_random_seed  # noqa: E402  # after the settings that must precede all imports
from dataset.native import library  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts programs in the background like this
    signal.signal(signal.SIGINT, signal.default_int_handler)  # otherwise the programs that tests start inherit it

if "SWITCH_INTERVAL" in os.environ:
    sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL"]))


@pytest.fixture(autouse=True, scope="module")
def _cheap_garbage_collection():
    """Exclude loaded objects from garbage collection: check_operator runs thousands of collections."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _no_seed_is_left_behind():
    yield
    set_random_seed(None)


@pytest.fixture
def switch_interval(request):
    """Run half of the tests that use it with thread switches as often as possible, selected by the test's name."""
    before = sys.getswitchinterval()
    if zlib.crc32(request.node.nodeid.encode()) % 2:
        sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=["twins", "kernels"] if library.kernels() else ["twins"], scope="module")
def native(request):
    """Run the tests of a module with the native kernels, if there are any on this machine, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATASET_NATIVE", str(int(request.param == "kernels")))
        library.load.cache_clear()
        yield request.param
    library.load.cache_clear()
