"""sparse_batch: arrays of different shapes as one SparseTensor. tests/oracle compares shapes, dtypes and refusals."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.testing import check_laziness, check_operator, outcomes
from support.op_cases import rows


def test_stores_every_cell_of_arrays_scalars_and_text():
    first = SparseTensor([[0, 0], [1, 0], [1, 1]], [1, 2, 2], [2, 5])
    second = SparseTensor([[0, 0], [0, 1], [0, 2]], [3, 3, 3], [1, 5])
    check_operator(lambda: rows().sparse_batch(2, [5]), [first, second])
    text = SparseTensor([[0], [1], [2]], np.array([b"a\0", b"", b"b"], object), [3])
    check_operator(lambda: Dataset.from_tensor_slices(["a\0", "", "b"]).sparse_batch(3, ()), [text])
    ragged = Dataset.from_tensor_slices(RaggedTensor([1, 2, 3], [0, 1, 1, 3]))
    check_operator(lambda: ragged.sparse_batch(9, [None]), [SparseTensor([[0, 0], [2, 0], [2, 1]], [1, 2, 3], [3, 2])])


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.map(np.zeros).sparse_batch(4, [None]), lambda k: 4 * k)


def test_an_element_without_room_ends_its_batch_and_is_named():
    lengths = [1, 9, 2, 3, 9, 9, 1]
    dataset = Dataset.range(7).map(lambda i: np.ones(lengths[int(i)]))
    got = check_operator(lambda: dataset.sparse_batch(2, [3]))
    assert [type(outcome) is SpecError for outcome in got] == [True, False, True, True, False]
    assert "sparse_batch(2) from test_sparse_batch.py" in str(got[0])
    assert "element 1 has shape (9,), which does not fit into row_shape (3,)" in str(got[0])
    assert "element 5" in str(got[3])
    assert got[1].shape == (2, 3)


def test_an_element_that_is_wrong_only_at_run_time_fails_in_its_place():
    values = [np.ones(1), np.ones((1, 1)), 1.0, RaggedTensor([1.0], [0, 1]), np.ones(2)]
    got = check_operator(lambda: Dataset.range(5).map(lambda i: values[int(i)]).sparse_batch(1, [2]))
    assert [type(outcome) is SpecError for outcome in got] == [False, True, True, True, False]
    assert "is a RaggedTensor" in str(got[3])
    mixed = Dataset.range(4).map(lambda i: np.ones(1, "f4" if i == 1 else "f8")).sparse_batch(2, [2])
    error, _ = outcomes(iter(mixed))
    assert isinstance(error, SpecError)
    assert "dtype float32 in element 1 but float64 in element 0" in str(error)
    with pytest.raises(TypeError, match="single dense component"):
        next(iter(Dataset.range(3).map(lambda x: (x, x)).sparse_batch(2, [])))
