"""Tests of from_tensor_slices against tf.data's."""

from collections import OrderedDict

import numpy as np
from cases import NUMBERS, Point, int64
from compare import refused, same

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


test_rows = same(lambda lib, rows: lib.from_tensor_slices(rows(lib)), ROWS)
# They are dense in both libraries; the spec matters only for batching, which makes them ragged again.
test_rows_of_a_ragged_matrix = same(
    {
        "alone": lambda lib, case: lib.from_tensor_slices(lib.ragged(*case)),
        "beside others": lambda lib, case: lib.from_tensor_slices((lib.ragged(*case), np.zeros(len(case[0])))),
    },
    [([[1, 2], [], [3]], np.int64), ([["a"], ["b", "c"]], object), ([[]], np.float32)],
    spec="any",
)
SHAPES = [(0,), (1,), (3,), (2, 2), (2, 0), (0, 3), (1, 2, 3)]
test_dtypes = same(lambda lib, shape, dtype: lib.from_tensor_slices(np.ones(shape, dtype)), SHAPES, NUMBERS)
WITHOUT_ROWS = [np.int64(3), b"text", (np.arange(2), np.int64(1)), ((), None), (), {}, None, [[1, 2], [3]]]
UNEQUAL = [(np.arange(2), np.arange(3)), {"a": np.zeros((2, 3)), "b": np.zeros((3, 2))}]
REFUSED = [lambda lib, tensors=tensors: tensors for tensors in WITHOUT_ROWS + UNEQUAL]
REFUSED += [
    lambda lib: lib.sparse([[1]], int64([1]), [3]),
    lambda lib: (lib.ragged([[1], []]), int64([1])),
    lambda lib: (lib.sparse([[1, 0]], int64([1]), [3, 1]), int64([1])),
]
test_what_has_no_rows_or_not_as_many = refused(
    {ValueError: REFUSED}, lambda lib, tensors: lib.from_tensor_slices(tensors(lib))
)
