"""unbatch: the rows of each element, one by one."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import ints


def test_gives_the_rows_of_each_element():
    check_operator(lambda: Dataset.range(5).batch(2).unbatch(), ints(0, 1, 2, 3, 4))
    assert_elements_equal(list(Dataset.range(4).batch(2).batch(2).unbatch()), [np.array([0, 1]), np.array([2, 3])])
    assert list(Dataset.range(0).batch(2).unbatch()) == []


def test_takes_an_element_when_its_first_row_is_asked_for():
    check_laziness(lambda numbers: numbers.batch(4).unbatch(), lambda k: 4 * -(-k // 4))
    check_laziness(lambda numbers: numbers.map(lambda n: np.zeros(2)).unbatch(), lambda k: -(-k // 2))


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (([1, 2], ["a", "b\x00"]), [(np.int64(1), b"a"), (np.int64(2), b"b\x00")]),
        ({"b": [1], "a": (np.zeros((1, 3)), None)}, [{"b": np.int64(1), "a": (np.zeros(3), None)}]),
        (([1, 2],), [(np.int64(1),), (np.int64(2),)]),
        (np.zeros((2, 0)), [np.zeros(0), np.zeros(0)]),
        (RaggedTensor([1, 2, 3], [0, 2, 3]), [np.array([1, 2]), np.array([3])]),
        (
            SparseTensor([[0, 1], [1, 0]], [5, 6], [2, 2]),
            [SparseTensor([[1]], [5], [2]), SparseTensor([[0]], [6], [2])],
        ),
        (np.arange(2).astype("M8[D]"), list(np.arange(2).astype("M8[D]"))),
    ],
    ids=repr,
)
def test_takes_every_structure_and_kind_apart(value, rows):
    check_operator(lambda: Dataset.from_tensors(value).unbatch(), rows)


def test_elements_without_rows_give_nothing():
    lengths = [0, 2, 0, 0, 1, 0]
    dataset = Dataset.range(6).map(lambda i: np.full(lengths[int(i)], i))
    check_operator(dataset.unbatch, ints(1, 1, 4))
    check_operator(lambda: Dataset.from_tensors(np.zeros((0, 3))).repeat(3).unbatch(), [])


def test_knows_spec_and_cardinality():
    numbers = Dataset.range(6)
    table = [
        (numbers.batch(2), -2),
        (numbers.batch(2, drop_remainder=True), 6),
        (numbers.repeat().batch(2, drop_remainder=True), -1),
        (numbers.repeat().batch(2), -1),
        (Dataset.from_tensor_slices(np.zeros((3, 4))), 12),
        (numbers.filter(lambda x: True).batch(2, drop_remainder=True), -2),
        (numbers.map(lambda x: x).batch(2, drop_remainder=True), 6),
        (numbers.map(lambda x: x).batch(2, drop_remainder=True).prefetch(1).take(2), 4),
        (numbers.map(lambda x: x).batch(2, drop_remainder=True).map(lambda b: b), -2),
        (numbers.map(lambda x: x).batch(2, drop_remainder=True).concatenate(numbers.batch(2, True)), 12),
        (numbers.map(lambda x: x).batch(2, drop_remainder=True).concatenate(numbers.batch(3, True)), -2),
        (Dataset.from_tensors(np.zeros((0, 3))).repeat(3), 0),
    ]
    for dataset, cardinality in table:
        assert dataset.unbatch().cardinality() == cardinality
    assert numbers.batch(2).unbatch().element_spec == TensorSpec((), np.int64)
    assert Dataset.from_tensors({"a": np.zeros((2, 3))}).unbatch().element_spec == {"a": TensorSpec((3,), np.float64)}


@pytest.mark.parametrize("scalar", [3, "text", (np.zeros(2), 1)], ids=repr)
def test_refuses_scalars_at_construction(scalar):
    with pytest.raises(ValueError, match=r"unbatch\(\).*scalar"):
        Dataset.from_tensors(scalar).unbatch()


def test_a_scalar_that_only_running_shows_is_an_error_while_iterating():
    got = outcomes(iter(Dataset.range(2).map(lambda x: x if x == 0 else [[1, 2], [3, 4]][0]).unbatch()))
    assert isinstance(got[0], SpecError)
    assert "unbatch" in str(got[0])


def test_refuses_components_of_different_lengths_at_construction_as_tf_data_does():
    with pytest.raises(ValueError, match="unbatch"):
        Dataset.from_tensors(([1, 2], [3])).unbatch()


def test_components_of_different_lengths_are_an_error_of_their_element():
    def uneven(x):
        return {"a": np.zeros(2), "b": np.zeros(2 + (x == 1))}

    got = outcomes(iter(Dataset.range(3).map(uneven).unbatch()))
    assert [isinstance(outcome, SpecError) for outcome in got] == [False, False, True, False, False]
    assert "'a' has 2" in str(got[2])
    assert "'b' has 3" in str(got[2])


def test_exceptions_keep_their_place():
    def fail(x):
        if x == 1:
            raise ValueError("bad")
        return np.full(2, x)

    check_operator(lambda: Dataset.range(3).map(fail).unbatch(), [*ints(0, 0), ValueError("bad"), *ints(2, 2)])


def test_rows_never_let_the_user_write_into_a_source():
    source = np.zeros((2, 3, 2))
    for row in Dataset.from_tensor_slices(source).unbatch():
        if row.flags.writeable:
            row[:] = 1
    assert not source.any()
    ragged = RaggedTensor(np.zeros(3), [0, 2, 3])
    for row in Dataset.from_tensors(ragged).unbatch():
        if row.flags.writeable:
            row[:] = 1
    assert not ragged.values.any()


def test_rows_of_no_size_are_rows_although_they_crash_tf_data():
    check_operator(lambda: Dataset.from_tensors(np.zeros((3, 0, 2))).unbatch(), [np.zeros((0, 2))] * 3)
    check_operator(lambda: Dataset.from_tensor_slices(np.zeros((5, 0))).batch(2).unbatch(), [np.zeros(0)] * 5)


def test_knows_the_rows_of_ragged_tensors():
    ragged = RaggedTensor.from_nested_row_splits([1, 2], [np.array([0, 1, 1], "i4"), np.array([0, 2], "i4")])
    dataset = Dataset.from_tensors(ragged)
    assert dataset.unbatch().element_spec == RaggedTensorSpec((None, None), np.int64, 1, np.int32)
    assert dataset.unbatch().unbatch().element_spec == RaggedTensorSpec((None,), np.int64, 0, np.int32)
    assert dataset.unbatch().unbatch().unbatch().element_spec == TensorSpec((), np.int64)
    assert dataset.unbatch().cardinality() == 2
    check_operator(lambda: dataset.unbatch().unbatch().unbatch(), ints(1, 2))
