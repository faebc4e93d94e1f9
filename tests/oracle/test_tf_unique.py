"""Tests of unique against tf.data's, for the elements that it supports: one component of int32, int64 or string."""

import numpy as np
from compare import same

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
CALLS = ["unique()", "unique().repeat(2).batch(3)", "repeat(2).unique()"]
test_slices = same([f"from_tensor_slices(values).{call}" for call in CALLS], values=VALUES)
SHAPES = [[1, 2], [[1, 2]], [[1], [2]], [1, 2], [], [[]], []]
test_shapes_tell_elements_apart = same("arrays(SHAPES, None).unique()")
test_endless_data = same("range(3).repeat().unique().take(3)")
test_failures = same(
    [f"failing(*bad, size=6).map(lambda x: x % 2).{call}" for call in ("unique()", "unique().batch(2)")],
    bad=[(0,), (2, 5), (1, 2, 3)],
)
