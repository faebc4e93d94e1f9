"""ragged_batch: batches of components of different shapes as RaggedTensors."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints, rows


def declared(values, shape, dtype=np.int64):
    content = [np.array(value, dtype) for value in values]
    return Dataset.from_generator(lambda: content, output_signature=TensorSpec(shape, dtype))


def ragged(rows, dtype=np.int64, splits=np.int64):
    return RaggedTensor.from_rows([np.array(row, dtype) for row in rows], row_splits_dtype=splits)


def test_makes_ragged_tensors():
    check_operator(lambda: rows().ragged_batch(2), [ragged([[1], [2, 2]]), ragged([[3, 3, 3]])])
    check_operator(lambda: declared([[1], [], [2, 3]], (None,)).ragged_batch(2))
    assert_elements_equal(list(rows().ragged_batch(9)), [ragged([[1], [2, 2], [3, 3, 3]])])
    assert_elements_equal(list(rows().ragged_batch(2, drop_remainder=True)), [ragged([[1], [2, 2]])])
    assert_elements_equal(list(rows(1).ragged_batch(2)), [])


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.map(np.zeros).ragged_batch(4), lambda k: 4 * k)


@pytest.mark.parametrize("splits", [np.int32, np.int64])
def test_row_splits_have_the_dtype_that_was_asked_for(splits):
    found = check_operator(
        lambda: rows().ragged_batch(2, row_splits_dtype=splits),
        [ragged([[1], [2, 2]], splits=splits), ragged([[3, 3, 3]], splits=splits)],
    )
    assert found[0].row_splits.dtype == splits
    again = check_operator(lambda: rows(5).ragged_batch(2, row_splits_dtype=splits).batch(2).unbatch())
    assert {value.row_splits.dtype for value in again} == {np.dtype(splits)}


def test_several_ragged_dimensions_have_narrow_row_splits_too():
    values = [np.full((i, 3 - i), i) for i in range(3)]
    (batch,) = check_operator(lambda: declared(values, (None, None)).ragged_batch(3, row_splits_dtype=np.int32))
    assert [splits.dtype for splits in batch.nested_row_splits] == [np.int32] * 2
    assert batch.to_list() == [[], [[1, 1]], [[2], [2]]]


def test_what_is_known_to_be_of_one_shape_stays_dense():
    for dataset, batches in (
        (Dataset.range(3), [np.array([0, 1]), np.array([2])]),
        (Dataset.from_tensor_slices(np.eye(2)), [np.eye(2)]),
        (Dataset.from_tensor_slices(["a", "b\0"]), [np.array([b"a", b"b\0"], object)]),
        (Dataset.range(2).map(lambda x: x + 1), [np.array([1, 2])]),
        (Dataset.from_tensors((1, None)), [(np.array([1]), None)]),
    ):
        assert_elements_equal(list(dataset.ragged_batch(2)), batches)


def test_only_dimensions_up_to_the_last_unknown_one_are_ragged():
    values = [np.full((i, 2), i) for i in range(3)]
    (batch,) = check_operator(lambda: declared(values, (None, 2)).ragged_batch(3))
    assert batch == RaggedTensor(np.concatenate(values), [0, 0, 1, 3])
    (batch,) = check_operator(lambda: declared(values, (None, None)).ragged_batch(3))
    assert batch.ragged_rank == 2


def test_behind_a_function_every_dimension_counts_as_unknown():
    dataset = Dataset.range(1, 3).map(lambda n: np.full((n, 2), n))
    check_operator(
        lambda: dataset.ragged_batch(2),
        [RaggedTensor.from_nested_row_splits([1, 1, 2, 2, 2, 2], [[0, 1, 3], [0, 2, 4, 6]])],
    )
    assert dataset.ragged_batch(2).element_spec == RaggedTensorSpec((None, None, None), np.int64)
    alike = Dataset.range(4).map(lambda n: np.full(2, n)).ragged_batch(2)
    assert [batch.to_list() for batch in alike] == [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]


def test_ragged_and_sparse_components_are_stacked_as_by_batch():
    both = (ragged([[1, 2], []], splits=np.int32), SparseTensor([[0]], [1.5], [2]))
    expected = list(Dataset.from_tensors(both).repeat(3).batch(2))
    got = check_operator(lambda: Dataset.from_tensors(both).repeat(3).ragged_batch(2), expected)
    assert got[0][0].row_splits.dtype == np.int32


def test_structures_and_text():
    dataset = Dataset.range(1, 4).map(lambda n: {"b": (np.full(n, n), n), "a": ["x\0"] * int(n)})
    text = RaggedTensor(np.array([b"x\0"] * 6, object), [0, 1, 3, 6])
    expected = {"b": (ragged([[1], [2, 2], [3, 3, 3]]), np.array([1, 2, 3])), "a": text}
    check_operator(lambda: dataset.ragged_batch(3), [expected])


def test_knows_spec_and_cardinality():
    static = declared([], (None, 3, None, 2), np.float32)
    spec = RaggedTensorSpec((None, None, 3, None, 2), np.float32, 3)
    assert static.ragged_batch(2).element_spec == spec
    narrow = static.ragged_batch(2, True, np.int32).element_spec
    assert narrow == RaggedTensorSpec((2, None, 3, None, 2), np.float32, 3, np.int32)
    assert declared([], None).ragged_batch(2).element_spec == TensorSpec(None, np.int64)
    assert rows().ragged_batch(2).cardinality() == 2
    assert rows().ragged_batch(2, True).cardinality() == 1
    assert rows().repeat().ragged_batch(2).cardinality() == -1


def test_unknown_rank_is_batched_dense_as_in_tf_data():
    got = outcomes(iter(declared([[1], [2], [1], [2, 3]], None).ragged_batch(2)))
    assert_elements_equal(got[:1], [np.array([[1], [2]])])
    assert isinstance(got[1], SpecError)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([np.zeros(2, "f4"), np.zeros(3, "f8")], "dtype float64 in element 1 but float32 in element 0"),
        ([np.zeros(2), np.zeros((2, 2))], "rank 2 in element 1 but 1 in element 0"),
        ([np.zeros(2), 1.0], "type float64 in element 1 but ndarray in element 0"),
        ([np.zeros(2), RaggedTensor([1], [0, 1])], "type RaggedTensor in element 1"),
    ],
)
def test_elements_that_do_not_go_together_are_an_error_that_names_them(values, words):
    dataset = Dataset.range(4).map(lambda x: values[int(x)] if x < 2 else np.zeros(1))
    got = outcomes(iter(dataset.ragged_batch(2)))
    assert isinstance(got[0], SpecError)
    assert words in str(got[0])
    assert "ragged_batch(2)" in str(got[0])
    assert got[1] == ragged([[0], [0]], np.float64)


def test_exceptions_take_what_their_batch_had_so_far():
    dataset = Dataset.range(1, 6).map(fail_at(2)).map(lambda n: np.full(n, n))
    expected = [ValueError("bad 2"), ragged([[3] * 3, [4] * 4]), ragged([[5] * 5])]
    check_operator(lambda: dataset.ragged_batch(2), expected)


def test_batches_are_the_users():
    source = np.zeros((4, 3))
    for batch in Dataset.from_tensor_slices(source).map(lambda row: row).ragged_batch(2):
        batch.values[:] = 1
    assert not source.any()
    check_operator(lambda: rows().ragged_batch(2).unbatch().map(len), ints(1, 2, 3))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0,), ValueError, r"ragged_batch\(\): batch_size must be at least 1, got 0"),
        ((2.0,), TypeError, r"ragged_batch\(\): batch_size must be an int"),
        ((2, 1), TypeError, r"ragged_batch\(\): drop_remainder must be True or False"),
        ((2, False, np.int16), ValueError, r"ragged_batch\(\): row_splits_dtype must be int32 or int64"),
        ((2, False, float), ValueError, r"ragged_batch\(\): row_splits_dtype must be int32 or int64"),
        ((2, False, "no dtype"), TypeError, "no dtype"),
    ],
)
def test_refuses_wrong_arguments_at_construction(arguments, error, words):
    with pytest.raises(error, match=words):
        rows().ragged_batch(*arguments)
