"""Tests of checking values against a signature: a column at once gives the same results as single values."""

import numpy as np
import pytest

from dataset import RaggedTensor, RaggedTensorSpec, SpecError, TensorSpec
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.testing import assert_elements_equal

SPECS = [
    TensorSpec(shape, dtype)
    for shape in ((), (None,), (2,), (None, 2), (None, None), None)
    for dtype in (np.int64, np.int8, np.uint64, np.float32, np.float64, np.complex64, np.bool_, bytes, object, ">i4")
]
COLUMNS = {
    "ints": [1, 2, 3],
    "small and large ints": [1, 200, -3],
    "ints of 64 bits": [2**63 - 1, -(2**63)],
    "ints beyond": [1, 2**63],
    "ints far beyond": [1, 2**70],
    "floats and complex": [1.5, float("nan"), 3j],
    "bools and ints": [True, False, 1],
    "text": ["a", "\xe4"],
    "bytes": [b"a", b"b\0"],
    "text and bytes": ["a", b"b"],
    "int64 scalars": [np.int64(1), np.int64(300)],
    "int8 scalars": [np.int8(1), np.int8(-3)],
    "uint64 scalars": [np.uint64(1), np.uint64(2**63)],
    "float64 scalars": [np.float64(1), np.float64(2)],
    "times": [np.datetime64(1, "s"), np.datetime64(2, "s")],
    "vectors": [np.array([1, 2]), np.array([3, 4])],
    "vectors of different lengths": [np.array([1, 2]), np.array([3]), np.zeros(0, np.int64)],
    "vectors of different dtypes": [np.array([1, 2]), np.array([3, 4], np.int8)],
    "small and large": [np.array([1, 2]), np.array([1, 1000])],
    "small and negative": [np.array([1, 2]), np.array([-1000, 1])],
    "small and none": [np.array([1, 2]), np.zeros(0, np.int64)],
    "vectors of the other byte order": [np.array([1, 2], ">i4"), np.array([1, 2], ">i4")],
    "different ranks": [np.array([1, 2]), np.ones((1, 2), np.int64)],
    "wide matrices": [np.ones((3, 3)), np.ones((2, 2))],
    "texts": [np.array([b"a", b"b"]), np.array([b"c", b"d"])],
    "lists": [[1, 2], [3, 4]],
    "lists of different lengths": [[1, 2], []],
    "lists of texts": [["a", "b"], [b"c", b"d"]],
    "lists that are no arrays": [[1, 2], [[1], [2, 3]]],
    "lists and tuples": [[1, 2], (3, 4)],
    "ranges": [range(2), range(2)],
    "ragged": [RaggedTensor.from_rows([[1], [2, 3]])] * 2,
}


def outcome(signature, rows):
    """Return the resulting components, or the type of the exception."""
    try:
        return SignatureRows("it yielded", signature).chunk(rows).rows()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_many_values_become_what_each_becomes_alone(column):
    for spec in (*SPECS, RaggedTensorSpec((None, None), np.int64)):
        alone = [outcome({"x": spec}, [{"x": value}]) for value in column]
        together = outcome({"x": spec}, [{"x": value} for value in column])
        failed = [one for one in alone if isinstance(one, type)]
        if failed:
            assert together in failed, spec
        else:
            assert_elements_equal(together, [row for rows in alone for row in rows])


def test_what_is_as_declared_is_not_copied():
    rows = [(np.arange(n), np.float32(n)) for n in range(3)]
    chunk = SignatureRows("it yielded", (TensorSpec((None,), np.int64), TensorSpec((), np.float32))).chunk(rows)
    assert all(given is made for given, made in zip(rows, chunk.rows(), strict=True))


def test_the_error_says_what_came_and_what_was_declared():
    rows = SignatureRows("it yielded", {"x": TensorSpec((2,), np.int64)})
    with pytest.raises(SpecError, match=r"it yielded .*shape=\(3,\).* for component 'x', output_signature declares"):
        rows.chunk([{"x": np.arange(2)}, {"x": np.arange(3)}])
