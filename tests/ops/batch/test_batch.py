"""batch: consecutive elements stacked into arrays."""

import tracemalloc

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at
from support.pipelines import Pair, Record


def batches(*rows):
    return [np.array(row) for row in rows]


@pytest.mark.parametrize(
    ("size", "drop", "expected"),
    [
        (2, False, batches([0, 1], [2, 3], [4])),
        (2, True, batches([0, 1], [2, 3])),
        (5, True, batches([0, 1, 2, 3, 4])),
        (5, False, batches([0, 1, 2, 3, 4])),
        (9, False, batches([0, 1, 2, 3, 4])),
        (9, True, []),
        (1, False, batches([0], [1], [2], [3], [4])),
        (np.int64(4), False, batches([0, 1, 2, 3], [4])),
    ],
)
def test_stacks_consecutive_elements(size, drop, expected):
    check_operator(lambda: Dataset.range(5).batch(size, drop_remainder=drop), expected)
    assert_elements_equal(list(Dataset.range(5).map(int).batch(size, drop_remainder=drop)), expected)
    assert len(Dataset.range(5).batch(size, drop)) == len(expected)


def test_of_nothing_is_nothing():
    check_operator(lambda: Dataset.range(0).batch(3), [])


def test_takes_whole_batches_and_no_more():
    check_laziness(lambda numbers: numbers.batch(4), lambda k: 4 * k)
    check_laziness(lambda numbers: numbers.batch(4, drop_remainder=True), lambda k: 4 * k)
    check_laziness(lambda numbers: numbers.batch(3).batch(2), lambda k: 6 * k)


@pytest.mark.parametrize(
    ("first", "second", "batch"),
    [
        (1.5, 2.5, np.array([1.5, 2.5])),
        (True, False, np.array([True, False])),
        ("a", b"b\x00", np.array([b"a", b"b\x00"], object)),
        (np.float16(1), np.float16(2), np.array([1, 2], np.float16)),
        (np.uint64(2**63), np.uint64(1), np.array([2**63, 1], np.uint64)),
        (
            np.datetime64("2024-01-01", "D"),
            np.datetime64("2024-01-02", "D"),
            np.arange("2024-01-01", "2024-01-03", dtype="M8[D]"),
        ),
        (np.timedelta64(1, "s"), np.timedelta64(2, "s"), np.array([1, 2], "m8[s]")),
        (1j, 2j, np.array([1j, 2j])),
        ([1, 2], [3, 4], np.array([[1, 2], [3, 4]])),
        (["a", "b"], ["c\x00", "d"], np.array([[b"a", b"b"], [b"c\x00", b"d"]], object)),
        (np.zeros((0, 3), "f4"), np.ones((0, 3), "f4"), np.zeros((2, 0, 3), "f4")),
        (np.eye(2), np.eye(2).T, np.stack([np.eye(2)] * 2)),
        ((1, "a"), (2, "b"), (np.array([1, 2]), np.array([b"a", b"b"], object))),
        ((1,), (2,), (np.array([1, 2]),)),
        ((1, None), (2, None), (np.array([1, 2]), None)),
        ({"b": 1, "a": 2}, {"a": 3, "b": 4}, {"b": np.array([1, 4]), "a": np.array([2, 3])}),
        (Pair(1, (2, 3)), Pair(4, (5, 6)), Pair(np.array([1, 4]), (np.array([2, 5]), np.array([3, 6])))),
        (Record(1, 2), Record(3, 4), Record(np.array([1, 3]), np.array([2, 4]))),
        (
            RaggedTensor([1, 2, 3], [0, 1, 3]),
            RaggedTensor([4], [0, 0, 1]),
            RaggedTensor.from_nested_row_splits([1, 2, 3, 4], [[0, 2, 4], [0, 1, 3, 3, 4]]),
        ),
        (
            SparseTensor([[0]], [1], [3]),
            SparseTensor([[1], [2]], [2, 3], [3]),
            SparseTensor([[0, 0], [1, 1], [1, 2]], [1, 2, 3], [2, 3]),
        ),
    ],
    ids=repr,
)
def test_stacks_every_structure_and_kind(first, second, batch):
    pair = Dataset.from_generator(lambda: [first, second])
    check_operator(lambda: pair.batch(2), [batch])
    assert_elements_equal(list(pair.batch(2).unbatch()), list(pair))


