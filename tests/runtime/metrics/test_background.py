"""Tests of the counters of stages, their knobs, and the clock of processor time."""

import threading
from functools import partial
from types import SimpleNamespace

import pytest

from dataset import Dataset, Options
from dataset.runtime.metrics import background
from dataset.runtime.metrics.background import BackgroundOperator, Counters, CpuClock, EndedBackgroundOperator, Tunable
from dataset.runtime.parallel import pool
from dataset.runtime.parallel.pool import ParallelOperator
from dataset.runtime.parallel.task_sizer import LEASE, TaskSizer

WAIT = 20  # seconds to wait for an event that must happen


# Numbers


def test_a_task_of_several_elements_counts_for_each_of_them():
    counters = Counters()
    counters.add_task(4, 80, 2.0, 0.5, 0.25)
    counters.add_task(1, 20, 3.0, 3.0, 0.0)
    assert (counters.elements, counters.nbytes, counters.tasks) == (5, 100, 2)
    assert (counters.work_seconds, counters.cpu_seconds, counters.input_seconds) == (5.0, 3.5, 0.25)
    assert counters.squares == 4 * 0.5**2 + 3.0**2


def test_a_wait_marks_how_many_were_taken_by_then():
    counters = Counters()
    counters.taken = 7
    counters.least_ready = 5
    counters.add_wait(10.0, 12.5)
    assert (counters.waits, counters.wait_seconds, counters.waited_until, counters.taken_before) == (1, 2.5, 12.5, 7)
    assert counters.least_ready == 0
    counters.reset_least_ready()
    assert counters.least_ready > 1_000_000


def test_a_number_that_was_given_is_fixed():
    assert Tunable("buffer_size", 3).is_fixed
    assert repr(Tunable("buffer_size", 3)) == "Tunable(buffer_size=3, fixed)"
    knob = Tunable("num_parallel_calls", 3, 1, 128)
    assert not knob.is_fixed
    assert repr(knob) == "Tunable(num_parallel_calls=3, 1 to 128)"


