"""flat_map: a dataset for each element, one after the other. tests/oracle compares elements and failures."""

import sys

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SpecError, TFRecordDataset, io
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import ints
from support.pipelines import unoptimized


def test_returns_the_elements_of_each_dataset_in_turn():
    check_operator(lambda: Dataset.range(4).flat_map(Dataset.range), ints(0, 0, 1, 0, 1, 2))
    check_operator(lambda: Dataset.range(3).flat_map(lambda n: Dataset.from_tensors(n).repeat()).take(3), ints(0, 0, 0))


def test_opens_a_dataset_only_when_its_elements_are_requested_and_reads_no_generator_ahead():
    check_laziness(
        lambda numbers: numbers.flat_map(lambda n: Dataset.from_tensors(n).repeat(3)), lambda k: -(-k // 3), size=15
    )
    taken = []

    def generate(n):
        for i in range(4):
            taken.append((int(n), i))
            yield i

    dataset = Dataset.range(2).flat_map(lambda n: Dataset.from_generator(generate, args=(n,)))
    assert [int(x) for x in dataset.take(6)] == [0, 1, 2, 3, 0, 1]
    assert taken == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]


def test_without_elements_its_spec_is_an_error():
    with pytest.raises(SpecError, match="none"):
        _ = Dataset.range(0).flat_map(Dataset.range).element_spec


def ragged(n):
    return RaggedTensor.from_rows([[1] * int(n), [2], [3, 3]])


@pytest.mark.parametrize(
    "make",
    [
        lambda n: Dataset.from_tensors((n, {"text": b"a"})),
        lambda n: Dataset.from_tensor_slices({"a": np.arange(n), "b": np.arange(2 * n).reshape(n, 2)}),
        lambda n: Dataset.from_tensor_slices(["a", "bc", "def"]).batch(3),
        lambda n: Dataset.from_tensor_slices(np.arange(6).reshape(3, 2)).batch(n + 1, drop_remainder=True),
        lambda n: Dataset.from_tensor_slices(ragged(n)).batch(4),
        lambda n: Dataset.zip(Dataset.from_tensors(n), Dataset.from_tensor_slices([n]).batch(2)),
        lambda n: Dataset.zip({"a": Dataset.from_tensors(n), "b": Dataset.from_tensor_slices([n, n])}),
        lambda n: Dataset.from_tensor_slices(np.arange(0)).batch(2),
    ],
)
def test_elements_in_memory_are_the_same_as_those_of_operators(make):
    one_by_one = outcomes(iter(Dataset.range(4).interleave(make, cycle_length=1)))
    check_operator(lambda: Dataset.range(4).flat_map(make), one_by_one)


FEATURES = {"values": io.FixedLenFeature((3,), np.int64), "name": io.FixedLenFeature((), bytes)}
OFFSETS = {"now": 1}


def parsed(record):
    example = io.parse_single_example(record, FEATURES)
    return example["values"] * 2 - 1, example["name"]


def write_records(path, *, bad=()):
    with io.TFRecordWriter(path) as writer:
        for i in range(1200):
            writer.write(b"bad" if i in bad else io.encode_example({"values": [i, 1, 2], "name": b"%d" % i}))
    return str(path)


def calls_of(function, dataset):
    """Return how often a function is called in this thread while the dataset is read."""
    calls = []

    def note(frame, event, _):
        if event == "call" and frame.f_code is function.__code__:
            calls.append(1)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        list(dataset)
    finally:
        sys.setprofile(before)
    return len(calls)


@pytest.mark.filterwarnings("default")  # as errors, they keep integers from being computed on columns
def test_functions_in_a_dataset_of_many_elements_run_on_columns(tmp_path):
    path = write_records(tmp_path / "a")
    files = Dataset.from_tensors(path).flat_map(lambda path: TFRecordDataset(path).map(parsed))
    assert calls_of(parsed, files.batch(100)) < 600  # the first ones are single, to compare them
    assert calls_of(parsed, unoptimized(files.batch(100))) == 1200


@pytest.mark.parametrize(
    "read",
    [
        lambda files, inner: files.flat_map(inner),
        lambda files, inner: files.interleave(inner, 2, 7),
        lambda files, inner: files.interleave(inner, 2, num_parallel_calls=2),
    ],
)
@pytest.mark.filterwarnings("default")
def test_functions_on_columns_in_a_dataset_give_the_same_elements_errors_and_states(read, tmp_path):
    paths = [write_records(tmp_path / "a", bad={3, 700, 1199}), write_records(tmp_path / "b")]

    def inner(path):
        return TFRecordDataset(path).map(parsed)

    found = check_operator(lambda: read(Dataset.from_tensor_slices(paths), inner), positions=4)
    assert [isinstance(element, Exception) for element in found].count(True) == 3


@pytest.mark.filterwarnings("default")
def test_a_function_in_a_dataset_sees_a_variable_that_changes():
    def shifted(x):
        return x + OFFSETS["now"]

    OFFSETS["now"] = 1
    iterator = iter(Dataset.range(1).flat_map(lambda _: Dataset.range(4000).map(shifted)).batch(1000))
    first = next(iterator)
    OFFSETS["now"] = 10_000
    rest = list(iterator)
    assert_elements_equal(first, np.arange(1, 1001))
    assert_elements_equal(rest[-1], np.arange(13_000, 14_000))