def test_stacks_python_objects_into_an_object_array():
    (batch,) = Dataset.range(2).map(lambda x: {int(x)}).batch(2)
    assert batch.dtype == object
    assert batch.tolist() == [{0}, {1}]


def test_stacks_rows_of_source_arrays_of_every_dtype():
    for dtype in ("bool", "u1", "f2", "c8", "M8[s]", ">i4"):
        rows = np.arange(10).reshape(5, 2).astype(dtype)
        assert_elements_equal(list(Dataset.from_tensor_slices(rows).batch(3)), [rows[:3], rows[3:]])
    ragged = RaggedTensor.from_rows([[1], [2, 3], []])
    (batch,) = Dataset.from_tensor_slices({"r": ragged, "n": [1, 2, 3]}).filter(lambda e: len(e["r"]) == 1).batch(5)
    assert_elements_equal([batch], [{"r": RaggedTensor([1], [0, 1]), "n": np.array([1])}])


def test_knows_spec_and_cardinality():
    numbers = Dataset.range(5)
    assert numbers.batch(2).element_spec == TensorSpec((None,), np.int64)
    assert numbers.batch(2, drop_remainder=True).element_spec == TensorSpec((2,), np.int64)
    assert numbers.batch(2).batch(3).element_spec == TensorSpec((None, None), np.int64)
    assert numbers.enumerate().batch(2).element_spec == (TensorSpec((None,), np.int64),) * 2
    ragged = Dataset.from_tensors(RaggedTensor.from_rows([[1], [2, 3]]))
    assert ragged.batch(2).element_spec == RaggedTensorSpec((None, 2, None), np.int64, ragged_rank=2)
    sparse = Dataset.from_tensors(SparseTensor([[0]], [1.0], [3]))
    assert sparse.batch(2, True).element_spec == SparseTensorSpec((2, 3), np.float64)
    assert numbers.repeat().batch(2).cardinality() == -1
    assert numbers.filter(lambda x: True).batch(2).cardinality() == -2


# Elements that do not go together


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([np.zeros(2), np.zeros(2), np.zeros(3)], r"shape \(3,\) in element 2 but \(2,\) in element 1.*padded_batch"),
        ([np.zeros(2, "f4"), np.zeros(2, "f8"), np.zeros(2)], r"dtype float64 in element 1 but float32 in element 0"),
        ([1, 2.5, 3], "dtype float64 in element 1 but int64 in element 0"),
        ([np.zeros(2), 1.0, 2.0], "element 1"),
        ([1, "a", 2], "element 1"),
        ([b"a", np.array([b"a"], object), b"c"], "element 1"),
        ([RaggedTensor([1], [0, 1]), np.array([1]), np.array([1])], "element 1"),
        ([SparseTensor([[0]], [1], [3]), SparseTensor([[0]], [1.0], [3]), SparseTensor([[0]], [1], [3])], "dtype"),
        ([SparseTensor([[0]], [1], [3]), SparseTensor([[0, 0]], [1], [3, 1])] * 2, "rank 2 in element 1"),
        ([RaggedTensor([1], np.array([0, 1], t)) for t in ("i8", "i4", "i4")], "row_splits dtype int32 in element 1"),
    ],
)
def test_elements_that_do_not_stack_are_an_error_that_names_them(values, words):
    for dataset in (Dataset.from_generator(lambda: values), Dataset.range(3).map(lambda x: values[int(x)])):
        with pytest.raises(SpecError, match=words) as caught:
            next(iter(dataset.batch(3)))
        assert "batch(3)" in str(caught.value)
        assert "test_batch.py:" in str(caught.value)


def test_the_component_is_named():
    dataset = Dataset.range(3).map(lambda x: {"image": np.zeros(2 + (x > 0)), "label": x})
    with pytest.raises(SpecError, match="component 'image' has shape"):
        next(iter(dataset.batch(2)))


