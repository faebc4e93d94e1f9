"""Tests of unique against tf.data's, for the elements that it supports: one component of int32, int64 or string."""

import numpy as np
import pytest
from compare import assert_same

from dataset import TensorSpec
from support.libraries import fail_at

VALUES = {
    "int64": np.array([3, 1, 3, 2, 1, 3]),
    "int32": np.array([3, 1, 3, 2, 1, 3], np.int32),
    "extremes": np.array([-(2**63), 2**63 - 1, -1, 0, -(2**63)]),
    "text": np.array(["a", "b", "a", "a\0", "", ""], object),
    "vectors": np.array([[1, 2], [1, 3], [1, 2], [2, 1]]),
    "matrices": np.arange(12).reshape(3, 2, 2) % 4,
    "vectors of text": np.array([["a", "bc"], ["ab", "c"], ["a", "bc"]], object),
    "nothing in them": np.zeros((3, 0), np.int64),
    "none": np.zeros(0, np.int64),
    "one": np.array([5]),
    "all equal": np.array([5, 5, 5, 5]),
    "a dict": {"a": np.array([1, 2, 1])},
    "a one-tuple": (np.array([1, 2, 1]),),
}


@pytest.mark.parametrize("values", VALUES)
def test_slices(values):
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(VALUES[values]).unique())
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(VALUES[values]).unique().repeat(2).batch(3))
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(VALUES[values]).repeat(2).unique())


def test_shapes_tell_elements_apart():
    table = [[1, 2], [[1, 2]], [[1], [2]], [1, 2], [], [[]], []]

    def build(lib):
        arrays = [np.array(value, np.int64) for value in table]
        return lib.Dataset.from_generator(lambda: arrays, output_signature=lib.TensorSpec(None, np.int64)).unique()

    assert_same(build)


def test_endless_data():
    assert_same(lambda lib: lib.Dataset.range(3).repeat().unique().take(3))


@pytest.mark.parametrize("bad", [(0,), (2, 5), (1, 2, 3)])
def test_failures(bad):
    def build(lib):
        return lib.Dataset.range(6).map(lib.call(fail_at(*bad), TensorSpec((), np.int64))).map(lambda x: x % 2).unique()

    assert_same(build)
    assert_same(lambda lib: build(lib).batch(2))
