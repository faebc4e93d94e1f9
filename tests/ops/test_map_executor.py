"""Tests of executor=AUTOTUNE: threads at first, and processes once threads have gained nothing."""

import logging
import os
import threading

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.runtime.choice import Learned
from dataset.testing import assert_elements_equal, outcomes
from support.overlap import WAIT, nothing_left
from support.resuming import advanced, loaded, to_json

COUNT = 200


def with_process(x):
    return x * 2, os.getpid()


def fail_at_150(x):
    if x == 150:
        raise ValueError("150")
    return x, os.getpid()


def moving(dataset, *, after=5):
    """Return an iterator whose operator believes that threads gained nothing, and the elements before that."""
    iterator = iter(dataset)
    before = [next(iterator) for _ in range(after)]
    controller = iterator._root.controller
    if "processes" in controller.choice.ways:
        controller.warm_start(Learned("processes", 2, rest=1e9))
    return iterator, before


def values(elements):
    return [int(value) for value, _ in elements]


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """Start permanent helper processes, such as a fork server, so that they are not counted."""
    list(Dataset.range(2).map(with_process, executor="process"))


@pytest.mark.parametrize("deterministic", [True, False])
def test_work_moves_to_processes_and_every_element_comes_once(deterministic):
    dataset = Dataset.range(COUNT).map(with_process, executor=AUTOTUNE, deterministic=deterministic)
    with nothing_left():
        iterator, before = moving(dataset)
        assert {process for _, process in before} == {os.getpid()}
        after = list(iterator)
        processes = {int(process) for _, process in after}
        assert processes - {os.getpid()}
        found = values(before + after)
        assert (found if deterministic else sorted(found)) == [2 * i for i in range(COUNT)]
        del iterator


def test_a_state_from_processes_resumes_and_an_error_keeps_its_place():
    dataset = Dataset.range(COUNT).map(fail_at_150, executor=AUTOTUNE)
    iterator, _ = moving(dataset)
    with iterator:
        assert values([next(iterator) for _ in range(120)]) == list(range(5, 125))
        state = iterator.state_dict()
        assert values([next(iterator) for _ in range(25)]) == list(range(125, 150))
        with pytest.raises(ValueError, match="150"):
            next(iterator)
        assert values(iterator) == list(range(151, COUNT))
    with loaded(dataset, to_json(state)) as again:
        assert values(advanced(again, 25)) == list(range(125, 150))


def test_a_function_that_cannot_be_sent_stays_in_threads(caplog):
    lock = threading.Lock()

    def locked(x):
        with lock:
            return x * 2, os.getpid()

    with caplog.at_level(logging.INFO, logger="dataset"):
        iterator, before = moving(Dataset.range(COUNT).map(locked, executor=AUTOTUNE))
        after = list(iterator)
    assert {process for _, process in before + after} == {os.getpid()}
    assert values(before + after) == [2 * i for i in range(COUNT)]
    assert "executor=AUTOTUNE keeps to threads: map(locked) from test_map_executor.py" in caplog.text


class OnlyHere:
    """Function that a worker process cannot load."""

    def __init__(self):
        self.process = os.getpid()

    def __reduce__(self):
        return _only_in, (self.process,)

    def __call__(self, x):
        return x * 2, os.getpid()


def _only_in(process):
    if process != os.getpid():
        raise ImportError("not here")
    return OnlyHere()


@pytest.mark.parametrize("function", [with_process, OnlyHere()])
def test_processes_start_while_the_consumer_continues(function, caplog):
    started = threading.Semaphore(0)
    with (
        caplog.at_level(logging.INFO, logger="dataset"),
        nothing_left(),
        iter(Dataset.range(COUNT).map(function, executor=AUTOTUNE)) as iterator,
    ):
        before = [next(iterator)]
        pool = iterator._root
        pool._start_process = lambda start=pool._start_process: (start(), started.release())
        pool.controller.wants_processes = True
        for _ in range(pool.knob.value):
            before.append(next(iterator))
            assert started.acquire(timeout=WAIT)
        before.append(next(iterator))
        assert {process for _, process in before} == {os.getpid()}
        assert pool.controller.has_processes == (function is with_process)
        assert ("processes" in pool.controller.choice.ways) == (function is with_process)
        assert values(before + list(iterator)) == [2 * i for i in range(COUNT)]
        del pool
    assert ("executor=AUTOTUNE keeps to threads: not here" in caplog.text) == (function is not with_process)


def test_threads_that_gain_something_and_other_executors_stay():
    with iter(Dataset.range(COUNT).map(with_process, executor=AUTOTUNE)) as iterator:
        assert {process for _, process in iterator} == {os.getpid()}
    iterator, _ = moving(Dataset.range(COUNT).map(with_process, num_parallel_calls=AUTOTUNE))
    assert {process for _, process in iterator} == {os.getpid()}


@pytest.mark.parametrize(("executor", "words"), [("process", "in processes"), (AUTOTUNE, "in threads or processes")])
def test_the_plan_names_it(executor, words):
    numbers = Dataset.range(3)
    assert words in numbers.map(with_process, executor=executor).explain()
    assert words in numbers.random_map(draw, executor=executor).explain()


# Random functions

PROCESSES = {"num_parallel_calls": 2, "executor": "process"}


def draw(rng, x):
    if x == 17:
        raise ValueError("17")
    return x, rng.integers(1 << 40)


def drawn(**how):
    return Dataset.range(40).random_map(draw, seed=3, **how)


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.repeat(3),
        lambda dataset: dataset.shard(3, 1),
        lambda dataset: dataset.shuffle(9, seed=1).ignore_errors().batch(7),
    ],
    ids=["epochs", "a shard", "batches"],
)
def test_elements_draw_the_same_in_processes(change):
    assert_elements_equal(outcomes(iter(change(drawn(**PROCESSES)))), outcomes(iter(change(drawn()))))


def test_a_process_draws_for_the_iteration_of_a_loaded_state():
    here, dataset = drawn(), drawn(**PROCESSES)
    outcomes(iter(here))
    with iter(here) as iterator, iter(dataset) as resumed:  # the second iteration, and the first
        advanced(iterator, 20)
        resumed.load_state_dict(iterator.state_dict())
        rest = advanced(resumed, 5)
        with loaded(drawn(), to_json(resumed.state_dict())) as again:
            expected = outcomes(iterator)
            assert_elements_equal(rest + outcomes(again), expected)
        assert_elements_equal(rest + outcomes(resumed), expected)