def test_a_batch_that_cannot_be_made_fails_alone():
    dataset = Dataset.range(6).map(lambda x: np.zeros(1 + (x == 3)))
    got = outcomes(iter(dataset.batch(2)))
    assert_elements_equal([got[0], got[2]], [np.zeros((2, 1))] * 2)
    assert isinstance(got[1], SpecError)
    assert "element 3" in str(got[1])
    check_operator(lambda: dataset.batch(2).map(len))


# Exceptions, as in tf.data without its map_and_batch fusion


@pytest.mark.parametrize(
    ("size", "bad", "expected"),
    [
        (2, 0, ["E", [1, 2], [3, 4], [5]]),
        (3, 0, ["E", [1, 2, 3], [4, 5]]),
        (2, 1, ["E", [2, 3], [4, 5]]),
        (3, 1, ["E", [2, 3, 4], [5]]),
        (2, 2, [[0, 1], "E", [3, 4], [5]]),
        (3, 2, ["E", [3, 4, 5]]),
        (4, 5, [[0, 1, 2, 3], "E"]),
    ],
)
def test_an_element_that_fails_takes_what_its_batch_had_so_far_with_it(size, bad, expected):
    expected = [ValueError(f"bad {bad}") if batch == "E" else np.array(batch) for batch in expected]
    check_operator(lambda: Dataset.range(6).map(fail_at(bad)).batch(size), expected)
    got = outcomes(iter(Dataset.range(6).map(fail_at(bad)).batch(size).map(lambda b: b).unbatch().batch(1).unbatch()))
    flat = [x for batch in expected for x in ([batch] if isinstance(batch, Exception) else batch)]
    assert_elements_equal(got, flat)


def test_element_numbers_in_errors_count_what_failed_before():
    dataset = Dataset.range(8).map(fail_at(1)).map(lambda x: np.zeros(1 + (x == 5)))
    errors = [e for e in outcomes(iter(dataset.batch(2))) if isinstance(e, SpecError)]
    assert len(errors) == 1
    assert "element 5" in str(errors[0])


@pytest.mark.parametrize("at", [3, 5])
def test_an_interrupt_loses_no_element(at):
    armed = [True]

    def interrupt(x):
        if x == at and armed:
            armed.clear()
            raise KeyboardInterrupt
        return x

    dataset = Dataset.range(6).filter(lambda x: x != 0).map(interrupt).batch(5)
    iterator, resumed = iter(dataset), iter(dataset)
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    resumed.load_state_dict(iterator.state_dict())  # the elements that wait for their batch are part of the state
    assert next(resumed).tolist() == [1, 2, 3, 4, 5]
    assert next(iterator).tolist() == [1, 2, 3, 4, 5]


# Memory


def test_batches_are_the_users_and_share_nothing_with_each_other():
    for dataset in (Dataset.range(6).batch(2), Dataset.range(6).map(int).batch(2), Dataset.range(6).batch(2).batch(2)):
        kept = list(dataset)
        before = [batch.copy() for batch in kept[1:]]
        kept[0][:] = -1
        assert_elements_equal(kept[1:], before)


def test_batches_of_rows_in_memory_are_read_only_slices_of_the_users_array():
    array = np.arange(84).reshape(21, 2, 2)
    rows = Dataset.from_tensor_slices({"a": array, "b": array[:, 0, 0]})
    chains = [
        (rows.batch(4), [slice(i, i + 4) for i in range(0, 21, 4)]),
        (rows.batch(4, drop_remainder=True).repeat(2), [slice(i, i + 4) for i in range(0, 20, 4)] * 2),
        (rows.skip(3).take(7).batch(3), [slice(3, 6), slice(6, 9), slice(9, 10)]),
        (rows.shard(5, 2).batch(2), [slice(2, 12, 5), slice(12, 21, 5)]),
        (rows.batch(4).prefetch(3), [slice(i, i + 4) for i in range(0, 21, 4)]),  # which asks for several at once
    ]
    for dataset, expected in chains:
        for batch, part in zip(dataset, expected, strict=True):
            for component, whole in ((batch["a"], array[part]), (batch["b"], array[part, 0, 0])):
                assert component.__array_interface__["data"][0] == whole.__array_interface__["data"][0]
                assert (component.shape, component.strides) == (whole.shape, whole.strides)
                assert not component.flags.writeable


