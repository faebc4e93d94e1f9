"""What windows say about counters that are set by hand, so that each figure is known."""

import math

import pytest
from simulation import SimulatedRecord

from dataset.autotune.windows import PipelineSnapshot
from dataset.runtime.metrics.background import Counters, Tunable


class Stage:
    """As much of a stage as windows read."""

    def __init__(self, value=2, *, relays=False, inline=False, capacity=5):
        self.counters = Counters()
        self.knob = Tunable("buffer_size" if relays else "num_parallel_calls", value, 1, 128)
        self.relays, self.inline = relays, inline
        self.capacity = value if relays else capacity  # as a prefetch says

    def works(self, count, seconds, cpu=0.0, reading=0.0):
        """Tasks of one element."""
        for _ in range(count):
            self.counters.add_task(1, 0, seconds, cpu, reading)

    def gives(self, count):
        self.counters.taken += count


def part(stage, *inputs, name="map"):
    return SimulatedRecord(name, stage, inputs)


def watched(*tops, now=10.0):
    return PipelineSnapshot(tops, now)


def only(window):
    (activity,) = window
    return activity


# Rates


def test_from_wait_to_wait_the_rate_is_exact_where_32_are_taken_at_a_time():
    stage = Stage()
    stage.counters.add_wait(9.99, 10.0)
    watch = watched(part(stage))
    for number in range(1, 6):
        stage.gives(32)
        stage.counters.add_wait(9.9 + number, 10.0 + number)
    stage.gives(32)  # those of the next 1.0 seconds, of which only 0.1 have passed
    window = watch.window(15.1)
    assert only(window).taken == 192
    assert only(window).rate == pytest.approx(32)


def test_elements_that_are_computed_count_while_the_consumer_waits_for_many_at_once():
    stage = Stage()
    watch = watched(part(stage))
    stage.counters.waiting_since = 10.0
    stage.works(50, 0.1)
    assert (only(watch.window(12.0)).rate, only(watch.window(12.0)).events) == (25, 50)


# Shares


def test_shares_are_those_of_the_window_only():
    stage = Stage(4)
    stage.works(100, 1.0, cpu=1.0)
    stage.counters.add_wait(3.0, 9.0)
    watch = watched(part(stage))
    stage.works(20, 0.25, cpu=0.05)
    stage.gives(20)
    stage.counters.add_wait(10.5, 11.0)
    window = watch.window(12.0)
    activity = only(window)
    assert activity.busy == pytest.approx(2.5)
    assert activity.computing == pytest.approx(0.2)
    assert activity.waited_for == window.waited == pytest.approx(0.25)
    assert window.cores_used == pytest.approx(0.5)
    assert window.longest_task == pytest.approx(0.25)
    stage.counters.add_wait(2.0, 12.5)  # it began before the window
    window = watch.window(12.5)
    assert only(window).waited_for == window.waited == 1


# Where nothing happens


@pytest.mark.parametrize("now", [10.0, 9.0])
def test_a_window_without_time_or_work_is_finite(now):
    stage = Stage()
    watch = watched(part(stage))
    assert only(watch.window(now)).rate == 0
    stage.works(1, 0.1)
    stage.gives(1)
    stage.counters.add_wait(9.9, 10.0)
    window = watch.window(now)
    assert math.isfinite(only(window).rate)
    assert window.waited == 1
    idle = Stage()
    watch = watched(part(idle))
    idle.works(3, 0.0)
    idle.gives(3)
    assert (only(watch.window(11.0)).variation, only(watch.window(11.0)).rate) == (0, 3)


# Several, and inline


def test_who_takes_from_a_stage_that_works_inline_waits_for_those_below_it():
    read, cheap = Stage(), Stage(inline=True)
    watch = watched(part(cheap, part(read, name="read"), name="cheap"))
    cheap.gives(100)
    read.gives(100)
    read.works(100, 0.1)
    read.counters.add_wait(10.0, 15.0)
    window = watch.window(20.0)
    assert window.waited == pytest.approx(0.5)
