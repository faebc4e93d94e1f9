"""ragged_batch: batches of components of different shapes as RaggedTensors. tests/oracle compares shapes and specs."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import rows


def declared(values, shape):
    content = [np.array(value, np.int64) for value in values]
    return Dataset.from_generator(lambda: content, output_signature=TensorSpec(shape, np.int64))


def ragged(rows, dtype=np.int64, splits=np.int64):
    return RaggedTensor.from_rows([np.array(row, dtype) for row in rows], row_splits_dtype=splits)


@pytest.mark.parametrize("splits", [np.int32, np.int64])
def test_stacks_into_ragged_tensors_with_row_splits_of_the_requested_dtype(splits):
    expected = [ragged([[1], [2, 2]], splits=splits), ragged([[3, 3, 3]], splits=splits)]
    check_operator(lambda: rows().ragged_batch(2, row_splits_dtype=splits), expected)
    matrices = declared([np.full((i, 3 - i), i) for i in range(3)], (None, None))
    (batch,) = check_operator(lambda: matrices.ragged_batch(3, row_splits_dtype=splits))
    assert [part.dtype for part in batch.nested_row_splits] == [splits] * 2
    assert batch.to_list() == [[], [[1, 1]], [[2], [2]]]


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.map(np.zeros).ragged_batch(4), lambda k: 4 * k)


def test_only_dimensions_up_to_the_last_unknown_one_are_ragged():
    values = [np.full((i, 2), i) for i in range(3)]
    expected = RaggedTensor(np.concatenate(values), [0, 0, 1, 3])
    check_operator(lambda: declared(values, (None, 2)).ragged_batch(3), [expected])
    got = outcomes(iter(declared([[1], [2], [1], [2, 3]], None).ragged_batch(2)))  # of unknown rank
    assert_elements_equal(got[:1], [np.array([[1], [2]])])
    assert isinstance(got[1], SpecError)


def test_every_dimension_after_a_function_counts_as_unknown():
    dataset = Dataset.range(1, 3).map(lambda n: np.full((n, 2), n))
    expected = RaggedTensor.from_nested_row_splits([1, 1, 2, 2, 2, 2], [[0, 1, 3], [0, 2, 4, 6]])
    check_operator(lambda: dataset.ragged_batch(2), [expected])
    assert dataset.ragged_batch(2).element_spec == RaggedTensorSpec((None, None, None), np.int64)
    alike = Dataset.range(4).map(lambda n: np.full(2, n)).ragged_batch(2)
    assert [batch.to_list() for batch in alike] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]


def test_elements_that_do_not_stack_are_an_error_of_their_batch_that_names_them():
    values = [np.zeros(2), RaggedTensor([1], [0, 1]), *[np.zeros(1)] * 2]
    got = outcomes(iter(Dataset.range(4).map(lambda x: values[int(x)]).ragged_batch(2)))
    assert isinstance(got[0], SpecError)
    assert "ragged_batch(2)" in str(got[0])
    assert "type RaggedTensor in element 1" in str(got[0])
    assert got[1] == ragged([[0], [0]], np.float64)
