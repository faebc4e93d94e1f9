"""RaggedTensor and SparseTensor: small records that hold together."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataset import RaggedTensor, SparseTensor
from dataset.plan.values import splits_of_lengths
from dataset.runtime.chunks.batching import stack_column

ROWS = st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=5)


@given(ROWS, st.data())
def test_a_ragged_tensor_holds_its_rows_and_is_sliced_like_a_list(rows, data):
    ragged = RaggedTensor.from_rows(rows, dtype=np.int64)
    assert ragged.to_list() == rows
    assert ragged.shape == (len(rows), None)
    assert [row.tolist() for row in ragged] == rows
    assert ragged == RaggedTensor.from_rows(rows, dtype=np.int64)
    width = max(map(len, rows), default=0)
    assert ragged.to_tensor(default_value=99).tolist() == [row + [99] * (width - len(row)) for row in rows]
    bounds = st.one_of(st.none(), st.integers(-7, 7))
    selected = slice(data.draw(bounds), data.draw(bounds))
    assert ragged[selected].to_list() == rows[selected]
    for index in range(-len(rows), len(rows)):
        assert ragged[index].tolist() == rows[index]
    for index in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError):
            ragged[index]


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_stacked_ragged_tensors_are_the_rows_of_the_stack(parts):
    ragged = [RaggedTensor.from_rows(rows, dtype=np.int64) for rows in parts]
    stacked = stack_column(ragged)
    assert stacked.to_list() == parts
    assert stacked.ragged_rank == 2
    assert list(stacked) == ragged


def test_several_ragged_dimensions_are_given_outermost_first_and_inner_dimensions_are_kept():
    ragged = RaggedTensor.from_nested_row_splits([1, 2, 3], [[0, 2, 2], [0, 1, 3]])
    assert ragged.to_list() == [[[1], [2, 3]], []]
    assert [splits.tolist() for splits in ragged.nested_row_splits] == [[0, 2, 2], [0, 1, 3]]
    assert ragged.flat_values.tolist() == [1, 2, 3]
    assert ragged.to_tensor(-1).tolist() == [[[1, -1], [2, 3]], [[-1, -1], [-1, -1]]]
    assert ragged.shape == (2, None, None)
    uniform = RaggedTensor(np.arange(6).reshape(3, 2), [0, 1, 3])
    assert uniform.shape == (2, None, 2)
    assert uniform.to_tensor().shape == (2, 2, 2)


def test_empty_rows_take_the_dtype_of_the_others():
    assert RaggedTensor.from_rows([[], [1, 2]]).dtype == np.int64
    assert RaggedTensor.from_rows([], dtype=np.int8).dtype == np.int8
    assert len(RaggedTensor.from_rows([[], []])) == 2


UNSIGNED = np.array([0, 3, 1, 3], np.uint8)


@pytest.mark.parametrize(
    "splits",
    [[], [1, 3], [0, 2], [0, 2, 1, 3], [[0, 3]], [0.0, 3.0], [0, -1, 3], [0, 4, 3], np.array([True] * 2), UNSIGNED],
)
def test_row_splits_that_do_not_fit_are_refused(splits):
    with pytest.raises(ValueError, match="row_splits"):
        RaggedTensor([1, 2, 3], splits)


def test_text_is_padded_with_empty_text_or_text_with_its_zero_bytes():
    text = np.array([b"a\0"], object)
    assert RaggedTensor(text, [0, 0, 1]).to_tensor().tolist() == [[b""], [b"a\0"]]
    assert RaggedTensor(text, [0, 0, 1]).to_tensor(b"z\0").tolist() == [[b"z\0"], [b"a\0"]]
    assert SparseTensor([[1]], text, [2]).to_dense(b"z\0").tolist() == [b"z\0", b"a\0"]


def test_values_compare_by_content_and_cannot_be_hashed():
    ragged, sparse = RaggedTensor([1, 2], [0, 1, 2]), SparseTensor([[0]], [1], [3])
    assert sparse == SparseTensor([[0]], [1], [3])
    for other in (RaggedTensor([1, 2], [0, 2, 2]), RaggedTensor(np.array([1, 2], np.int32), [0, 1, 2]), [[1], [2]]):
        assert ragged != other
    for other in (SparseTensor([[0]], [1], [4]), SparseTensor([[0]], [1.0], [3]), SparseTensor([[1]], [1], [3])):
        assert sparse != other
    for value in (ragged, sparse):
        with pytest.raises(TypeError):
            hash(value)
    assert repr(ragged) == "RaggedTensor([[1], [2]], dtype=int64)"
    assert "dense_shape=[3]" in repr(sparse)
    with pytest.raises(ValueError, match="only be sliced with step 1, got 2"):
        ragged[::2]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), unique=True, max_size=6))
@example([])
def test_a_sparse_tensor_is_its_dense_array(cells):
    values = [i + 1 for i in range(len(cells))]
    sparse = SparseTensor(cells, values, [3, 4])
    dense = np.zeros((3, 4), np.int64)
    for cell, value in zip(cells, values, strict=True):
        dense[cell] = value
    assert np.array_equal(sparse.to_dense(), dense)
    assert sparse.shape == (3, 4)
    assert sparse.indices.shape == (len(cells), 2)
    assert sparse.nbytes >= 8 * len(cells)


@pytest.mark.parametrize("indices", [[[0]], [[0, 1], [1, 1]], [0, 1]])
def test_indices_that_do_not_fit_are_refused(indices):
    with pytest.raises(ValueError, match="need indices of shape"):
        SparseTensor(indices, [1], [3, 4])


NARROW = np.int32


def test_row_splits_are_int64_unless_they_come_as_int32():
    for dtype, kept in (("i8", "i8"), ("i4", "i4"), ("u4", "i8"), ("i2", "i8"), (">i4", "i8"), (">i8", "i8")):
        ragged = RaggedTensor([1, 2], np.array([0, 2], dtype))
        assert ragged.row_splits_dtype == ragged.row_splits.dtype == np.dtype(kept)
    assert RaggedTensor([1, 2], [0, 2]).row_splits_dtype == np.int64


def test_narrow_row_splits_stay_narrow_whatever_is_done():
    ragged = RaggedTensor.from_nested_row_splits([1, 2, 3], [np.array([0, 2, 2], NARROW), np.array([0, 1, 3], NARROW)])
    same = [ragged[:1], ragged[0], ragged[1:], ragged.read_only(), ragged.values, stack_column([ragged, ragged])]
    same += [RaggedTensor.from_rows([[1]], row_splits_dtype=NARROW), pickle.loads(pickle.dumps(ragged))]
    for value in same:
        assert {splits.dtype for splits in value.nested_row_splits} == {np.dtype(NARROW)}
    assert ragged.to_list() == [[[1], [2, 3]], []]


def test_ragged_tensors_with_other_row_splits_are_not_equal_but_can_be_made_so():
    narrow = RaggedTensor.from_nested_row_splits([1, 2], [np.array([0, 1], NARROW), np.array([0, 2], NARROW)])
    wide = RaggedTensor.from_nested_row_splits([1, 2], [[0, 1], [0, 2]])
    assert narrow != wide
    assert narrow.with_row_splits_dtype(np.int64) == wide
    assert wide.with_row_splits_dtype("int32") == narrow
    assert wide.with_row_splits_dtype(np.int64) is wide
    assert repr(wide) == "RaggedTensor([[[1, 2]]], dtype=int64)"
    assert repr(narrow) == "RaggedTensor([[[1, 2]]], dtype=int64, row_splits_dtype=int32)"


def test_row_splits_of_one_tensor_have_one_dtype():
    for inner, outer in ((np.int64, np.int32), (np.int32, np.int64)):
        with pytest.raises(ValueError, match=r"row_splits are .* of the values are .*with_row_splits_dtype\(\)"):
            RaggedTensor(RaggedTensor([1], np.array([0, 1], inner)), np.array([0, 1], outer))


@pytest.mark.parametrize("dtype", [np.int16, np.uint32, float, bool])
def test_row_splits_of_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match="row_splits_dtype must be int32 or int64"):
        RaggedTensor([1], [0, 1]).with_row_splits_dtype(dtype)


def test_narrow_row_splits_do_not_overflow():
    with pytest.raises(ValueError, match="cannot count 4294967296 values"):
        splits_of_lengths([2**31, 2**31], np.int32)
    assert splits_of_lengths([2**31, 2**31], np.int64).tolist() == [0, 2**31, 2**32]
    assert splits_of_lengths([], np.int32).tolist() == [0]