def test_batches_of_rows_in_memory_take_no_memory():
    array = np.zeros((1000, 10_000))  # 80 MB
    tracemalloc.start()
    try:
        kept = list(Dataset.from_tensor_slices(array).batch(100))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(kept) == 10
    assert most < 1_000_000


def test_a_batch_of_one_does_not_share_memory_with_what_the_function_keeps():
    buffer = np.zeros(2)

    def fill(x):
        buffer[:] = x
        return buffer

    kept = list(Dataset.range(3).map(fill).batch(1))
    assert [batch.tolist() for batch in kept] == [[[0, 0]], [[1, 1]], [[2, 2]]]


# Arguments


@pytest.mark.parametrize("size", [0, -1])
def test_refuses_a_size_without_room(size):
    with pytest.raises(ValueError, match=rf"batch\(\): batch_size must be at least 1, got {size}"):
        Dataset.range(3).batch(size)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"batch_size": 2.0}, r"batch_size must be an int, got 2.0"),
        ({"batch_size": "2"}, "batch_size must be an int"),
        ({"batch_size": None}, "batch_size must be an int"),
        ({"batch_size": True}, "batch_size must be an int"),
        ({"batch_size": 2, "drop_remainder": 1}, "drop_remainder must be True or False"),
        ({"batch_size": 2, "drop_remainder": None}, "drop_remainder must be True or False"),
        ({"batch_size": 2, "num_parallel_calls": 1.5}, "num_parallel_calls must be an int"),
    ],
)
def test_refuses_arguments_of_the_wrong_type(keywords, words):
    with pytest.raises(TypeError, match=rf"batch\(\): {words}"):
        Dataset.range(3).batch(**keywords)


def test_parallel_batches_are_the_same():
    check_operator(lambda: Dataset.range(7).batch(3, num_parallel_calls=2), batches([0, 1, 2], [3, 4, 5], [6]))


def test_rows_of_a_ragged_tensor_become_ragged_again():
    for splits in (np.int32, np.int64):
        ragged = RaggedTensor(np.arange(5), np.array([0, 2, 2, 3, 5], splits))
        rows = Dataset.from_tensor_slices(ragged)
        check_operator(lambda rows=rows: rows.batch(3), [ragged[:3], ragged[3:]])
        (batch,) = rows.filter(lambda row: len(row) > 0).batch(9)
        assert_elements_equal([batch], [RaggedTensor(np.arange(5), np.array([0, 2, 3, 5], splits))])
        assert_elements_equal(list(rows.batch(2).unbatch().batch(4)), [ragged])
        assert rows.batch(2).element_spec == RaggedTensorSpec((None, None), np.int64, 1, splits)


def test_rows_of_a_ragged_tensor_that_a_function_has_seen_are_arrays():
    rows = Dataset.from_tensor_slices(RaggedTensor(np.arange(4), [0, 2, 4])).map(lambda row: row + 1)
    check_operator(lambda: rows.batch(2), [np.array([[1, 2], [3, 4]])])


def test_a_batch_of_sparse_tensors_has_room_for_the_largest():
    parts = [SparseTensor([[0, 1]], [5], [1, 2]), SparseTensor([[2, 0]], [6], [3, 1])]
    expected = SparseTensor([[0, 0, 1], [1, 2, 0]], [5, 6], [2, 3, 2])
    check_operator(lambda: Dataset.range(2).map(lambda i: parts[int(i)]).batch(2), [expected])


@pytest.mark.parametrize(
    "arguments", [{"num_parallel_calls": 0}, {"num_parallel_calls": -2}, {"num_parallel_calls": 2.0}]
)
def test_refuses_a_parallelism_that_is_none(arguments):
    with pytest.raises((TypeError, ValueError), match=r"batch\(\): num_parallel_calls must be"):
        Dataset.range(3).batch(2, **arguments)
