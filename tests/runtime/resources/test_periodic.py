"""Tests of periodic work: when it is due, by one thread at a time, and without loss of elements."""

import logging
import math
import threading

import pytest

from dataset import Dataset
from dataset.runtime.resources.periodic import PeriodicCallback
from support.process_helpers import WAIT, in_thread


def started(look=None):
    """Return a started callback and the times at which its function was called; by default it is due again in 10 s."""
    callback, times = PeriodicCallback(), []

    def function(now):
        times.append(now)
        return now + 10.0 if look is None else look(callback, now)

    assert callback.due == math.inf
    callback.beat(1e9)  # before the start, this does nothing
    callback.start(function)
    return callback, times


def test_it_is_due_at_once_and_then_when_the_function_says():
    callback, times = started()
    for now in (100.0, 105.0, 109.9, 110.0, 111.0, 120.0):
        callback.beat(now)
    assert times == [100.0, 110.0, 120.0]
    assert callback.due == 130.0


@pytest.mark.parametrize("inside", [True, False])
def test_after_a_stop_it_is_never_due_even_while_the_function_runs(inside):
    callback, times = started(lambda callback, now: callback.stop() or now + 1.0)
    if inside:
        callback.beat(100.0)
    else:
        callback.stop()
    assert callback.due == math.inf
    callback.beat(200.0)
    assert times == [100.0] * inside


def test_a_beat_while_another_thread_runs_the_function_returns_at_once():
    inside, gate = threading.Event(), threading.Event()

    def look(callback, now):
        inside.set()
        assert gate.wait(WAIT)
        return now + 10.0

    callback, times = started(look)
    first = in_thread(lambda: callback.beat(100.0))
    assert inside.wait(WAIT)
    callback.beat(101.0)  # must not wait forever or run a second time
    gate.set()
    assert first.result() is None
    assert times == [100.0]


def test_a_beat_from_within_the_function_does_not_wait_for_itself():
    """The garbage collector may run arbitrary code at any point."""
    callback, times = started(lambda callback, now: callback.beat(now + 100.0) or now + 10.0)
    callback.beat(100.0)
    assert times == [100.0]


def test_an_error_in_it_is_logged_once_and_it_stays_away(caplog):
    callback, times = started(lambda callback, now: 1 // 0)
    with caplog.at_level(logging.ERROR, "dataset"):
        for now in (1.0, 2.0, 3.0):
            callback.beat(now)
    assert times == [1.0]
    (record,) = caplog.records
    assert record.getMessage() == "the autotuner has stopped after an internal error; please report this"
    assert isinstance(record.exc_info[1], ZeroDivisionError)


def test_elements_come_although_the_autotuner_fails(caplog, monkeypatch):
    def fail(self, now):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("dataset.autotune.autotuner.Autotuner.look", fail)
    iterator = iter(Dataset.range(300).map(lambda x: x + 1, num_parallel_calls=2).prefetch(2))
    with caplog.at_level(logging.ERROR, "dataset"):
        assert [int(x) for x in iterator] == list(range(1, 301))
    assert len(caplog.records) == 1
    assert iterator.stats().elements == 300
