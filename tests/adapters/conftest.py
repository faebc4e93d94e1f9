"""Fixtures of the tests beside real frameworks."""

import threading

import pytest

from support.libraries import tensorflow


@pytest.fixture(scope="session")
def tf():
    """TensorFlow. No test module may hold it: pytest asks what a module holds for attributes, which loads Keras."""
    return tensorflow()


@pytest.fixture
def pipeline_threads():
    """Call it for the library's threads that were started since the test began. Frameworks have some of their own."""
    before = set(threading.enumerate())
    return lambda: [t for t in threading.enumerate() if t.name.startswith("dataset-") and t not in before]
