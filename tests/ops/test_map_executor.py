"""Tests of executor=AUTOTUNE: threads at first, and processes once threads have gained nothing."""

import logging
import os
import threading

import pytest

from dataset import AUTOTUNE, Dataset
from dataset.runtime.parallel import pool
from support.overlap import nothing_left
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
    sizer = iterator._root._task_sizer
    sizer.inline, sizer._usual = True, 1e9
    sizer._bound, sizer._inline_seconds = float("inf"), 0.3
    assert sizer.gained_nothing
    return iterator, before


def values(elements):
    return [int(value) for value, _ in elements]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(pool, "START_SECONDS", 0.0)


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


def test_threads_that_gain_something_and_other_executors_stay():
    with iter(Dataset.range(COUNT).map(with_process, executor=AUTOTUNE)) as iterator:
        assert {process for _, process in iterator} == {os.getpid()}
    iterator, _ = moving(Dataset.range(COUNT).map(with_process, num_parallel_calls=AUTOTUNE))
    assert {process for _, process in iterator} == {os.getpid()}


def test_the_plan_and_errors_name_it():
    dataset = Dataset.range(3).map(with_process, executor=AUTOTUNE)
    assert "in threads or processes" in dataset.explain()
    with pytest.raises(ValueError, match=r'executor must be "thread", "process" or AUTOTUNE, got \'gpu\''):
        Dataset.range(3).map(with_process, executor="gpu")