class Clock:
    """Clock of a thread that the test sets."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.asked = 0
        monkeypatch.setattr(background, "time", SimpleNamespace(thread_time=self._ask))

    def _ask(self):
        self.asked += 1
        return self.now

    def task(self, clock, seconds, busy):
        clock.begin()
        self.now += busy
        return clock.end(seconds)


def test_long_tasks_are_all_measured(monkeypatch):
    time, clock = Clock(monkeypatch), CpuClock()
    found = [time.task(clock, 1e-2, busy) for busy in (1e-2, 5e-3, 0.0)]
    assert found == pytest.approx([1e-2, 5e-3, 0.0])


def test_of_short_tasks_some_are_measured_and_stand_for_the_others(monkeypatch):
    time, clock = Clock(monkeypatch), CpuClock()
    found = [time.task(clock, 1e-6, 5e-7) for _ in range(160)]
    assert sum(found) == pytest.approx(160 * 5e-7)
    assert time.asked <= 2 * 160 / 10


def test_it_is_never_busy_for_longer_than_the_task_took(monkeypatch):
    """The two clocks differ by a little."""
    time, clock = Clock(monkeypatch), CpuClock()
    assert time.task(clock, 1e-3, 2e-3) == 1e-3
    assert time.task(clock, 0.0, 1e-9) == 0.0


# What runs


def each_stage(operator):
    while operator is not None:
        if isinstance(operator, BackgroundOperator):
            yield operator
        operator = getattr(operator, "inner", None) or getattr(operator, "source", None)


PIPELINES = {
    "prefetch": lambda: Dataset.range(50).prefetch(3),
    "map": lambda: Dataset.range(50).map(lambda x: x + 1, num_parallel_calls=3),
    "map in any order": lambda: Dataset.range(50).map(lambda x: x - 1, num_parallel_calls=3, deterministic=False),
    "batch": lambda: Dataset.range(100).batch(2, num_parallel_calls=2),
    "interleave": lambda: Dataset.range(10).interleave(
        lambda x: Dataset.range(5).map(lambda y: y + x), 3, num_parallel_calls=2
    ),
}
each_pipeline = pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)


@each_pipeline
@pytest.mark.usefixtures("switch_interval")
def test_what_was_taken_is_what_came_out(make):
    iterator = iter(make())
    (stage,) = each_stage(iterator._root)
    for _ in range(50):
        next(iterator)
    if isinstance(
        stage, ParallelOperator
    ):  # counts elements that it is about to return, and inline work at the next check
        assert 50 - LEASE <= stage.counters.taken <= 50 + stage._task_sizer.size * stage.knob.value
    else:
        assert stage.counters.taken == 50
    assert stage.counters.wait_seconds >= 0.0
    assert stage.knob.is_fixed


@pytest.mark.parametrize("name", ["prefetch", "map", "map in any order", "interleave"])
def test_what_was_made_in_the_background_is_counted_exactly(name):
    """A gate makes the work too slow for the consumer to do it itself."""
    iterator = iter(PIPELINES[name]())
    (stage,) = each_stage(iterator._root)
    list(iterator)
    counters = stage.counters
    if not stage.inline:
        assert counters.elements == counters.taken == 50
        assert counters.nbytes == 50 * 8
    assert 0 < counters.cpu_seconds <= counters.work_seconds
    assert counters.squares > 0


def test_an_exception_counts_as_an_element():
    def fail(x):
        if x % 2:
            raise ValueError("odd")
        return x

    iterator = iter(Dataset.range(10).map(fail).prefetch(2))
    (stage,) = each_stage(iterator._root)
    found = 0
    for _ in range(10):
        try:
            next(iterator)
            found += 1
        except ValueError:
            pass
    assert (found, stage.counters.taken, stage.counters.elements) == (5, 10, 10)


def test_an_ended_stage_tells_how_it_ran_and_holds_nothing():
    iterator = iter(PIPELINES["map"]())
    (stage,) = each_stage(iterator._root)
    next(iterator)
    ended = EndedBackgroundOperator(stage)
    assert (ended.runs, ended.inline, ended.relays) == (stage.runs, stage.inline, False)
    assert (ended.knob, ended.counters) == (stage.knob, stage.counters)
    assert ended.buffered() == (0, 0)
    iterator.close()
    (stage,) = each_stage(iter(PIPELINES["prefetch"]())._root)
    assert EndedBackgroundOperator(stage).relays


# A knob that is turned while the stage works


class Gate:
    """Function whose calls wait until they are let through; it counts the waiting calls."""

    def __init__(self):
        self._changed = threading.Condition()
        self._open = 0
        self.inside = self.most = self.done = 0

    def __call__(self, x):
        with self._changed:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open, WAIT)
            self._open -= 1
            self.inside -= 1
            self.done += 1
            self._changed.notify_all()
        return x

    def wait_until(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: self.inside >= count, WAIT), self.inside

    def let_through(self, count):
        """Let this many calls end, and wait until they have ended."""
        with self._changed:
            goal = self.done + count
            self._open += count
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.done >= goal, WAIT)

    def open(self):
        with self._changed:
            self._open = 1 << 30
            self._changed.notify_all()


class Consumer:
    """Consumer that takes all elements in a separate thread."""

    def __init__(self, iterator):
        self.found = []
        self._thread = threading.Thread(target=lambda: self.found.extend(map(int, iterator)))
        self._thread.start()

    def join(self):
        self._thread.join(WAIT)
        assert not self._thread.is_alive()


def without_tuning(dataset):
    """Disable the tuner: the test sets the knobs."""
    options = Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


@pytest.fixture
def one_by_one(monkeypatch):
    """Make workers take one element at a time and compute all elements."""
    monkeypatch.setattr(pool, "SIZE_MAX", 1)
    monkeypatch.setattr(pool, "TaskSizer", partial(TaskSizer, may_inline=False))


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_number_of_calls_that_is_turned_up_and_down_is_obeyed(deterministic):
    gate, count = Gate(), 200
    dataset = Dataset.range(count).map(gate, num_parallel_calls=4, deterministic=deterministic)
    iterator = iter(without_tuning(dataset))
    (stage,) = each_stage(iterator._root)
    consumer = Consumer(iterator)
    try:
        gate.wait_until(4)
        gate.let_through(8)
        gate.wait_until(4)
        assert gate.most == 4

        stage.knob.value = 2
        gate.let_through(4)  # the calls that were running before
        gate.wait_until(2)
        gate.most = 0
        for _ in range(20):
            gate.wait_until(2)
            gate.let_through(1)
        assert gate.most <= 2

        stage.knob.value = 7
        gate.let_through(1)  # each call leads to another one
        gate.wait_until(7)
        assert gate.most == 7
    finally:
        gate.open()
        consumer.join()
    assert sorted(consumer.found) == list(range(count))
    if deterministic:
        assert consumer.found == list(range(count))


def test_a_number_of_reads_that_is_turned_up_and_down_is_obeyed():
    gate = Gate()
    dataset = Dataset.range(8).interleave(
        lambda x: Dataset.range(100).map(gate).map(lambda y: 100 * x + y), 8, num_parallel_calls=4
    )
    iterator = iter(without_tuning(dataset))
    (stage,) = each_stage(iterator._root)
    consumer = Consumer(iterator)
    try:
        gate.wait_until(4)
        assert gate.most == 4
        stage.knob.value = 1
        while stage.readers._reading > 1:  # a worker finishes the run that it has started
            gate.let_through(1)
        gate.most = 0
        for _ in range(20):
            gate.wait_until(1)
            gate.let_through(1)
        assert gate.most == 1
        stage.knob.value = 6
        gate.most = 0
        while gate.most < 3:
            gate.wait_until(1)
            gate.let_through(1)
        assert gate.most <= 6
    finally:
        gate.open()
        consumer.join()
    assert sorted(consumer.found) == list(range(800))


class Source:
    """Generator that records how many elements were taken."""

    def __init__(self):
        self.taken = 0
        self._changed = threading.Condition()

    def __call__(self):
        for number in range(1000):
            with self._changed:
                self.taken += 1
                self._changed.notify_all()
            yield number

    def wait_until(self, taken):
        with self._changed:
            assert self._changed.wait_for(lambda: self.taken >= taken, WAIT)


@pytest.mark.usefixtures("switch_interval")
def test_a_buffer_that_is_turned_up_and_down_is_obeyed():
    source = Source()
    with iter(without_tuning(Dataset.from_generator(source).prefetch(2))) as iterator:
        (stage,) = each_stage(iterator._root)
        next(iterator)
        source.wait_until(3)
        stage.knob.value = 10
        next(iterator)
        source.wait_until(12)
        stage.knob.value = 2
        for _ in range(8):
            next(iterator)
            assert source.taken == 12  # the buffer is emptied first
        for given in range(11, 40):
            next(iterator)
            assert source.taken <= given + 2
