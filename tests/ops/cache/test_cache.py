"""cache: the elements of the first full pass, for the passes after it. tests/oracle compares passes with tf.data."""

import itertools
import tracemalloc
from collections import deque

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, RaggedTensor, SparseTensor
from dataset.testing import assert_elements_equal, check_laziness, check_operator
from support.op_cases import fail_at, ints


def counting(calls, stop=4):
    return Dataset.range(stop).map(lambda x: calls.append(int(x)) or x)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Dataset.range(3).map(str).cache().repeat(3), [b"0", b"1", b"2"] * 3),
        (lambda: Dataset.range(6).shuffle(6, seed=1).cache().repeat(3).batch(4), None),
        # An element that fails is left out of later passes.
        (lambda: Dataset.range(3).map(fail_at(1)).cache().repeat(2), [*ints(0), ValueError("bad 1"), *ints(2, 0, 2)]),
    ],
)
def test_keeps_the_contract_of_operators(make, expected):
    check_operator(make, expected)


def test_takes_one_element_for_each():
    check_laziness(lambda numbers: numbers.cache(), lambda k: k)


def test_runs_its_input_once():
    calls = []
    dataset = counting(calls).cache()
    assert list(dataset) == list(dataset) == [0, 1, 2, 3]
    assert list(dataset.batch(2).repeat(2).unbatch()) == [0, 1, 2, 3] * 2
    assert calls == [0, 1, 2, 3]
    assert len(list(counting(calls).cache().repeat(5))) == 20  # a rebuilt pipeline has a cache of its own
    assert calls == [0, 1, 2, 3] * 2


def test_two_first_passes_at_a_time_return_all_elements_and_the_first_to_end_is_kept():
    dataset = Dataset.range(30).shuffle(30).cache()
    slow, quick = iter(dataset), iter(dataset)
    first = list(itertools.islice(slow, 10))
    kept = list(quick)
    others = first + list(slow)
    assert others != kept
    assert sorted(others) == sorted(kept) == list(range(30))
    assert list(dataset) == kept == list(dataset)


def test_arrays_are_read_only_in_every_pass():
    def make(x):
        sparse = SparseTensor([[0]], np.zeros(1), [3])
        return np.zeros(2), np.array([b"x", b"y"], object), RaggedTensor(np.zeros(3), [0, 1, 3]), sparse

    dataset = Dataset.range(2).map(make).cache()
    for array, text, ragged, sparse in [*dataset, *dataset]:
        for part in (array, text, ragged.values, sparse.values, sparse.indices):
            assert not part.flags.writeable


# How the elements are stored in memory


def arrays_of(x):
    return np.full((2, 3), x, "f4"), x, b"%d" % x, np.full(int(x) % 3, x), np.array([b"%d" % x], object)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_elements_of_every_kind_are_the_same_in_every_pass(size):
    dataset = Dataset.range(50).map(arrays_of).cache()
    assert sum(1 for _ in dataset.ragged_batch(size)) == -(-50 // size)
    assert_elements_equal(list(dataset), list(Dataset.range(50).map(arrays_of)))


def assert_in_one_array(batches):
    first, second = batches[:2]
    assert first.base is not None
    assert second.__array_interface__["data"][0] - first.__array_interface__["data"][0] == first.nbytes
    assert not first.flags.writeable


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_batches_of_a_full_cache_are_parts_of_one_array(monkeypatch, size, known):
    monkeypatch.setattr("dataset.ops.cache.cache.STEP_BYTES", 1000)  # several blocks
    source = Dataset.range(200) if known else Dataset.range(200).filter(lambda x: bool(x >= 0))
    dataset = source.map(lambda x: np.arange(x, x + 10)).cache()
    for _ in dataset.batch(size) if size > 1 else dataset:
        pass
    batches = list(dataset.batch(30))
    assert_in_one_array(batches)
    np.testing.assert_array_equal(np.concatenate(batches), np.arange(200)[:, None] + np.arange(10))


@pytest.mark.filterwarnings("default")  # those that are errors keep the function from columns
@pytest.mark.parametrize("calls", [None, 2, AUTOTUNE])
@pytest.mark.parametrize("size", [1, 100])
def test_columns_that_are_computed_at_once_and_one_by_one_are_in_one_array(size, calls):
    """As of a function that is called with columns only after a while."""
    images = np.arange(4000 * 4.0).reshape(4000, 2, 2)
    dataset = Dataset.from_tensor_slices(images).map(lambda x: x * 2.0, num_parallel_calls=calls).cache()
    for _ in dataset.batch(size) if size > 1 else dataset:
        pass
    batches = list(dataset.batch(1000))
    assert_in_one_array(batches)
    np.testing.assert_array_equal(np.concatenate(batches), images * 2)


def changing(x):
    if x < 60:
        return np.full(3, x), np.int64(x)
    return np.full(4, x), np.int64(x) if x < 80 else np.float32(x)


@pytest.mark.parametrize("count", [61, 79, 100])
@pytest.mark.parametrize("size", [1, 7])
def test_elements_whose_shape_and_dtype_change(monkeypatch, count, size):
    monkeypatch.setattr("dataset.ops.cache.cache.STEP_BYTES", 200)
    dataset = Dataset.range(count).map(changing).cache()
    first = list(dataset if size == 1 else dataset.prefetch(1).window(size).flat_map(lambda a, b: Dataset.zip((a, b))))
    assert_elements_equal(first, list(Dataset.range(count).map(changing)))
    assert_elements_equal(list(dataset), first)


def test_no_memory_is_allocated_for_elements_that_do_not_come():
    endless = Dataset.range(10**13).map(lambda x: np.full(1000, x)).cache()
    assert [row[0] for row in endless.take(2000).skip(1999)] == [1999]


def peak_bytes(action):
    """Return how much memory is allocated at most during an action."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_one_array_in_many_elements_is_stored_once():
    large = np.zeros(1 << 20)
    dataset = Dataset.from_tensors(large).repeat(100).cache()
    for _ in range(2):
        assert peak_bytes(lambda: deque(dataset, 0)) < 10 * large.nbytes


def test_the_first_pass_stores_its_elements_only_once():
    dataset = Dataset.range(8000).map(lambda x: np.full(1000, x)).cache()
    assert peak_bytes(lambda: deque(dataset, 0)) < 1.6 * 8000 * 1000 * 8
