"""Decisions of a controller in simulated time: what it accepts, and when it compares again."""

import pytest

from dataset.runtime.choice import INLINE, PROCESSES
from dataset.runtime.metrics.background import Tunable
from dataset.runtime.parallel.controller import CALLS_FIRST, THREADS, Clock, Controller

WAYS = (INLINE, THREADS, PROCESSES)


class SimulatedTime:
    """A clock that advances when something computes or waits."""

    def __init__(self):
        self.now = self.cpu_seconds = 0.0
        self.switches = 0

    def spend(self, *, compute=0.0, wait=0.0):
        self.now += compute + wait
        self.cpu_seconds += compute
        self.switches += wait > 0

    def clock(self):
        cpu_seconds = lambda: self.cpu_seconds
        return Clock(lambda: self.now, cpu_seconds, lambda: self.switches, cpu_seconds)


@pytest.mark.parametrize("of_input", [True, False])
def test_only_a_function_that_waits_is_called_many_times_at_once_not_one_whose_input_waits(of_input):
    time = SimulatedTime()
    calls = Tunable("num_parallel_calls", 2, 1, 64)
    controller = Controller(calls, 2, way=INLINE, clock=time.clock())
    for _ in range(5):
        controller.begin_inline()
        assert controller.read_input(lambda n: time.spend(wait=5e-3 * of_input) or n, 7) == 7
        time.spend(compute=1e-4, wait=5e-3 * (not of_input))
        if controller.is_starting:
            controller.end_inline(1, 32)
    assert (controller.choice.accepted == THREADS) is not of_input
    assert (calls.value == 2) if of_input else (calls.value >= CALLS_FIRST)


def test_work_that_changes_in_processes_is_compared_and_not_taken_back_at_once():
    time = SimulatedTime()
    controller = Controller(Tunable("calls", 2, 1, 8), 2, ways=WAYS, way=PROCESSES, clock=time.clock())
    for number in range(200):
        time.spend(compute=1e-3, wait=(2e-3, 9e-3)[number >= 100])
        controller.add(1, 2e-3, 32, time.now, 0.0)
    assert any(action == "look again" for _, action, *_ in controller.actions)
    assert not controller.is_starting
