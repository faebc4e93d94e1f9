"""Sources, elements and dtypes for tests of many methods, written once for both libraries."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any, NamedTuple

import numpy as np
from compare import int64, programs

Point = namedtuple("Point", "y x")  # noqa: PYI024  # the older form, which users also have


class Pair(NamedTuple):
    """An element of a user's class."""

    x: object
    y: object


SOURCES = programs(
    known="range(7)",
    empty="range(0)",
    one="range(1)",
    unknown="range(9).filter(lambda x: x % 2 == 0)",
    unknown_and_empty="range(9).filter(lambda x: x < 0)",
    endless="range(3).repeat()",
    repeated_and_empty="range(0).repeat()",
    fails_first="failing(0)",
    fails_inside="failing(2, 3)",
    fails_last="failing(6)",
)
FINITE = {name: source for name, source in SOURCES.items() if name != "endless"}
NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]
DENSE: dict[str, Any] = {
    "scalar": int64(5),
    "vector": int64([1, 2, 3]),
    "no cells": np.zeros((0, 2), np.float32),
    "list": [True, False],
    "list of lists": [[True, False], [False, False]],
    "list in a tuple": (int64(0), [b"a", b"b"]),
    "list in a dict": {"a": [True, False]},
    "tuple": (int64(1), np.float32(2.5)),
    "tuple of one": (int64(1),),
    "nested tuples": (int64(1), (int64([2]), (np.float64(3),))),
    "empty tuple inside": (int64(1), ()),
    "named tuple": Point(int64(1), np.uint8(2)),
    "dict out of order": {"b": int64(1), "a": np.float32(2), "c": b"x"},
    "ordered dict": OrderedDict([("b", int64(1)), ("a", b"x")]),
    "int keys": {2: int64(1), 1: b"x"},
    "empty dict inside": (int64(1), {}),
    "nested": {"z": (int64(1), {"y": b"y", "x": Point(int64(3), int64([4]))}), "a": np.float16(5)},
    "None in a tuple": (int64(1), None),
    "None in a dict": {"b": None, "a": int64(1)},
    "None in a named tuple": Point(None, int64(1)),
    "text": "käse ✓",
    "bytes with trailing NULs": b"a\x00\x00",
    "bytes that are no text": b"\xff\xfe\x00",
    "no bytes": b"",
    "array of text": np.array(["ab", "ü"]),
    "array of bytes": np.array([b"a\x00b", b"", b"x\x00"], object),
    "list of bytes": [b"a\x00", b"b"],
    "bool": np.True_,
    "Python bool": True,
}
"""Values for from_tensors. Python numbers other than bools have different dtypes in the two libraries."""
ELEMENTS: dict[str, Any] = DENSE | programs(
    ragged="ragged([[1, 2], [], [3]])",
    ragged_text="ragged([['a'], ['b', 'c']], object)",
    ragged_twice="ragged([[[1], [2, 3]], [], [[]]])",
    ragged_in_a_tuple="(int64(1), ragged([[], [1]]))",
    sparse="sparse([[0, 1], [2, 0]], int64([5, 6]), [3, 2])",
    sparse_and_empty="sparse([], int64([]), [3, 2])",
    sparse_in_a_dict="{'s': sparse([[1]], int64([5]), [3]), 'a': int64(1)}",
)
