"""What windows say about counters that are set by hand, so that each figure is known."""

import math

import pytest
from simulation import SimulatedRecord

from dataset.autotune.windows import CONSUMER, PipelineSnapshot
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
    assert window.coarseness == pytest.approx(4 / 20)
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
    assert window.sections({}, cores=2) is not None
    idle = Stage()
    watch = watched(part(idle))
    idle.works(3, 0.0)
    idle.gives(3)
    (section,) = watch.window(11.0).sections({}, cores=2).inputs
    assert (section.wall_seconds, section.variation, section.ratio) == (0, 0, 1)


# For the model


def test_sections_have_the_costs_of_an_element_and_how_many_make_one():
    read, batch = Stage(8, capacity=40), Stage(2, capacity=3)
    below = part(read, name="read")
    top = part(batch, below, name="batch")
    watch = watched(top)
    read.works(320, 0.02, cpu=0.005)
    read.gives(320)
    batch.works(10, 0.1, cpu=0.1, reading=0.05)
    batch.gives(10)
    read.counters.add_wait(10.0, 10.2)
    batch.counters.add_wait(14.0, 15.0)
    root = watch.window(15.0).sections({}, cores=8)
    assert root.name == CONSUMER
    assert root.wall_seconds == pytest.approx(4.0 / 10)
    (first,) = root.inputs
    assert first.name is top
    assert (first.ratio, first.workers, first.buffer) == (1, 2, 3)
    assert first.wall_seconds == pytest.approx(0.1)
    assert first.serial_seconds == pytest.approx((0.5 - 0.2) / 10)
    (second,) = first.inputs
    assert (second.ratio, second.workers, second.buffer) == (pytest.approx(32), 8, 40)
    assert second.wall_seconds == pytest.approx(0.02)
    assert second.cpu_seconds == pytest.approx(0.005)
    assert second.serial_seconds == 0


def test_contention_is_work_under_the_lock_and_its_wait_for_it_is_left_out():
    stage = Stage(8)
    top = part(stage)
    watch = watched(top)
    stage.works(10, 0.4, cpu=0.1)
    stage.gives(10)

    def section(shared):
        return watch.window(20.0).sections({top: shared}, cores=8).inputs[0]

    assert (section(0.0).lock_seconds, section(0.0).wall_seconds) == (0, pytest.approx(0.4))
    assert (section(0.5).lock_seconds, section(0.5).wall_seconds) == (pytest.approx(0.05), pytest.approx(0.25))
    assert (section(1.0).lock_seconds, section(1.0).wall_seconds) == (pytest.approx(0.1), pytest.approx(0.1))


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
    root = window.sections({}, cores=2)
    assert root.wall_seconds == pytest.approx(0.05)
    (inline,) = root.inputs
    assert (inline.wall_seconds, inline.buffer) == (0, 0)
    assert inline.inputs[0].wall_seconds == pytest.approx(0.1)
