"""cache: the elements of the first full pass, for the passes after it."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


def counting(calls, stop=4):
    return Dataset.range(stop).map(lambda x: calls.append(int(x)) or x)


def test_gives_the_same_elements():
    check_operator(lambda: Dataset.range(5).map(lambda x: x * 2).cache(), ints(0, 2, 4, 6, 8))
    check_operator(lambda: Dataset.range(0).cache(), [])
    check_operator(lambda: Dataset.range(3).map(str).cache().repeat(3), [b"0", b"1", b"2"] * 3)
    check_operator(lambda: Dataset.range(5).map(lambda x: x * 2).cache().repeat(2).batch(4))


def test_runs_its_input_once():
    calls = []
    dataset = counting(calls).cache()
    assert list(dataset) == list(dataset) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]
    assert list(dataset.batch(2).repeat(2).unbatch()) == [0, 1, 2, 3] * 2
    assert calls == [0, 1, 2, 3]


def test_repeat_reads_the_cache_within_one_iterator():
    calls = []
    assert len(list(counting(calls).cache().repeat(5))) == 20
    assert calls == [0, 1, 2, 3]


def test_a_partial_pass_leaves_no_cache():
    calls = []
    dataset = counting(calls).cache()
    assert list(dataset.take(2)) == [0, 1]
    iterator = iter(dataset)
    for _ in range(4):
        next(iterator)
    iterator.close()  # the end was never seen
    calls.clear()
    assert list(dataset) == [0, 1, 2, 3]
    assert calls == [0, 1, 2, 3]


def test_two_iterators_at_once_each_see_everything():
    calls = []
    dataset = counting(calls).cache()
    one, two = iter(dataset), iter(dataset)
    pairs = list(zip(one, two, strict=True))
    assert pairs == [(i, i) for i in range(4)]
    assert list(dataset) == [0, 1, 2, 3]
    assert len(calls) == 8


def test_a_rebuilt_pipeline_has_a_cache_of_its_own():
    calls = []
    list(counting(calls).cache())
    list(counting(calls).cache())
    assert len(calls) == 8


def test_takes_one_element_for_each():
    check_laziness(lambda numbers: numbers.cache(), lambda k: k)


def test_keeps_one_random_order():
    dataset = Dataset.range(30).shuffle(30).cache()
    assert list(dataset) == list(dataset)
    check_operator(lambda: Dataset.range(6).shuffle(6, seed=1).cache().repeat(3))
    check_operator(lambda: Dataset.range(6).cache().shuffle(6, seed=1).repeat(3))


def test_of_two_first_passes_at_a_time_the_one_that_ends_first_is_kept():
    dataset = Dataset.range(30).shuffle(30).cache()
    slow, quick = iter(dataset), iter(dataset)
    begun = next(slow)
    kept = list(quick)
    assert [begun, *slow] != kept
    assert list(dataset) == kept


def test_of_nothing_is_found_empty_once():
    calls = []

    def source():
        calls.append(1)
        return iter(())

    dataset = Dataset.from_generator(source).cache()
    assert list(dataset) == list(dataset) == []
    assert calls == [1]


def test_an_exception_is_raised_in_the_first_pass_and_left_out_after_it_as_in_tf_data():
    dataset = Dataset.range(4).map(fail_at(1)).cache()
    bad = ValueError("bad 1")
    assert_elements_equal(outcomes(iter(dataset)), [np.int64(0), bad, np.int64(2), np.int64(3)])
    assert_elements_equal(outcomes(iter(dataset)), ints(0, 2, 3))
    check_operator(lambda: Dataset.range(3).map(fail_at(1)).cache(), [np.int64(0), bad, np.int64(2)])
    check_operator(
        lambda: Dataset.range(3).map(fail_at(1)).cache().repeat(2), [np.int64(0), bad, np.int64(2), *ints(0, 2)]
    )


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize(
    "element", [np.zeros(2), (np.zeros((2, 2)), 1), {"a": np.array([b"x", b"y"], object)}], ids=repr
)
def test_arrays_come_out_read_only_in_every_pass(passes, element):
    dataset = Dataset.range(2).map(lambda x: element).cache()
    for _ in range(passes):
        list(dataset)
    for found in dataset:
        array = found[0] if isinstance(found, tuple) else found["a"] if isinstance(found, dict) else found
        with pytest.raises(ValueError, match="read-only"):
            array[:] = array[::-1].copy()


@pytest.mark.parametrize(
    ("value", "arrays"),
    [
        (lambda: RaggedTensor(np.zeros(3), [0, 1, 3]), lambda value: [value.values]),
        (lambda: SparseTensor([[0]], np.zeros(1), [3]), lambda value: [value.values, value.indices]),
    ],
    ids=["ragged", "sparse"],
)
def test_ragged_and_sparse_values_cannot_be_changed_through_an_element(value, arrays):
    dataset = Dataset.range(2).map(lambda x: value()).cache()
    for _ in range(3):
        for element in dataset:
            assert_elements_equal([element], [value()])
            for array in arrays(element):
                if array.flags.writeable:
                    array[:] = 7


def test_what_is_made_of_cached_elements_cannot_change_them():
    dataset = Dataset.range(4).map(lambda x: np.full(2, x)).cache()
    shuffled = dataset.shuffle(3, seed=1)
    for consumer in (dataset.batch(2), dataset.batch(2).unbatch(), dataset.take(3), dataset.map(lambda x: x), shuffled):
        for _ in range(2):
            for element in consumer:
                if element.flags.writeable:
                    element[:] = -1
    assert [row.tolist() for row in dataset] == [[i, i] for i in range(4)]


def test_what_the_function_keeps_cannot_change_the_cache():
    buffer = np.zeros(2)

    def fill(x):
        buffer[:] = x
        return buffer

    dataset = Dataset.range(3).map(fill).cache()
    for _ in range(2):
        assert [row.tolist() for row in dataset] == [[0, 0], [1, 1], [2, 2]]


def test_knows_spec_and_cardinality():
    assert Dataset.range(5).cache().cardinality() == 5
    assert Dataset.range(5).repeat().cache().cardinality() == -1
    assert Dataset.range(5).filter(lambda x: True).cache().cardinality() == -2
    assert Dataset.range(5).batch(2).cache().element_spec == Dataset.range(5).batch(2).element_spec


@pytest.mark.parametrize("position", range(9))
@pytest.mark.parametrize("warm", [False, True])
def test_resumes_with_and_without_a_warm_cache(position, warm):
    def make():
        return Dataset.range(4).shuffle(4, seed=3).map(lambda x: x + 1).cache().repeat(2)

    iterator = iter(make())
    for _ in range(position):
        next(iterator)
    state = iterator.state_dict()
    rest = list(iterator)
    dataset = make()
    if warm:
        assert len(list(dataset)) == 8
    resumed = iter(dataset)
    resumed.load_state_dict(state)
    assert_elements_equal(list(resumed), rest)


# How the elements lie in memory.


def arrays_of(x):
    return np.full((2, 3), x, ">f4"), x, b"%d" % x, np.full(int(x) % 3, x), np.array([b"%d" % x], object)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_elements_of_every_kind_are_the_same_in_every_pass(size):
    dataset = Dataset.range(50).map(arrays_of).cache()
    assert sum(1 for _ in dataset.ragged_batch(size)) == -(-50 // size)
    assert_elements_equal(list(dataset), list(Dataset.range(50).map(arrays_of)))
    assert next(iter(dataset))[0].dtype == np.dtype(">f4")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_batches_of_a_full_cache_are_parts_of_one_array(monkeypatch, size, known):
    monkeypatch.setattr("dataset.ops.cache.cache._BLOCK_BYTES", 1000)  # several blocks
    source = Dataset.range(200) if known else Dataset.range(200).filter(lambda x: bool(x >= 0))
    dataset = source.map(lambda x: np.arange(x, x + 10)).cache()
    for _ in dataset.batch(size) if size > 1 else dataset:
        pass
    first, second, *others = dataset.batch(30)
    assert first.base is not None
    assert second.__array_interface__["data"][0] - first.__array_interface__["data"][0] == first.nbytes
    assert not first.flags.writeable
    rows = np.concatenate([first, second, *others])
    np.testing.assert_array_equal(rows, np.arange(200)[:, None] + np.arange(10))


def changing(x):
    if x < 60:
        return np.full(3, x), np.int64(x)
    return np.full(4, x), np.int64(x) if x < 80 else np.float32(x)


@pytest.mark.parametrize("count", [61, 79, 100])
@pytest.mark.parametrize("size", [1, 7])
def test_elements_that_become_others(monkeypatch, count, size):
    monkeypatch.setattr("dataset.ops.cache.cache._BLOCK_BYTES", 200)
    dataset = Dataset.range(count).map(changing).cache()
    first = list(dataset if size == 1 else dataset.prefetch(1).window(size).flat_map(lambda a, b: Dataset.zip((a, b))))
    assert_elements_equal(first, list(Dataset.range(count).map(changing)))
    assert_elements_equal(list(dataset), first)


def test_fewer_elements_than_there_should_be():
    kept = Dataset.range(600).map(lambda x: np.full(1000, 10 // (500 - int(x)))).cache()
    assert len(list(kept.ignore_errors())) == 599
    assert_elements_equal(list(kept), [np.full(1000, 10 // (500 - x)) for x in range(600) if x != 500])


def test_no_memory_is_taken_for_elements_that_never_come():
    endless = Dataset.range(10**13).map(lambda x: np.full(1000, x)).cache()
    assert [row[0] for row in endless.take(2000).skip(1999)] == [1999]


def test_columns_that_come_in_arrays_and_one_by_one():
    """Such as of a function that is tried on columns only after a while."""
    images = np.arange(4000 * 4).reshape(4000, 2, 2)
    dataset = Dataset.from_tensor_slices(images).map(lambda x: x * 2).cache()
    for _ in dataset:
        pass
    first, second, *_ = dataset.batch(1000)
    assert second.__array_interface__["data"][0] - first.__array_interface__["data"][0] == first.nbytes
    np.testing.assert_array_equal(np.concatenate(list(dataset.batch(1000))), images * 2)


def test_one_array_in_many_elements_is_kept_once():
    large = np.zeros(1 << 20)
    dataset = Dataset.from_tensors(large).repeat(100).cache()
    tracemalloc.start()
    try:
        for _ in range(2):
            assert sum(1 for _ in dataset) == 100
        assert tracemalloc.get_traced_memory()[1] < 10 * large.nbytes
    finally:
        tracemalloc.stop()


PEAK = """
import resource
import numpy as np
from dataset import Dataset

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

dataset = Dataset.range(100_000).map(lambda x: np.full(128, x)).cache()
next(iter(dataset))
before = peak()
for _ in dataset:
    pass
print((peak() - before) / (100_000 * 128 * 8))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
def test_a_pass_that_fills_takes_no_second_place_for_its_elements():
    ran = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True, timeout=120)
    assert float(ran.stdout) < 1.6
