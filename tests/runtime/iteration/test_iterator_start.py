"""Tests of ``iterator.start()``: the first element is computed before it is requested, and nothing else changes."""

import gc
import threading
import weakref

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.errors import ClosedError
from support.op_cases import fail_at
from support.overlap import WAIT, Counter

PIPELINES = {
    "plain": lambda source: Dataset.range(6).map(source),
    "batches": lambda source: Dataset.range(6).map(source).batch(1),
    "prefetch": lambda source: Dataset.range(6).map(source).prefetch(3),
    "autotuned": lambda source: Dataset.range(6).map(source, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE),
    "interleave": lambda source: Dataset.range(6).interleave(
        lambda x: Dataset.from_tensors(x).map(source), num_parallel_calls=2
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_first_element_is_computed_before_it_is_requested_and_nothing_is_lost(name):
    source = Counter(1)
    iterator = iter(PIPELINES[name](lambda x: source.add() or x))
    for _ in range(3):
        iterator.start()
    assert source.reached.wait(WAIT)
    first = next(iterator)
    if name == "plain":
        assert source.count == 1  # it reads no further
    iterator.start()
    assert [int(x) if name != "batches" else int(x[0]) for x in (first, *iterator)] == list(range(6))
    assert source.count == iterator.stats().elements == 6


@pytest.mark.parametrize("pulls", [0, 1, 2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_state_saved_at_any_time_is_exact(pulls, shuffle):
    dataset = Dataset.range(50).map(str)
    dataset = dataset.shuffle(10, seed=3).prefetch(2) if shuffle else dataset
    iterator, resumed = iter(dataset), iter(dataset)
    iterator.start()
    taken = [next(iterator) for _ in range(pulls)]
    resumed.load_state_dict(iterator.state_dict())
    resumed.start()
    rest = list(resumed)
    assert rest == list(iterator)
    assert sorted(taken + rest) == sorted(str(x).encode() for x in range(50))


def test_an_element_that_fails_raises_in_its_place():
    iterator = iter(Dataset.range(3).map(fail_at(0)))
    iterator.start()
    with pytest.raises(ValueError, match="bad 0"):
        next(iterator)
    assert [int(x) for x in iterator] == [1, 2]


def test_closing_and_dropping_end_the_thread():
    for close in (True, False):
        entered, leave = threading.Event(), threading.Event()

        def waits(x, entered=entered, leave=leave):
            entered.set()
            assert leave.wait(60)
            return x

        iterator = iter(Dataset.range(6).map(waits))
        iterator.start()
        assert entered.wait(60)
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "dataset-first element"]
        if close:
            closing = threading.Thread(target=iterator.close)
            closing.start()
            leave.set()
            closing.join(60)
            with pytest.raises(ClosedError):
                iterator.start()
        else:
            reference = weakref.ref(iterator)
            del iterator
            gc.collect()
            assert reference() is None
            leave.set()
        thread.join(60)
        assert not thread.is_alive()
