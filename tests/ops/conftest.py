"""What the tests of ops share."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _cheap_garbage_collection():
    """Keep what is loaded by now out of collections: check_operator makes thousands, which would walk all of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
