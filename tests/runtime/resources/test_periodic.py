"""Tests of periodic work: when it is due, by one thread at a time, and without loss of elements."""

import logging
import math
import threading

from dataset import Dataset
from dataset.runtime.resources.periodic import PeriodicCallback

WAIT = 60  # seconds to wait for an event that must happen


class Looks:
    """Function for a pulse that records when it was called, and is due again after ``pause``."""

    def __init__(self, pause=10.0):
        self.pause = pause
        self.times = []

    def __call__(self, now):
        self.times.append(now)
        return now + self.pause


def test_before_it_is_started_it_is_never_due():
    pulse = PeriodicCallback()
    assert pulse.due == math.inf
    pulse.beat(1e9)


def test_it_is_due_at_once_and_then_when_the_function_says():
    pulse, looks = PeriodicCallback(), Looks(10.0)
    pulse.start(looks)
    for now in (100.0, 105.0, 109.9, 110.0, 111.0, 120.0):
        pulse.beat(now)
    assert looks.times == [100.0, 110.0, 120.0]
    assert pulse.due == 130.0


def test_not_after_a_stop():
    pulse, looks = PeriodicCallback(), Looks()
    pulse.start(looks)
    pulse.stop()
    assert pulse.due == math.inf
    pulse.beat(100.0)
    assert not looks.times


def test_a_stop_while_the_function_runs_is_a_stop():
    pulse, times = PeriodicCallback(), []

    def look(now):
        times.append(now)
        pulse.stop()
        return now + 1.0

    pulse.start(look)
    pulse.beat(100.0)
    assert pulse.due == math.inf
    pulse.beat(200.0)
    assert times == [100.0]


def test_who_comes_while_another_thread_looks_goes_on():
    pulse, inside, gate, times = PeriodicCallback(), threading.Event(), threading.Event(), []

    def look(now):
        times.append(now)
        inside.set()
        assert gate.wait(WAIT)
        return now + 10.0

    pulse.start(look)
    first = threading.Thread(target=pulse.beat, args=(100.0,))
    first.start()
    assert inside.wait(WAIT)
    pulse.beat(101.0)  # must not wait forever or run a second time
    gate.set()
    first.join(WAIT)
    assert times == [100.0]


def test_a_function_that_comes_by_again_while_it_looks_does_not_wait_for_itself():
    """The garbage collector may run arbitrary code at any point."""
    pulse, times = PeriodicCallback(), []

    def look(now):
        times.append(now)
        pulse.beat(now + 100.0)
        return now + 10.0

    pulse.start(look)
    pulse.beat(100.0)
    assert times == [100.0]


def test_an_error_in_it_is_logged_once_and_it_stays_away(caplog):
    pulse, calls = PeriodicCallback(), []

    def look(now):
        calls.append(now)
        raise ZeroDivisionError("a fault")

    pulse.start(look)
    with caplog.at_level(logging.ERROR, "dataset"):
        for now in (1.0, 2.0, 3.0):
            pulse.beat(now)
    assert calls == [1.0]
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
