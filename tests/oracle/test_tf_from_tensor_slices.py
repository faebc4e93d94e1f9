"""Tests of from_tensor_slices against tf.data's."""

from collections import OrderedDict

import numpy as np
from cases import NUMBERS, Point
from compare import int64, programs, refused, same

ROWS = {
    "list": [True, False],
    "list of lists": [[True, False], [False, False]],
    "list of arrays": [int64([1, 2]), int64([3, 4])],
    "list of tuples": [(True, False), (True, True)],
    "tuple": (int64([1, 2]), np.zeros((2, 3), np.float32)),
    "tuple of one": (int64([1, 2]),),
    "tuple of lists": ([True, False], [b"a", b"b"]),
    "named tuple": Point(int64([1, 2]), np.array([b"a", b"b"], object)),
    "dict out of order": {"b": int64([1, 2]), "a": ["x", "y"], "c": np.eye(2)},
    "ordered dict": OrderedDict([("b", int64([1, 2])), ("a", ["x", "y"])]),
    "nested": {"z": (int64([1, 2]), {"y": [b"y", b"Y"]}), "a": Point(int64([1, 2]), np.eye(2))},
    "None": (int64([1, 2]), None),
    "None in a dict": {"b": None, "a": int64([1])},
    "text": ["ab", "käse ✓", ""],
    "bytes with trailing NULs": np.array([b"a\x00", b"\x00", b""], object),
    "rows of bytes": np.array([[b"a\x00", b"b"], [b"", b"c"]], object),
    **programs(
        a_range="((np.arange(3) if lib.name == 'tf.data' else np.arange(3).tolist()), int64([1, 2, 3]))",
        ragged_twice="ragged([[[1], [2, 3]], [], [[]]])",
        sparse="sparse([[0, 1], [2, 0]], int64([5, 6]), [3, 2])",
        sparse_vector="sparse([[0], [2]], int64([5, 6]), [3])",
        sparse_and_empty="sparse([], int64([]), [3, 2])",
        sparse_beside_dense="{'s': sparse([[1, 0]], int64([5]), [2, 2]), 'a': int64([1, 2])}",
    ),
}
test_rows = same("from_tensor_slices(rows)", rows=ROWS)
# They are dense in both libraries; the spec matters only for batching, which makes them ragged again.
test_rows_of_a_ragged_matrix = same(
    ["from_tensor_slices(ragged(*case))", "from_tensor_slices((ragged(*case), np.zeros(len(case[0]))))"],
    case=[([[1, 2], [], [3]], np.int64), ([["a"], ["b", "c"]], object), ([[]], np.float32)],
    spec="any",
)
SHAPES = [(0,), (1,), (3,), (2, 2), (2, 0), (0, 3), (1, 2, 3)]
test_dtypes = same("from_tensor_slices(np.ones(shape, dtype))", shape=SHAPES, dtype=NUMBERS)
WITHOUT_ROWS = [np.int64(3), b"text", (np.arange(2), np.int64(1)), ((), None), (), {}, None, [[1, 2], [3]]]
UNEQUAL = [(np.arange(2), np.arange(3)), {"a": np.zeros((2, 3)), "b": np.zeros((3, 2))}]
OTHERS = programs(
    sparse="sparse([[1]], int64([1]), [3])",
    after_ragged="(ragged([[1], []]), int64([1]))",
    after_sparse="(sparse([[1, 0]], int64([1]), [3, 1]), int64([1]))",
)
test_what_has_no_rows_or_not_as_many = refused(
    {ValueError: [*WITHOUT_ROWS, *UNEQUAL, *OTHERS.values()]}, "from_tensor_slices(case)"
)
