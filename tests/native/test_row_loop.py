"""Tests of the row loop: it does the same as its twin, and it copies what the user keeps."""

import _thread
import gc
import signal
import sys
import traceback

import numpy as np
import pytest

from dataset import Dataset, TensorSpec
from dataset.native import row_loop
from dataset.runtime.chunks.ownership import collect
from dataset.testing import assert_elements_equal, outcomes
from support.row_results import Point, give, results, without_row_loop
from support.seeds import rng

FORMS = {
    "a map": lambda made, size: Dataset.range(len(made)).map(lambda i: give(made[i])).prefetch(1).take(len(made)),
    "a batch": lambda made, size: Dataset.range(len(made)).map(lambda i: give(made[i])).batch(size),
    "a padded batch": lambda made, size: Dataset.range(len(made)).map(lambda i: give(made[i])).padded_batch(size),
    "a shuffle": lambda made, size: Dataset.range(len(made)).map(lambda i: give(made[i])).shuffle(size, seed=1),
    "a generator": lambda made, size: Dataset.from_generator(lambda: map(give, made)).shuffle(size, seed=1),
    "batches of a generator": lambda made, size: Dataset.from_generator(lambda: map(give, made)).batch(size),
    "threads": lambda made, size: (
        Dataset.range(len(made)).map(lambda i: give(made[i]), num_parallel_calls=2).batch(size)
    ),
}

with_loop = pytest.mark.skipif(row_loop.row_loop() is None, reason="the row loop is not in use")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("trial", range(40))
def test_elements_are_those_of_the_twin(form, trial):
    draws = rng("row loop", form, trial)
    made, size = results(draws, draws.randrange(2, 40)), draws.randrange(2, 12)
    found = outcomes(iter(FORMS[form](made, size)))
    with without_row_loop():
        expected = outcomes(iter(FORMS[form](made, size)))
    assert_elements_equal(found, expected)


SIGNATURES = {
    "sizes": (TensorSpec((None,), np.float64), lambda i: np.zeros(3 + (i == 6))),
    "a size": (TensorSpec((3,), np.float64), lambda i: np.zeros(3 + (i == 6))),
    "a list": (TensorSpec((None,), np.int64), lambda i: [int(i)] * int(i)),
    "a list of one size": (TensorSpec((2,), np.int64), lambda i: [int(i)] * (2 + (i == 6))),
    "a cast": (TensorSpec((), np.int32), int),
    "a rank": (TensorSpec((None, 2), np.float64), lambda i: np.zeros((i, 2)) if i != 6 else np.zeros(2)),
    "text": (TensorSpec((), bytes), lambda i: str(i) if i != 6 else 6),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_declared_sizes_are_checked(name):
    signature, function = SIGNATURES[name]
    values = [function(i) for i in range(10)]

    def build():
        return Dataset.from_generator(lambda: iter(values), output_signature=signature).shuffle(4, seed=1)

    found = outcomes(iter(build()))
    with without_row_loop():
        assert_elements_equal(found, outcomes(iter(build())))


CONTAINERS = {
    "bare": lambda array: array,
    "tuple": lambda array: (array, 1),
    "dict": lambda array: {"a": array},
    "nested": lambda array: ({"a": [1, 2], "b": array}, (array, 1.5)),
    "named": lambda array: Point(array, b"x"),
    "list": lambda array: [array, array],
    "view": lambda array: (array[::2], array.reshape(2, 2)),
}


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("keeps", ["array", "container", "one buffer"])
@pytest.mark.parametrize("name", CONTAINERS)
def test_what_the_user_keeps_is_copied(name, keeps, batched):
    kept, buffer = [], np.zeros(4)

    def function(i):
        for array in kept:
            array[:] = -1  # as a user who fills a buffer again
        array = buffer if keeps == "one buffer" else np.zeros(4)
        array[:] = i
        kept.append(array)
        result = CONTAINERS[name](array)
        kept.extend(
            [] if keeps == "array" or type(result) is not tuple else [a for a in result if type(a) is np.ndarray]
        )
        return result

    sources = [Dataset.range(40).map(function), Dataset.from_generator(lambda: map(function, range(40)))]
    for source in sources[: 1 if name == "list" else 2]:  # a generator's lists are data
        elements = list(source.batch(5).unbatch() if batched else source.padded_batch(5).unbatch())
        with without_row_loop():
            assert_elements_equal(
                elements, list(Dataset.range(40).map(lambda i: CONTAINERS[name](np.full(4, float(i)))))
            )


@pytest.mark.parametrize("place", [0, 3, 4, 11])
@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, StopIteration, ValueError, MemoryError])
def test_an_exception_loses_no_result_and_repeats_no_call(error, place):
    calls = []

    def function(i):
        calls.append(int(i))
        if i == place and calls.count(place) == 1:
            raise error
        return np.full(3, i), [int(i)]

    found = []
    iterator = iter(Dataset.range(12).map(function).shuffle(4, seed=1))
    while True:
        try:
            found.append(int(next(iterator)[1][0]))
        except StopIteration:
            break
        except BaseException as raised:  # the one above
            assert "function" in "".join(traceback.format_exception(raised))  # noqa: PT017
    lost = set() if error is KeyboardInterrupt else {place}
    assert sorted(found) == sorted({*range(12)} - lost)
    assert calls == sorted([*range(12), place]) if error is KeyboardInterrupt else calls == [*range(12)]


@with_loop
def test_a_signal_is_handled_before_the_next_call():
    found = []
    with pytest.raises(KeyboardInterrupt):
        collect(map(_thread.interrupt_main, [signal.SIGINT] * 3), None, 3, found)
    assert found == [None]


@with_loop
def test_no_reference_is_left_or_dropped():
    value, constants = np.zeros(2), [None, (), True, np.ndarray, bytes, dict, tuple, np.dtype("f8"), "a"]

    def function(i):
        if i % 7 == 6:
            raise ValueError
        return {"a": (value, [1, 2]), "b": str(i)} if i % 5 else {"a": (value, [1, None]), "b": b"x"}

    def run():
        for size in (3, 8):
            outcomes(iter(Dataset.range(40).map(function).shuffle(size, seed=1)))
        gc.collect()
        return [sys.getrefcount(item) for item in [value, function, *constants]]

    run()
    before = run()
    for _ in range(20):
        after = run()
    assert [count for count in map(abs, np.subtract(after, before)) if count > 10] == []


@with_loop
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_has_one_lock", lambda: False),
        ("_has_known_objects", lambda: False),
        ("FUNCTIONS", (*row_loop.FUNCTIONS, "PyAbsent_Function")),
    ],
)
def test_an_interpreter_of_another_kind_uses_the_twin(monkeypatch, name, value):
    monkeypatch.setattr(row_loop, name, value)
    row_loop.row_loop.cache_clear()
    try:
        assert row_loop.row_loop() is None
    finally:
        row_loop.row_loop.cache_clear()


def test_a_generator_that_ends_early_takes_no_memory_for_the_batch_that_was_requested():
    (batch,) = Dataset.from_generator(lambda: iter(range(3000))).batch(10**12)
    assert batch.tolist() == list(range(3000))
