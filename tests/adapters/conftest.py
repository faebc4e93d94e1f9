"""Fixtures of the tests with real frameworks."""

import threading

import pytest

from support.libraries import tensorflow


@pytest.fixture(scope="session")
def tf():
    """TensorFlow. Test modules must not import it at the top: pytest reads module attributes, which loads Keras."""
    return tensorflow()


@pytest.fixture
def pipeline_threads():
    """Return a function that returns the library's threads started since the test began, not those of frameworks."""
    before = set(threading.enumerate())
    return lambda: [t for t in threading.enumerate() if t.name.startswith("dataset-") and t not in before]
