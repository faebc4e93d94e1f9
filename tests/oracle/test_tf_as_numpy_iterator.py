"""Tests of as_numpy_iterator against tf.data's: values are compared without conversion."""

import collections.abc

import numpy as np
import pytest
from cases import ELEMENTS, NUMBERS, SOURCES
from compare import assert_outcomes_equal, oracle, outcomes

from support.libraries import Ours

DENSE = [element for element in ELEMENTS if "ragged" not in element and "sparse" not in element]


def assert_same_values(build, limit=100):
    found = outcomes(build(Ours()).as_numpy_iterator(), lambda value: value, limit)
    expected = outcomes(build(oracle()).as_numpy_iterator(), lambda value: value, limit)
    assert_outcomes_equal(found, expected)


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source):
    assert_same_values(SOURCES[source], limit=12)
    assert_same_values(lambda lib: SOURCES[source](lib).map(lambda x: {"b": x, "a": (x, x > 1)}), limit=12)


@pytest.mark.parametrize("element", DENSE)
def test_elements(element):
    assert_same_values(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(2))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype):
    assert_same_values(lambda lib: lib.Dataset.from_tensor_slices(np.ones((2,), dtype)))
    assert_same_values(lambda lib: lib.Dataset.from_tensor_slices(np.ones((2, 3), dtype)))


def test_text():
    assert_same_values(lambda lib: lib.Dataset.from_tensor_slices(np.array([b"a\x00", "ü".encode(), b""], object)))
    assert_same_values(lambda lib: lib.Dataset.from_tensors([b"a\x00", b"bc"]))


def test_it_is_an_iterator_that_stays_at_its_end():
    for lib in (Ours(), oracle()):
        iterator = lib.Dataset.range(2).as_numpy_iterator()
        assert isinstance(iterator, collections.abc.Iterator)
        assert iter(iterator) is iterator
        assert list(iterator) == [0, 1]
        assert list(iterator) == []
        assert next(iterator, None) is None


def test_each_is_one_pass():
    for lib in (Ours(), oracle()):
        dataset = lib.Dataset.range(3)
        first, second = dataset.as_numpy_iterator(), dataset.as_numpy_iterator()
        assert [next(first), next(first), next(second), next(first)] == [0, 1, 0, 2]
