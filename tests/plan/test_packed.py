"""RaggedColumn: values of different lengths, end to end, that are a list to whoever looks."""

import numpy as np
import pytest

from dataset.plan.packed import RaggedColumn, is_packed
from dataset.plan.values import SparseTensor
from dataset.runtime.chunks.batching import ColumnMismatchError, pad_column, stack_column
from dataset.runtime.chunks.chunk import concatenate_columns
from dataset.runtime.chunks.ragged_stack import stack_as_ragged
from dataset.testing import assert_elements_equal

LENGTHS = [[3, 0, 2, 1], [2, 2, 2], [0, 0], [4], [0, 5]]
VALUES = {
    "int64": np.arange(20),
    "float32 rows": np.arange(40, dtype=np.float32).reshape(20, 2),
    "bytes": np.array([b"%d" % i for i in range(20)], object),
}


def column(lengths, values, *, sparse=False):
    splits = np.array([1, *lengths]).cumsum()  # not all values are in it
    return RaggedColumn(values, splits, sparse=sparse)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_is_a_sequence_of_arrays(lengths, values):
    packed = column(lengths, values)
    rows = list(packed)
    assert is_packed(packed)
    assert not is_packed(rows)
    assert list(map(len, rows)) == lengths == packed.lengths.tolist()
    assert_elements_equal([packed[i] for i in range(len(packed))], rows)
    assert_elements_equal([packed[-1]], rows[-1:])
    assert_elements_equal(list(packed[1:]), rows[1:])
    assert_elements_equal(list(packed[5:]), rows[5:])
    assert_elements_equal(list(packed[::-1]), rows[::-1])
    assert_elements_equal(list(packed.copy()), rows)
    assert not np.shares_memory(packed.copy().values, values)
    assert packed.nbytes == sum(map(len, packed.flat) if values.dtype == object else [row.nbytes for row in rows])
    with pytest.raises(IndexError):
        packed[len(lengths)]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("sparse", [False, True])
def test_stacks_as_a_list_does(lengths, values, sparse):
    if sparse and values.ndim > 1:
        return
    packed = column(lengths, values, sparse=sparse)
    for part in (packed, packed[:2], packed[1:] if len(lengths) > 1 else packed):
        expected = _result(stack_column, list(part))
        assert_elements_equal([_result(stack_column, part)], [expected])
    joined = concatenate_columns([packed, packed[:1]])
    assert is_packed(joined)
    assert_elements_equal(list(joined), [*packed, packed[0]])
    assert_elements_equal([_result(stack_column, joined)], [_result(stack_column, [*packed, packed[0]])])


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("room", [None, 1, 7])
def test_pads_and_becomes_ragged_as_a_list_does(lengths, values, room):
    packed = column(lengths, values)
    inner = values.shape[1:]
    fill = b"-" if values.dtype == object else values.dtype.type(-1)
    for shape in ((room, *inner), (room, *[None] * len(inner)), (room, *[3] * len(inner)), (), (room, 1, 1, 1)):
        got, expected = (_result(pad_column, part, shape, fill) for part in (packed, list(packed)))
        assert_elements_equal([got], [expected])
    for rank in (1, 2):
        got, expected = (_result(stack_as_ragged, part, rank, np.dtype(np.int32)) for part in (packed, list(packed)))
        assert_elements_equal([got], [expected])


def test_columns_of_another_kind_join_as_lists():
    numbers, cells = column([1, 2], np.arange(9)), column([1, 2], np.arange(9), sparse=True)
    for other in (cells, column([1], np.arange(9.0)), [np.zeros(2)], column([1], np.zeros((9, 2)))):
        assert type(concatenate_columns([numbers, other])) is list
        assert type(concatenate_columns([other, numbers])) is list
    assert isinstance(cells[0], SparseTensor)


def _result(function, *arguments):
    try:
        return function(*arguments)
    except ColumnMismatchError as error:
        return error
