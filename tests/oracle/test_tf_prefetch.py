"""Tests of prefetch against tf.data's."""

import numpy as np
import pytest
from cases import ELEMENTS, SOURCES, failing
from compare import assert_both_refuse, assert_same


@pytest.mark.parametrize("size", [0, 1, 2, 100, -1])
@pytest.mark.parametrize("source", SOURCES)
def test_sizes(source, size):
    assert_same(lambda lib: SOURCES[source](lib).prefetch(size), limit=12)


def test_autotune():
    assert_same(lambda lib: lib.Dataset.range(5).prefetch(lib.AUTOTUNE))
    assert_same(lambda lib: lib.Dataset.range(5).prefetch(None))
    assert_same(lambda lib: lib.Dataset.range(5).prefetch(buffer_size=lib.AUTOTUNE, name="label"))


@pytest.mark.parametrize("bad", [(0,), (3,), (6,), (0, 1, 5, 6)])
@pytest.mark.parametrize("size", [1, 3])
def test_failures(size, bad):
    assert_same(lambda lib: failing(lib, *bad).prefetch(size))
    assert_same(lambda lib: failing(lib, *bad).prefetch(size).prefetch(1).take(5))


@pytest.mark.parametrize("element", ELEMENTS)
def test_structures(element):
    assert_same(lambda lib: lib.Dataset.from_tensors(ELEMENTS[element](lib)).repeat(3).prefetch(2))


@pytest.mark.parametrize("size", [-2, -5])
def test_a_size_that_is_too_small(size):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).prefetch(size), ValueError)


@pytest.mark.parametrize("size", [2.0, "2", [2], np.array([2])], ids=repr)
def test_what_is_no_size(size):
    assert_both_refuse(lambda lib: lib.Dataset.range(5).prefetch(size), TypeError)
