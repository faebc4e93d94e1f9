"""Tests of the counters of stages, their knobs, and the clock of processor time."""

import contextlib
import threading
from types import SimpleNamespace

import pytest

from dataset import Dataset
from dataset.runtime.metrics import background
from dataset.runtime.metrics.background import BackgroundOperator, CpuClock
from dataset.runtime.parallel import pool
from support.controllers import OnlyWorkers
from support.pipelines import with_options
from support.process_helpers import in_thread

WAIT = 20  # seconds to wait for an event that must happen


# Numbers


class Clock:
    """Clock of a thread that the test sets."""

    def __init__(self, monkeypatch):
        self.now = self.asked = 0
        self.clock = CpuClock()
        monkeypatch.setattr(background, "time", SimpleNamespace(thread_time=self._ask))

    def _ask(self):
        self.asked += 1
        return self.now

    def task(self, seconds, busy):
        self.clock.begin()
        self.now += busy
        return self.clock.end(seconds)


def test_long_tasks_are_all_measured_and_never_busy_for_longer_than_they_took(monkeypatch):
    """The two clocks differ by a little."""
    time = Clock(monkeypatch)
    assert [time.task(1e-2, busy) for busy in (1e-2, 5e-3, 0.0)] == pytest.approx([1e-2, 5e-3, 0.0])
    assert time.task(1e-3, 2e-3) == 1e-3
    assert time.task(0.0, 1e-9) == 0.0


def test_of_short_tasks_some_are_measured_and_stand_for_the_others(monkeypatch):
    time = Clock(monkeypatch)
    assert sum(time.task(1e-6, 5e-7) for _ in range(160)) == pytest.approx(160 * 5e-7)
    assert time.asked <= 2 * 160 / 10


# What runs


def stage_of(iterator):
    """Return the only operator of the pipeline that works in the background."""
    operator = iterator._root
    while not isinstance(operator, BackgroundOperator):
        operator = getattr(operator, "inner", None) or operator.source
    return operator


# A knob that is turned while the stage works


class Gate:
    """Function whose calls wait until they are let through; it counts the waiting calls."""

    def __init__(self):
        self._changed = threading.Condition()
        self._open = 0
        self.inside = self.most = self.done = 0

    def _wait(self, condition):
        self._changed.notify_all()
        assert self._changed.wait_for(condition, WAIT), self.inside

    def __call__(self, x):
        with self._changed:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self._wait(lambda: self._open)
            self._open -= 1
            self.inside -= 1
            self.done += 1
            self._changed.notify_all()
        return x

    def wait_until(self, count):
        with self._changed:
            self._wait(lambda: self.inside >= count)

    def let_through(self, count):
        """Let this many calls end, and wait until they have ended."""
        with self._changed:
            goal = self.done + count
            self._open += count
            self._wait(lambda: self.done >= goal)

    def most_of_20(self, count):
        """Let 20 calls through, one at a time while ``count`` wait. Return how many waited at most."""
        self.most = 0
        for _ in range(20):
            self.wait_until(count)
            self.let_through(1)
        return self.most

    def open(self):
        with self._changed:
            self._open = 1 << 30
            self._changed.notify_all()


@contextlib.contextmanager
def consumed(dataset, gate, expected, *, in_order):
    """Take all elements in another thread, without tuning; yield the operator whose knob the test sets."""
    iterator = iter(with_options(dataset, autotune__enabled=False))
    consumer = in_thread(lambda: list(map(int, iterator)))
    try:
        yield stage_of(iterator)
    finally:
        gate.open()
        found = consumer.result()
    assert (found if in_order else sorted(found)) == expected


@pytest.fixture
def one_by_one(monkeypatch):
    """Make workers take one element at a time and compute all elements."""
    monkeypatch.setattr(pool, "SIZE_MAX", 1)
    monkeypatch.setattr(pool, "Controller", OnlyWorkers)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_number_of_calls_that_is_turned_up_and_down_is_obeyed(deterministic):
    gate = Gate()
    dataset = Dataset.range(200).map(gate, num_parallel_calls=4, deterministic=deterministic)
    with consumed(dataset, gate, list(range(200)), in_order=deterministic) as stage:
        gate.wait_until(4)
        gate.let_through(8)
        gate.wait_until(4)
        assert gate.most == 4
        stage.knob.value = 2
        gate.let_through(4)  # the calls that were running before
        gate.wait_until(2)
        assert gate.most_of_20(2) <= 2
        stage.knob.value = 7
        gate.let_through(1)  # each call leads to another one
        gate.wait_until(7)
        assert gate.most == 7
