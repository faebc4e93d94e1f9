"""Tests of from_list against tf.data.experimental.from_list."""

import numpy as np
from compare import refused, same

I32 = np.int32


def from_list(lib, elements):
    found = lib.Dataset.from_list if lib.name == "dataset" else lib.tf.data.experimental.from_list
    return found(elements)


ELEMENTS = {
    "scalars": [I32(1), I32(2)],
    "tuples": [(I32(1), "a"), (I32(2), "b")],
    "arrays": [np.array([1, 2]), np.array([3, 4])],
    "lengths": [np.array([1]), np.array([2, 3])],
    "ranks": [np.array([[1]]), np.array([2])],
    "dicts": [{"a": I32(1), "b": np.zeros(2)}, {"b": np.ones(2), "a": I32(2)}],
    "nested": [{"a": (I32(1), {"b": "x"})}, {"a": (I32(2), {"b": "yz"})}],
    "text": ["a", "bc"],
    "lists are data": [["a", "b"], ["c"]],
}
test_elements = same(lambda lib, elements: from_list(lib, elements).repeat(2), ELEMENTS)

test_refused = refused(
    {
        ValueError: {
            "empty": [],
            "tuple": (I32(1), I32(2)),
            "number": 5,
            "dict": {"a": I32(1)},
            "text": "ab",
            "other keys": [{"a": I32(1)}, {"b": I32(1)}],
            "tuple and array": [(I32(1), I32(2)), np.array([1, 2])],
            "tuples of two lengths": [(I32(1),), (I32(1), I32(2))],
            "dtypes": [I32(1), np.int64(2)],
            "number and text": [I32(1), "a"],
        }
    },
    from_list,
)


test_positions = same(
    lambda lib, skipped: from_list(lib, [np.arange(n % 4) for n in range(9)]).skip(skipped).shard(2, 1), [0, 3, 9]
)
