"""from_tensor_slices: the rows of arrays. tests/oracle compares structures and dtypes with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, TensorSpec
from dataset.testing import check_operator
from support.pipelines import Record


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.array([[1, 2], [3, 4]], "datetime64[s]"), list(np.array([[1, 2], [3, 4]], "datetime64[s]"))),
        (Record([1], ["a"]), [Record(np.int64(1), b"a")]),
        ([], []),
        (np.arange(12).reshape(3, 4)[:, ::2].astype(">i4"), list(np.arange(0, 12, 2, "i4").reshape(3, 2))),
        (RaggedTensor.from_rows([["a", "ü"], []], object), [np.array([b"a", "ü".encode()], object), np.array([], "O")]),
    ],
    ids=repr,
)
def test_gives_rows_in_the_structure_of_the_arrays(given, expected):
    check_operator(lambda: Dataset.from_tensor_slices(given), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.shard(3, 1),
        lambda d: d.shuffle(None, seed=2).repeat(2),
        lambda d: d.padded_batch(4),
        lambda d: d.ragged_batch(4),
        lambda d: Dataset.sample_from_datasets([d, d], seed=1),
        lambda d: d.shuffle(5, seed=1).map(lambda row: row + 1).padded_batch(3),
    ],
)
def test_ragged_rows_are_those_that_they_would_be_one_by_one(change):
    rows = [np.arange(number % 7, dtype=np.int32) + number for number in range(25)]
    ragged = Dataset.from_tensor_slices(RaggedTensor.from_rows(rows))
    single = Dataset.from_generator(lambda: rows, output_signature=TensorSpec((None,), np.int32))
    check_operator(lambda: change(ragged), list(change(single)), positions=5)


def test_does_not_copy_the_arrays_and_gives_read_only_rows():
    array, ragged = np.zeros((3, 2)), RaggedTensor(np.arange(3), [0, 2, 3])
    for row in Dataset.from_tensor_slices(array):
        assert np.shares_memory(row, array)
        assert not row.flags.writeable
    for row in Dataset.from_tensor_slices(ragged):
        assert not (np.shares_memory(row, ragged.values) and row.flags.writeable)
    sparse = SparseTensor([[0, 1], [1, 0]], np.array([5, 6]), [2, 2])
    for row in Dataset.from_tensor_slices(sparse):
        assert not (np.shares_memory(row.values, sparse.values) and row.values.flags.writeable)
    assert array.flags.writeable
