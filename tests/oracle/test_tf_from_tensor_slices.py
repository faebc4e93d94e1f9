"""Tests of from_tensor_slices against tf.data's."""

from collections import OrderedDict

import numpy as np
import pytest
from cases import NUMBERS, Point, int64
from compare import assert_both_refuse, assert_same

ROWS = {
    "vector": lambda lib: int64([1, 2, 3]),
    "matrix": lambda lib: np.arange(6).reshape(3, 2),
    "no rows": lambda lib: np.zeros((0, 2), np.float32),
    "rows without cells": lambda lib: np.zeros((3, 0), np.float32),
    "one row": lambda lib: int64([7]),
    "list": lambda lib: [True, False],
    "list of lists": lambda lib: [[True, False], [False, False]],
    "list of arrays": lambda lib: [int64([1, 2]), int64([3, 4])],
    "empty list": lambda lib: np.array([], np.float32),
    "tuple": lambda lib: (int64([1, 2]), np.zeros((2, 3), np.float32)),
    "tuple of one": lambda lib: (int64([1, 2]),),
    "tuple of lists": lambda lib: ([True, False], [b"a", b"b"]),
    "named tuple": lambda lib: Point(int64([1, 2]), np.array([b"a", b"b"], object)),
    "dict out of order": lambda lib: {"b": int64([1, 2]), "a": ["x", "y"], "c": np.eye(2)},
    "ordered dict": lambda lib: OrderedDict([("b", int64([1, 2])), ("a", ["x", "y"])]),
    "nested": lambda lib: {"z": (int64([1, 2]), {"y": [b"y", b"Y"]}), "a": Point(int64([1, 2]), np.eye(2))},
    "None": lambda lib: (int64([1, 2]), None),
    "None in a dict": lambda lib: {"b": None, "a": int64([1])},
    "text": lambda lib: ["ab", "käse ✓", ""],
    "bytes with trailing NULs": lambda lib: np.array([b"a\x00", b"\x00", b""], object),
    "rows of bytes": lambda lib: np.array([[b"a\x00", b"b"], [b"", b"c"]], object),
    "range": lambda lib: (range(3), int64([1, 2, 3])) if lib.name != "tf.data" else (int64(range(3)), int64([1, 2, 3])),
    "list of tuples": lambda lib: [(True, False), (True, True)],
    "bools": lambda lib: [True, False],
    "ragged twice": lambda lib: lib.ragged([[[1], [2, 3]], [], [[]]]),
    "sparse": lambda lib: lib.sparse([[0, 1], [2, 0]], int64([5, 6]), [3, 2]),
    "sparse vector": lambda lib: lib.sparse([[0], [2]], int64([5, 6]), [3]),
    "sparse and empty": lambda lib: lib.sparse([], int64([]), [3, 2]),
    "sparse beside dense": lambda lib: {"s": lib.sparse([[1, 0]], int64([5]), [2, 2]), "a": int64([1, 2])},
}


@pytest.mark.parametrize("rows", ROWS)
def test_rows(rows):
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(ROWS[rows](lib)))


@pytest.mark.parametrize(
    ("rows", "dtype"), [([[1, 2], [], [3]], np.int64), ([["a"], ["b", "c"]], object), ([[]], np.float32)]
)
def test_rows_of_a_ragged_matrix(rows, dtype):
    """They are dense in both libraries; the spec matters only for batching, which makes them ragged again."""
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(lib.ragged(rows, dtype)), spec="any")
    beside = lambda lib: lib.Dataset.from_tensor_slices((lib.ragged(rows, dtype), np.zeros(len(rows))))
    assert_same(beside, spec="any")


@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (2, 2), (2, 0), (0, 3), (1, 2, 3)])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_dtypes(dtype, shape):
    assert_same(lambda lib: lib.Dataset.from_tensor_slices(np.ones(shape, dtype)))


@pytest.mark.parametrize(
    "tensors",
    [
        np.int64(3),
        b"text",
        (np.arange(2), np.int64(1)),
        (np.arange(2), np.arange(3)),
        {"a": np.zeros((2, 3)), "b": np.zeros((3, 2))},
        ((), None),
        (),
        {},
        None,
        [[1, 2], [3]],
    ],
    ids=repr,
)
def test_what_has_no_rows_or_not_as_many(tensors):
    assert_both_refuse(lambda lib: lib.Dataset.from_tensor_slices(tensors), ValueError)


def test_a_sparse_vector():
    assert_both_refuse(lambda lib: lib.Dataset.from_tensor_slices(lib.sparse([[1]], int64([1]), [3])), ValueError)


def test_ragged_and_sparse_with_another_number_of_rows():
    assert_both_refuse(lambda lib: lib.Dataset.from_tensor_slices((lib.ragged([[1], []]), int64([1]))), ValueError)
    assert_both_refuse(
        lambda lib: lib.Dataset.from_tensor_slices((lib.sparse([[1, 0]], int64([1]), [3, 1]), int64([1]))), ValueError
    )
