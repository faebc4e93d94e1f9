"""All tests. That this file is here puts the folder on the import path: libraries, strategies and chains are in it.

``SWITCH_INTERVAL=1e-6 pytest ...`` runs them with threads that switch a thousand times as often as usual.
"""

import contextlib
import gc
import os
import sys
import zlib

import pytest
from hypothesis import settings

settings.register_profile("dataset", deadline=None)  # no test says anything about how long an example takes
settings.load_profile("dataset")

os.environ.setdefault("KERAS_BACKEND", "torch")  # read when Keras is imported; other backends take other processes
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when datasets is imported; no test reaches the network

with contextlib.suppress(ImportError):
    import triton  # noqa: F401  # LLVM is in it and in TensorFlow, which imports Keras, which imports torch, which
    # imports it: where it comes second, the process aborts.

from dataset import set_random_seed  # noqa: E402  # behind what has to be set before anything is imported

if "SWITCH_INTERVAL" in os.environ:
    sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL"]))


@pytest.fixture(autouse=True, scope="module")
def _cheap_garbage_collection():
    """Keep what is loaded by now out of collections: check_operator makes thousands, which would walk all of it."""
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
    """Run half of the tests that use it with threads that switch as often as possible; the name of a test decides."""
    before = sys.getswitchinterval()
    if zlib.crc32(request.node.nodeid.encode()) % 2:
        sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
