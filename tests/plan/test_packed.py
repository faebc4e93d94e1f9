"""RaggedColumn: values of different lengths, end to end, that are a list to whoever looks."""

import numpy as np
import pytest

from dataset.plan.packed import RaggedColumn, is_packed
from dataset.plan.values import SparseTensor
from dataset.runtime.chunks.batching import ColumnMismatchError, pad_column, stack_column
from dataset.runtime.chunks.chunk import concatenate_columns
from dataset.runtime.chunks.ragged_stack import stack_as_ragged
from dataset.testing import assert_elements_equal
from support.combinations import diagonals

LENGTHS = [[3, 0, 2, 1], [2, 2, 2], [0, 0], [4], [0, 5]]
VALUES = {
    "int64": np.arange(20),
    "float32 rows": np.arange(40, dtype=np.float32).reshape(20, 2),
    "bytes": np.array([b"%d" % i for i in range(20)], object),
}


each_column = pytest.mark.parametrize(
    ("lengths", "values"), diagonals(2, LENGTHS, VALUES.values()), ids=lambda part: str(getattr(part, "dtype", part))
)


def column(lengths, values, *, sparse=False):
    splits = np.array([1, *lengths]).cumsum()  # not all values are in it
    return RaggedColumn(values, splits, sparse=sparse)


@each_column
def test_is_a_sequence_of_arrays(lengths, values):
    packed = column(lengths, values)
    rows = list(packed)
    assert is_packed(packed)
    assert not is_packed(rows)
    assert list(map(len, rows)) == lengths == packed.lengths.tolist()
    assert_elements_equal([packed[i] for i in range(-1, len(packed))], [rows[-1], *rows])
    for part in (slice(1, None), slice(5, None), slice(2, 1), slice(None, None, -1)):
        assert_elements_equal(list(packed[part]), rows[part])
    assert_elements_equal(list(packed.copy()), rows)
    assert not np.shares_memory(packed.copy().values, values)
    assert packed.nbytes == sum(map(len, packed.flat) if values.dtype == object else [row.nbytes for row in rows])
    with pytest.raises(IndexError):
        packed[len(lengths)]


def assert_same_result(function, packed, rows, *arguments):
    """Check that a function gives the same result, or the same error, for a packed column and for a list."""
    results = []
    for part in (packed, rows):
        try:
            results.append(function(part, *arguments))
        except ColumnMismatchError as error:
            results.append(error)
    assert_elements_equal(results[:1], results[1:])


@each_column
@pytest.mark.parametrize("sparse", [False, True])
def test_stacks_as_a_list_does(lengths, values, sparse):
    packed = column(lengths, values, sparse=sparse and values.ndim == 1)
    for part in (packed, packed[:2], packed[1:] if len(lengths) > 1 else packed):
        assert_same_result(stack_column, part, list(part))
    joined = concatenate_columns([packed, packed[:1]])
    assert is_packed(joined)
    assert_elements_equal(list(joined), [*packed, packed[0]])
    assert_same_result(stack_column, joined, [*packed, packed[0]])


@each_column
@pytest.mark.parametrize("room", [None, 1, 7])
def test_pads_and_becomes_ragged_as_a_list_does(lengths, values, room):
    packed = column(lengths, values)
    inner = values.shape[1:]
    fill = b"-" if values.dtype == object else values.dtype.type(-1)
    for shape in ((room, *inner), (room, *[None] * len(inner)), (room, *[3] * len(inner)), (), (room, 1, 1, 1)):
        assert_same_result(pad_column, packed, list(packed), shape, fill)
    for rank in (1, 2):
        assert_same_result(stack_as_ragged, packed, list(packed), rank, np.dtype(np.int32))


def test_columns_of_another_kind_join_as_lists():
    numbers, cells = column([1, 2], np.arange(9)), column([1, 2], np.arange(9), sparse=True)
    for other in (cells, column([1], np.arange(9.0)), [np.zeros(2)], column([1], np.zeros((9, 2)))):
        assert type(concatenate_columns([numbers, other])) is list
        assert type(concatenate_columns([other, numbers])) is list
    assert isinstance(cells[0], SparseTensor)
