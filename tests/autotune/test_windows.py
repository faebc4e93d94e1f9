"""What windows say about counters that are set by hand, so that each figure is known."""

import math

import pytest
from simulation import SimulatedRecord

from dataset.autotune.windows import PipelineSnapshot
from dataset.runtime.metrics.background import Counters, Tunable


class Stage:
    """As much of a stage as windows read."""

    def __init__(self):
        self.counters = Counters()
        self.knob = Tunable("num_parallel_calls", 2, 1, 128)
        self.relays = self.inline = False
        self.capacity = 5

    def works(self, count, seconds, cpu=0.0, reading=0.0):
        """Tasks of one element."""
        for _ in range(count):
            self.counters.add_task(1, 0, seconds, cpu, reading)

    def gives(self, count):
        self.counters.taken += count


def watched(stage):
    return PipelineSnapshot((SimulatedRecord("map", stage),), 10.0)


def only(window):
    (activity,) = window
    return activity


def test_from_wait_to_wait_the_rate_is_exact_where_32_are_taken_at_a_time():
    stage = Stage()
    stage.counters.add_wait(9.99, 10.0)
    watch = watched(stage)
    for number in range(1, 6):
        stage.gives(32)
        stage.counters.add_wait(9.9 + number, 10.0 + number)
    stage.gives(32)  # those of the next 1.0 seconds, of which only 0.1 have passed
    window = watch.window(15.1)
    assert only(window).taken == 192
    assert only(window).rate == pytest.approx(32)


def test_elements_that_are_computed_count_while_the_consumer_waits_for_many_at_once():
    stage = Stage()
    watch = watched(stage)
    stage.counters.waiting_since = 10.0
    stage.works(50, 0.1)
    assert (only(watch.window(12.0)).rate, only(watch.window(12.0)).events) == (25, 50)


@pytest.mark.parametrize("now", [10.0, 9.0])
def test_a_window_without_time_or_work_is_finite(now):
    stage = Stage()
    watch = watched(stage)
    assert only(watch.window(now)).rate == 0
    stage.works(1, 0.1)
    stage.gives(1)
    stage.counters.add_wait(9.9, 10.0)
    window = watch.window(now)
    assert math.isfinite(only(window).rate)
    assert window.waited == 1
    idle = Stage()
    watch = watched(idle)
    idle.works(3, 0.0)
    idle.gives(3)
    assert (only(watch.window(11.0)).variation, only(watch.window(11.0)).rate) == (0, 3)
