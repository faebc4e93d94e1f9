"""Tests of from_list against tf.data.experimental.from_list."""

import numpy as np
from compare import refused, same

I32 = np.int32


def listed(lib, elements):
    return (lib.Dataset if lib.name == "dataset" else lib.tf.data.experimental).from_list(elements)


ELEMENTS = {
    "scalars": [I32(1), I32(2)],
    "tuples": [(I32(1), "a"), (I32(2), "b")],
    "arrays": [np.array([1, 2]), np.array([3, 4])],
    "lengths": [np.array([1]), np.array([2, 3])],
    "ranks": [np.array([[1]]), np.array([2])],
    "dicts": [{"a": I32(1), "b": np.zeros(2)}, {"b": np.ones(2), "a": I32(2)}],
    "nested": [{"a": (I32(1), {"b": "x"})}, {"a": (I32(2), {"b": "yz"})}],
    "lists are data": [["a", "b"], ["c"]],
}
test_elements = same("listed(elements).repeat(2)", elements=ELEMENTS)
test_positions = same("listed([np.arange(n % 4) for n in np.arange(9)]).skip(skipped).shard(2, 1)", skipped=[0, 3, 9])
NO_LISTS = [[], (I32(1), I32(2)), 5, {"a": I32(1)}, "ab"]
UNEQUAL = [[{"a": I32(1)}, {"b": I32(1)}], [(I32(1), I32(2)), np.array([1, 2])], [(I32(1),), (I32(1), I32(2))]]
test_refused = refused({ValueError: [*NO_LISTS, *UNEQUAL, [I32(1), np.int64(2)], [I32(1), "a"]]}, "listed(case)")
