"""Tests of batching components."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.runtime.chunks.batching import ColumnMismatchError, pad_column, stack_column
from dataset.testing import assert_elements_equal, outcomes

SHAPES = st.lists(st.integers(0, 3), max_size=2).map(tuple)
DTYPES = st.sampled_from([np.int64, np.uint8, np.float16, np.bool_, np.complex128, "M8[s]"])


@given(SHAPES, DTYPES, st.integers(1, 5))
def test_stacking_is_that_of_numpy(shape, dtype, count):
    arrays = [np.arange(int(np.prod(shape))).reshape(shape).astype("i8").astype(dtype) for _ in range(count)]
    values = [array[()] for array in arrays]
    assert_elements_equal([stack_column(values)], [np.stack(arrays)])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4))
def test_padding_matrices_keeps_each_in_its_corner(shapes):
    arrays = [np.full(shape, i + 1) for i, shape in enumerate(shapes)]
    padded = pad_column(arrays, [None, 4], 0)
    assert padded.shape == (len(shapes), max(a for a, _ in shapes), 4)
    for array, result in zip(arrays, padded, strict=True):
        assert np.array_equal(result[: array.shape[0], : array.shape[1]], array)
        assert result.sum() == array.sum()


def test_text_is_stacked_as_objects_with_its_zero_bytes():
    stacked = stack_column([b"a\0", b"\0"])
    assert stacked.dtype == object
    assert stacked.tolist() == [b"a\0", b"\0"]
    padded = pad_column([np.array([b"a\0"], object), np.array([], object)], [2], b"")
    assert padded.tolist() == [[b"a\0", b""], [b"", b""]]


@pytest.mark.parametrize(
    ("column", "what", "index"),
    [
        ([np.zeros(2), np.zeros(3)], "shape", 1),
        ([np.zeros(2), np.zeros(2), np.zeros((2, 1))], "shape", 2),
        ([np.zeros(2), np.zeros(2, np.float32)], "dtype", 1),
        ([np.int64(1), np.int64(1), np.float64(1)], "dtype", 2),
        ([np.zeros(2), b"a"], "type", 1),
        ([b"a", np.int64(1)], None, 1),
        ([np.int64(1), np.zeros(1, np.int64)], None, 1),
        ([RaggedTensor([1], [0, 1]), np.zeros(1)], "type", 1),
        ([RaggedTensor([1], [0, 1]), RaggedTensor([1.0], [0, 1])], "dtype", 1),
        ([RaggedTensor(np.zeros((1, n)), [0, 1]) for n in (2, 3)], None, 1),
        ([SparseTensor([[0]], [1], [2]), SparseTensor([[0, 0]], [1], [3, 3])], "rank", 1),
        ([SparseTensor([[0]], [1], [2]), SparseTensor([[0]], [1.0], [2])], "dtype", 1),
        ([RaggedTensor([1], [0, 1]), RaggedTensor([1], np.array([0, 1], "i4"))], "row_splits dtype", 1),
    ],
)
def test_what_does_not_go_together_is_found_with_its_index(column, what, index):
    with pytest.raises(ColumnMismatchError) as found:
        stack_column(column)
    assert found.value.index == index
    assert what is None or found.value.what == what


@pytest.mark.parametrize(
    ("column", "shape", "what"),
    [
        ([np.zeros(3)], [2], "shape"),
        ([np.zeros(1), np.zeros((1, 1))], [None], "rank"),
        ([np.zeros((1, 1))], [None], "rank"),
        ([np.zeros(1), np.zeros(1, np.int8)], [None], "dtype"),
    ],
)
def test_what_cannot_be_padded_is_found(column, shape, what):
    with pytest.raises(ColumnMismatchError) as found:
        pad_column(column, shape, 0)
    assert found.value.what == what


def test_a_column_that_is_an_array_already_is_the_batch_and_batches_of_sparse_tensors_are_sparse():
    array = np.zeros((3, 2))
    assert stack_column(array) is array
    ragged = stack_column([RaggedTensor([1, 2], [0, 2]), RaggedTensor([3], [0, 0, 1])])
    assert ragged.to_list() == [[[1, 2]], [[], [3]]]
    sparse = stack_column([SparseTensor([[1]], [5], [3]), SparseTensor([], np.zeros(0, np.int64), [3])])
    assert sparse.to_dense().tolist() == [[0, 5, 0], [0, 0, 0]]
    assert sparse.indices.tolist() == [[0, 1]]


def test_the_error_names_component_elements_and_both_shapes():
    dataset = Dataset.range(20).map(lambda x: {"image": np.zeros((240 if x < 17 else 200, 3))}).batch(10)
    error = outcomes(iter(dataset))[1]
    assert isinstance(error, SpecError)
    for words in (
        "component 'image' has shape (200, 3) in element 17 but (240, 3) in element 16",
        "padded_batch()",
        "from test_batching.py:",
    ):
        assert words in str(error)


@pytest.mark.parametrize("kind", [lambda x: RaggedTensor(np.zeros((1, 2 + x % 2)), [0, 1]), lambda x: np.zeros(x % 2)])
def test_batches_that_cannot_be_made_fail_at_their_place(kind):
    dataset = Dataset.range(8).map(lambda x: kind(x) if x in {2, 3} else kind(0)).batch(2)
    results = outcomes(iter(dataset.prefetch(4)))
    assert [isinstance(r, SpecError) for r in results] == [False, True, False, False]


@pytest.mark.parametrize("longest", [1, 5, 63, 64, 65, 700])
@pytest.mark.parametrize("room", [0, 3, None])
def test_vectors_of_every_length_are_filled_up(longest, room):
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 9, size) for size in [longest, 0, 1, *rng.integers(0, longest + 1, 20)]]
    wanted = None if room is None else longest + room
    width = longest if room is None else wanted
    for dtype, value in ((np.int16, -1), (np.float32, 0.5), (object, b"")):
        column = [row.astype(dtype) for row in rows]
        padded = pad_column(column, (wanted,), value)
        assert (padded.shape, padded.dtype) == ((len(rows), width), dtype)
        assert padded.tolist() == [[*row.tolist(), *[value] * (width - len(row))] for row in column]
    with pytest.raises(ColumnMismatchError) as error:
        pad_column([rows[1], rows[0]], (longest - 1,), 0)
    assert error.value.index == 1
