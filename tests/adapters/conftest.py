"""Fixtures of the tests beside real frameworks."""

import pytest

from libraries import tensorflow


@pytest.fixture(scope="session")
def tf():
    """TensorFlow. No test module may hold it: pytest asks what a module holds for attributes, which loads Keras."""
    return tensorflow()
