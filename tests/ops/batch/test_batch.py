"""batch: consecutive elements stacked into arrays. tests/oracle compares components, sizes and failures."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, SpecError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.pipelines import Record
from support.states import rest_of


def batches(*rows):
    return [np.array(row) for row in rows]


@pytest.mark.parametrize(
    ("count", "arguments", "expected"),
    [
        (5, {"batch_size": 2}, batches([0, 1], [2, 3], [4])),
        (5, {"batch_size": np.int64(2), "drop_remainder": True}, batches([0, 1], [2, 3])),
        (7, {"batch_size": 3, "num_parallel_calls": 2}, batches([0, 1, 2], [3, 4, 5], [6])),
    ],
)
def test_stacks_consecutive_elements(count, arguments, expected):
    check_operator(lambda: Dataset.range(count).batch(**arguments), expected)
    assert_elements_equal(list(Dataset.range(count).map(int).batch(**arguments)), expected)


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.batch(4), lambda k: 4 * k)
    check_laziness(lambda numbers: numbers.batch(4, drop_remainder=True), lambda k: 4 * k)
    check_laziness(lambda numbers: numbers.batch(3).batch(2), lambda k: 6 * k)


@pytest.mark.parametrize(
    ("first", "second", "batch"),
    [
        (np.uint64(2**63), np.uint64(1), np.array([2**63, 1], np.uint64)),
        (np.timedelta64(1, "s"), np.timedelta64(2, "s"), np.array([1, 2], "m8[s]")),
        ((1, None), (2, None), (np.array([1, 2]), None)),
        (Record(1, 2), Record(3, 4), Record(np.array([1, 3]), np.array([2, 4]))),
    ],
    ids=repr,
)
def test_stacks_values_that_tf_data_does_not_have(first, second, batch):
    pair = Dataset.from_generator(lambda: [first, second])
    check_operator(lambda: pair.batch(2), [batch])
    assert_elements_equal(list(pair.batch(2).unbatch()), list(pair))


def test_stacks_objects_dates_and_rows_of_ragged_tensors():
    (batch,) = Dataset.range(2).map(lambda x: {int(x)}).batch(2)
    assert (batch.dtype, batch.tolist()) == (object, [{0}, {1}])
    for dtype in ("M8[s]", "g"):
        rows = np.arange(10).reshape(5, 2).astype(dtype)
        assert_elements_equal(list(Dataset.from_tensor_slices(rows).batch(3)), [rows[:3], rows[3:]])
    ragged = RaggedTensor(np.arange(5), np.array([0, 2, 2, 3, 5], np.int32))
    check_operator(lambda: Dataset.from_tensor_slices(ragged).batch(3), [ragged[:3], ragged[3:]])


# Elements that cannot be stacked


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([np.zeros(2), np.zeros(2), np.zeros(3)], r"shape \(3,\) in element 2 but \(2,\) in element 1.*padded_batch"),
        ([np.zeros(2, "f4"), np.zeros(2, "f8"), np.zeros(2)], r"dtype float64 in element 1 but float32 in element 0"),
        ([1, 2.5, 3], "dtype float64 in element 1 but int64 in element 0"),
        ([RaggedTensor([1], [0, 1]), np.array([1]), np.array([1])], "element 1"),
        ([SparseTensor([[0]], [1], [3]), SparseTensor([[0]], [1.0], [3]), SparseTensor([[0]], [1], [3])], "dtype"),
        ([SparseTensor([[0]], [1], [3]), SparseTensor([[0, 0]], [1], [3, 1])] * 2, "rank 2 in element 1"),
        ([RaggedTensor([1], np.array([0, 1], t)) for t in ("i8", "i4", "i4")], "row_splits dtype int32 in element 1"),
        ([RaggedTensor([one], [0, 1]) for one in (1, 1.0, 1)], "dtype float64 in element 1"),
        ([RaggedTensor(np.zeros((1, n)), [0, 1]) for n in (2, 3, 3)], r"inner shape \(3,\) in element 1"),
        ([np.zeros(2), b"a", b"a"], "type bytes in element 1 but ndarray"),
        ([1, np.zeros(1, np.int64), 1], "type ndarray in element 1 but int64"),
    ],
)
def test_elements_that_do_not_stack_are_an_error_that_names_them(values, words):
    for dataset in (Dataset.from_generator(lambda: values), Dataset.range(3).map(lambda x: values[int(x)])):
        with pytest.raises(SpecError, match=words) as caught:
            next(iter(dataset.batch(3)))
        assert "batch(3)" in str(caught.value)
        assert "test_batch.py:" in str(caught.value)


def test_a_batch_that_cannot_be_stacked_fails_alone_and_names_the_component():
    dataset = Dataset.range(6).map(lambda x: {"image": np.zeros(1 + (x == 3)), "label": x})
    got = check_operator(lambda: dataset.batch(2))
    assert [batch["label"].tolist() for batch in (got[0], got[2])] == [[0, 1], [4, 5]]
    assert isinstance(got[1], SpecError)
    assert "component 'image' has shape (2,) in element 3" in str(got[1])


def test_an_element_that_fails_drops_its_batch_so_far_and_counts_in_later_errors():
    numbers = Dataset.range(6).map(fail_at(1))
    check_operator(lambda: numbers.batch(3), [ValueError("bad 1"), *batches([2, 3, 4], [5])])
    check_operator(lambda: Dataset.range(6).map(fail_at(5)).batch(4), [*batches([0, 1, 2, 3]), ValueError("bad 5")])
    shapes = Dataset.range(8).map(fail_at(1)).map(lambda x: np.zeros(1 + (x == 5)))
    (error,) = [outcome for outcome in outcomes(iter(shapes.batch(2))) if isinstance(outcome, SpecError)]
    assert "element 5" in str(error)


def test_an_interrupt_loses_no_element():
    armed = [3, 5]

    def interrupt(x):
        if x in armed:
            armed.remove(x)
            raise KeyboardInterrupt
        return x

    dataset = Dataset.range(6).filter(lambda x: x != 0).map(interrupt).batch(5)
    iterator = iter(dataset)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            next(iterator)
    (resumed,) = rest_of(dataset, iterator.state_dict())  # the elements that wait for their batch are part of it
    assert resumed.tolist() == next(iterator).tolist() == [1, 2, 3, 4, 5]


# Memory


def test_batches_of_rows_in_memory_are_read_only_slices_of_the_users_array():
    array = np.arange(84).reshape(21, 2, 2)
    rows = Dataset.from_tensor_slices({"a": array, "b": array[:, 0, 0]})
    chains = [
        (rows.batch(4, drop_remainder=True).repeat(2), [slice(i, i + 4) for i in range(0, 20, 4)] * 2),
        (rows.skip(3).take(7).batch(3), [slice(3, 6), slice(6, 9), slice(9, 10)]),
        (rows.shard(5, 2).batch(2), [slice(2, 12, 5), slice(12, 21, 5)]),
        (rows.batch(4).prefetch(3), [slice(i, i + 4) for i in range(0, 21, 4)]),  # which requests several at once
    ]
    for dataset, expected in chains:
        for batch, part in zip(dataset, expected, strict=True):
            for component, whole in ((batch["a"], array[part]), (batch["b"], array[part, 0, 0])):
                assert component.__array_interface__["data"][0] == whole.__array_interface__["data"][0]
                assert (component.shape, component.strides) == (whole.shape, whole.strides)
                assert not component.flags.writeable
