"""Sources, elements and dtypes for tests of many methods, written once for both libraries."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dataset import TensorSpec
from support.libraries import fail_at

INT64 = TensorSpec((), np.int64)

Point = namedtuple("Point", "y x")  # noqa: PYI024  # the older form, which users also have


class Pair(NamedTuple):
    """An element of a user's class."""

    x: object
    y: object


def check(lib: Any, *bad: int) -> Any:
    """Return a function of a number that returns it but fails for these."""
    return lib.call(fail_at(*bad), INT64)


def failing(lib: Any, *bad: int, size: int = 7) -> Any:
    """Return a dataset of the numbers below ``size`` that fails at these numbers."""
    return lib.Dataset.range(size).map(check(lib, *bad))


SOURCES: dict[str, Callable[[Any], Any]] = {
    "known": lambda lib: lib.Dataset.range(7),
    "empty": lambda lib: lib.Dataset.range(0),
    "one": lambda lib: lib.Dataset.range(1),
    "unknown": lambda lib: lib.Dataset.range(9).filter(lambda x: x % 2 == 0),
    "unknown and empty": lambda lib: lib.Dataset.range(9).filter(lambda x: x < 0),
    "endless": lambda lib: lib.Dataset.range(3).repeat(),
    "repeated and empty": lambda lib: lib.Dataset.range(0).repeat(),
    "fails first": lambda lib: failing(lib, 0),
    "fails inside": lambda lib: failing(lib, 2, 3),
    "fails last": lambda lib: failing(lib, 6),
}

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64", "complex64", "complex128"]


def int64(value: Any) -> Any:
    """Return a NumPy value that has the same meaning in both libraries."""
    return np.asarray(value, np.int64)[()]


ELEMENTS: dict[str, Callable[[Any], Any]] = {
    "scalar": lambda lib: int64(5),
    "vector": lambda lib: int64([1, 2, 3]),
    "no cells": lambda lib: np.zeros((0, 2), np.float32),
    "list": lambda lib: [True, False],
    "list of lists": lambda lib: [[True, False], [False, False]],
    "list in a tuple": lambda lib: (int64(0), [b"a", b"b"]),
    "list in a dict": lambda lib: {"a": [True, False]},
    "tuple": lambda lib: (int64(1), np.float32(2.5)),
    "tuple of one": lambda lib: (int64(1),),
    "nested tuples": lambda lib: (int64(1), (int64([2]), (np.float64(3),))),
    "empty tuple inside": lambda lib: (int64(1), ()),
    "named tuple": lambda lib: Point(int64(1), np.uint8(2)),
    "dict out of order": lambda lib: {"b": int64(1), "a": np.float32(2), "c": b"x"},
    "ordered dict": lambda lib: OrderedDict([("b", int64(1)), ("a", b"x")]),
    "int keys": lambda lib: {2: int64(1), 1: b"x"},
    "empty dict inside": lambda lib: (int64(1), {}),
    "nested": lambda lib: {"z": (int64(1), {"y": b"y", "x": Point(int64(3), int64([4]))}), "a": np.float16(5)},
    "None in a tuple": lambda lib: (int64(1), None),
    "None in a dict": lambda lib: {"b": None, "a": int64(1)},
    "None in a named tuple": lambda lib: Point(None, int64(1)),
    "text": lambda lib: "käse ✓",
    "bytes with trailing NULs": lambda lib: b"a\x00\x00",
    "bytes that are no text": lambda lib: b"\xff\xfe\x00",
    "no bytes": lambda lib: b"",
    "array of text": lambda lib: np.array(["ab", "ü"]),
    "array of bytes": lambda lib: np.array([b"a\x00b", b"", b"x\x00"], object),
    "list of bytes": lambda lib: [b"a\x00", b"b"],
    "bool": lambda lib: np.True_,
    "Python bool": lambda lib: True,
    "ragged": lambda lib: lib.ragged([[1, 2], [], [3]]),
    "ragged text": lambda lib: lib.ragged([["a"], ["b", "c"]], object),
    "ragged twice": lambda lib: lib.ragged([[[1], [2, 3]], [], [[]]]),
    "ragged in a tuple": lambda lib: (int64(1), lib.ragged([[], [1]])),
    "sparse": lambda lib: lib.sparse([[0, 1], [2, 0]], int64([5, 6]), [3, 2]),
    "sparse and empty": lambda lib: lib.sparse([], int64([]), [3, 2]),
    "sparse in a dict": lambda lib: {"s": lib.sparse([[1]], int64([5]), [3]), "a": int64(1)},
}
"""Values for from_tensors. Python numbers other than bools have different dtypes in the two libraries."""
