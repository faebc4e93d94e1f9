"""Tests of meters: their values, their low cost, and that they do not change results."""

import time
import weakref
from types import SimpleNamespace

import pytest

from dataset import Dataset
from dataset.autotune import report
from dataset.runtime.context import open_plan
from dataset.runtime.metrics import meter, metering, profile
from dataset.runtime.metrics.metering import SHARE, Metering
from dataset.runtime.metrics.profile import PipelineProfile
from support.process_helpers import run_code

COST_SECONDS = 2.5e-6  # the cost of a measured pull


class Clock:
    """Clock that the test sets: the thread computes while the time advances, unless the test says that it waits."""

    def __init__(self):
        self.now = self.computed = 100.0
        self.reads = self.thread_reads = 0
        self.module = SimpleNamespace(
            perf_counter=self.read, thread_time=self.read_thread, process_time=lambda: self.computed
        )

    def read(self):
        self.reads += 1
        return self.now

    def read_thread(self):
        self.thread_reads += 1
        return self.computed

    def compute(self, seconds):
        self.now += seconds
        self.computed += seconds

    def wait(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in (meter, metering, profile, report):
        monkeypatch.setattr(module, "time", clock.module)
    monkeypatch.setattr(metering, "COST_SECONDS", COST_SECONDS)
    return clock


def doing(function, *arguments):
    """Return a function for map that does some work and returns its argument plus 1."""

    def work(x):
        function(*arguments)
        return x + 1

    return work


class Run:
    """Open a pipeline without an iterator; return it with its meters."""

    def __init__(self, dataset, clock=time):
        self.clock = clock
        self.profile = PipelineProfile(dataset.plan)
        self.coordinator, self.root = open_plan(dataset.plan, profile=self.profile)
        self.metering = Metering(self.profile.top, metering.time.perf_counter())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.coordinator.shut_down(self.root.close, wait=True)
        self.profile.close()

    @property
    def records(self):
        return {record.name: record for record in self.profile.top.walk()}

    @property
    def are_on(self):
        (found,) = {"pull" in vars(record.operator) for record in self.records.values()}
        return found

    @property
    def measured(self):
        return sum(record.meter.pulls for record in self.records.values())

    def pull(self, times):
        """Pull one element at a time; yield after each."""
        for _ in range(times):
            self.root.pull(1)
            self.metering.look(self.clock.now)
            yield


# Values


def test_an_op_is_charged_with_its_own_time_only(clock):
    dataset = Dataset.range(12).map(doing(clock.compute, 1e-3)).shuffle(2, seed=1).map(doing(clock.compute, 4e-3))
    iterator = iter(dataset.batch(3))
    list(iterator)
    batch, upper, shuffle, lower, source = iterator.stats().operators
    assert (batch.elements, upper.elements, shuffle.elements, lower.elements, source.elements) == (4, 12, 12, 12, 12)
    assert upper.seconds == pytest.approx(12 * 4e-3)
    assert lower.seconds == pytest.approx(12 * 1e-3)
    assert batch.seconds == shuffle.seconds == source.seconds == pytest.approx(0.0)
    assert upper.cpu_seconds == pytest.approx(upper.seconds)
    assert lower.seconds_per_element == pytest.approx(1e-3)
    assert "about" not in repr(iterator.stats())


def test_waiting_takes_time_but_no_processor_and_what_the_consumer_does_is_its_own(clock):
    def work(x):
        clock.wait(9e-3)
        clock.compute(1e-3)
        return x + 1

    iterator = iter(Dataset.range(10).map(work))
    for _ in iterator:
        clock.compute(3e-3)
    stats = iterator.stats()
    assert stats.operators[0].seconds == stats.wait_seconds == pytest.approx(0.1)
    assert stats.operators[0].cpu_seconds == pytest.approx(0.01)
    assert stats.consumer_seconds == pytest.approx(0.03)
    assert stats.seconds == pytest.approx(0.13)


@pytest.mark.parametrize("count", [3_000, 30_000])
def test_figures_of_a_sample_stand_for_all(clock, count):
    """Most cheap elements are not measured, but all of the work is charged."""
    iterator = iter(Dataset.range(count).map(doing(clock.compute, 1e-5)).batch(10))
    list(iterator)
    assert iterator._profile.elements == count // 10
    batch, mapped, source = iterator.stats().operators
    assert (batch.elements, mapped.elements, source.elements) == (count // 10, count, count)
    assert mapped.seconds == pytest.approx(count * 1e-5, rel=0.02)
    assert batch.seconds + source.seconds == pytest.approx(0.0, abs=1e-6)
    assert [one.is_estimated for one in (batch, mapped, source)] == [False, True, True]
    assert f"about {count:,} " in repr(iterator.stats())


def test_operators_that_are_opened_later_are_measured_too(clock):
    work = doing(clock.compute, 1e-3)
    iterator = iter(Dataset.range(4).map(work).concatenate(Dataset.range(3).map(work)).repeat(5))
    list(iterator)
    stats = iterator.stats()
    found = [(operator.depth, operator.name, operator.elements) for operator in stats.operators]
    assert found == [
        (0, "repeat(5)", 35), (1, "concatenate", 35),
        (2, "map(work)", 20), (3, "range(4)", 20), (2, "map(work)", 15), (3, "range(3)", 15),
    ]  # fmt: skip
    seconds = [round(operator.seconds, 9) for operator in stats.operators]
    assert seconds == [0.0, 0.0, 0.02, 0.0, 0.015, 0.0]


# Cost


@pytest.mark.parametrize("seconds", [1e-6, 1e-5, 1e-4])
def test_meters_go_on_and_off_and_take_no_more_than_their_share(clock, seconds):
    """The cost of a measured pull is assumed to be COST_SECONDS. Only the first stretch may cost more."""
    with Run(Dataset.range(400_000).map(doing(clock.compute, seconds)).batch(50), clock) as run:
        began, first, seen = clock.now, 0, [run.are_on]
        for _ in run.pull(3000):
            if run.are_on != seen[-1]:
                seen.append(run.are_on)
                first = first or run.measured
        assert seen[:4] == ([True, False, True, False] if seconds < 1e-4 else [True])
        assert first <= 2 * 32 * 3  # some pulls of each op
        assert (run.measured - first) * COST_SECONDS <= 1.2 * SHARE * (clock.now - began)
        assert run.measured > first


@pytest.mark.parametrize("reading", [1e-8, 1e-6, 1.1e-5, 1e-4])
def test_a_slow_clock_is_read_less_often(monkeypatch, clock, reading):
    """On some virtual machines, a reading takes 10 microseconds and more."""

    def read(kind):
        clock.compute(reading)
        return kind()

    monkeypatch.setattr(clock.module, "perf_counter", lambda: read(clock.read))
    monkeypatch.setattr(clock.module, "thread_time", lambda: read(clock.read_thread))
    with Run(Dataset.range(2_000_000).map(doing(clock.compute, 1e-6)).filter(bool).batch(32), clock) as run:
        for _ in run.pull(50_000):
            if not run.are_on:
                break  # the first stretch may cost more: it measures each op often enough
        clock.reads = clock.thread_reads = 0
        began = clock.now
        for _ in run.pull(50_000):
            pass
        assert (clock.reads + clock.thread_reads) * reading <= 0.01 * (clock.now - began)


DICTS = """
import gc
from dataset import Dataset
from dataset.runtime.context import open_plan
from dataset.runtime.metrics.metering import Metering
from dataset.runtime.metrics.profile import PipelineProfile

plan = Dataset.range(10).map(lambda x: x + 1).shuffle(2).batch(5).plan
profile = PipelineProfile(plan)
_, root = open_plan(plan, profile=profile)
Metering(profile.top, 0.0).stop()
made = [part for record in profile.top.walk() for part in gc.get_referents(record.operator)]
print([sorted(part) for part in made if type(part) is dict and "source" in part])
"""


def test_measuring_leaves_no_slower_operators():
    """CPython's attribute access is permanently slower after the dict of an object was created.

    In this process, the earlier attributes of a class may leave no room for another one, which also creates a dict.
    """
    assert run_code(DICTS).stdout == "[]\n"


# No references


@pytest.mark.usefixtures("no_collector")
def test_an_operator_of_an_earlier_epoch_is_gone_although_meters_are_on():
    iterator = iter(Dataset.range(3).map(lambda x: x + 1).batch(3).repeat())
    next(iterator)
    earlier = weakref.ref(iterator._root.source)
    next(iterator)
    assert "pull" in vars(iterator._root)
    assert earlier() is not iterator._root.source
    assert earlier() is None
