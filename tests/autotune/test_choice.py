"""Comparisons of ways to do the same work, from the segments that their owner reports."""

import pytest

from dataset.runtime.choice import INLINE, PROCESSES, SEGMENT_SECONDS, Choice, Learned, Segment
from dataset.runtime.metrics.background import Tunable
from dataset.runtime.parallel.controller import CALLS_FIRST, THREADS, Clock, Controller

WAYS = (INLINE, THREADS, PROCESSES)


def compare(choice, challenger, segments):
    """Let the choice compare ``challenger``; return the number of segments that it took, of those of each way."""
    choice.challenge(challenger, now=1.0)
    left = {way: iter(of_way) for way, of_way in segments.items()}
    count = 0
    while choice.is_trying:
        count += 1
        choice.report(next(left[choice.way]), now=1.0 + count)
    return count


def many(elements, seconds, cores=1.0):
    return [Segment(elements, seconds, cores * seconds)] * 9


@pytest.mark.parametrize("accepted", [INLINE, THREADS])
@pytest.mark.parametrize("elements", [5, 100, 2000])
def test_threads_that_keep_one_core_busy_are_not_faster_whatever_was_counted(accepted, elements):
    choice = Choice(WAYS, accepted)
    challenger = THREADS if accepted == INLINE else INLINE
    count = compare(choice, challenger, {INLINE: many(100, 5e-3), THREADS: many(elements, 5e-3, cores=1.02)})
    assert choice.accepted == INLINE
    assert count <= 3  # one pair, after the first segment of the challenger unless it is much slower
    assert "threads kept only 1.02 times as many cores busy as inline" in choice.verdict.action.reason


def test_the_first_segment_counts_if_the_challenger_is_busy_and_much_slower():
    choice = Choice(WAYS)
    threads = many(10, 50e-3, cores=1.9)
    assert compare(choice, THREADS, {INLINE: many(100, 20e-3), THREADS: threads}) == 4  # two pairs: it costs more CPU
    assert choice.accepted == INLINE
    assert choice.debt(5.0) > 4 * 0.8 / 0.025  # at least the time that was lost


def test_a_comparison_is_paid_for_the_cpu_time_that_it_has_wasted():
    debts = []
    for cores in (1.05, 2.0):  # threads are as fast as inline work; the first do not even keep more cores busy
        choice = Choice(WAYS)
        count = compare(choice, THREADS, {INLINE: many(100, 5e-3), THREADS: many(100, 5e-3, cores)})
        assert choice.accepted == INLINE
        debts.append(choice.debt(1.0 + count) / count)
    assert debts[0] < 0.1 / 0.025 < 0.4 / 0.025 < debts[1]


def test_a_challenger_is_much_slower_only_beyond_what_its_start_may_take():
    choice = Choice(WAYS)
    assert not choice.is_much_slower(1, 9.0)  # nothing is compared
    choice.challenge(THREADS, 0.0, Segment(100, 20e-3, 20e-3))
    assert choice.is_much_slower(10, SEGMENT_SECONDS + 2 * 10 * 0.2e-3)
    assert not choice.is_much_slower(10, SEGMENT_SECONDS + 1.9 * 10 * 0.2e-3)


@pytest.mark.parametrize(("cores", "inline"), [(1.9, 1.0), (1.0, 0.3)])
def test_threads_that_keep_more_cores_busy_are_compared_by_their_rate(cores, inline):
    for elements, expected in ((190, THREADS), (90, INLINE)):
        choice = Choice(WAYS)
        compare(choice, THREADS, {INLINE: many(100, 5e-3, inline), THREADS: many(elements, 5e-3, cores)})
        assert choice.accepted == expected


def test_threads_that_keep_far_fewer_cores_busy_have_waited_which_one_pair_does_not_prove():
    choice = Choice(WAYS)
    waiting = many(5, 5e-3, cores=0.1)
    assert compare(choice, THREADS, {INLINE: many(100, 5e-3), THREADS: waiting[:2] + many(190, 5e-3, cores=1.9)}) > 3
    assert choice.accepted == THREADS


def test_the_cpu_time_of_processes_is_not_seen():
    choice = Choice(WAYS, unseen=(PROCESSES,))
    compare(choice, PROCESSES, {INLINE: many(100, 5e-3), PROCESSES: many(170, 5e-3, cores=0.2)})
    assert choice.accepted == PROCESSES


def test_pairs_that_contradict_one_another_keep_the_accepted_way_and_lengthen_the_segments():
    bursts = [Segment(count, 5e-3, 9e-3) for count in (100, 130, 60, 120)]
    choice = Choice(WAYS)
    compare(choice, THREADS, {INLINE: many(100, 5e-3), THREADS: bursts})
    assert choice.accepted == INLINE
    assert choice.segment_seconds == 2 * SEGMENT_SECONDS
    compare(choice, THREADS, {INLINE: many(100, 5e-3), THREADS: many(150, 5e-3, cores=1.8)})
    assert choice.accepted == THREADS
    assert choice.segment_seconds == 2 * SEGMENT_SECONDS


def test_what_a_comparison_has_cost_is_a_small_part_of_the_time_until_the_next():
    choice = Choice(WAYS)
    seconds = compare(choice, THREADS, {INLINE: many(100, 1.0), THREADS: many(25, 1.0, cores=1.5)})
    ended = 1.0 + seconds
    assert choice.accepted == INLINE
    assert not choice.is_paid(ended + 25 * seconds)
    assert choice.is_paid(ended + 100 * seconds)


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


def test_what_happens_while_processes_start_is_not_measured():
    time = SimulatedTime()
    controller = Controller(Tunable("calls", 2, 1, 8), 2, ways=WAYS, way=INLINE, clock=time.clock())
    controller.warm_start(Learned(INLINE, 2, 1e-3, patience=1, rest=60.0))
    for number in range(700):
        controller.begin_inline()
        time.spend(compute=1e-3 if number < 100 else 9e-3, wait=0.0 if number < 100 else 5e-3)
        controller.end_inline(1, 32)
        assert controller.wants_processes or number < 100
    assert controller.inline
    assert not controller.actions
    controller.has_processes = True
    for _ in range(100):
        controller.begin_inline()
        time.spend(compute=1e-3)
        if controller.inline:
            controller.end_inline(1, 32)
    assert controller.in_processes


@pytest.mark.parametrize("debt", [0.0, 5.0])
def test_work_that_seems_to_change_is_not_compared_before_the_last_comparison_is_paid(debt):
    time = SimulatedTime()
    controller = Controller(Tunable("calls", 2, 1, 8), 2, ways=WAYS[:2], way=INLINE, clock=time.clock())
    controller.warm_start(Learned(INLINE, 2, 1e-3, patience=3, rest=60.0, debt=debt))
    for number in range(3000):
        controller.begin_inline()
        time.spend(compute=1e-3 if number < 200 else 3e-3)
        controller.end_inline(1, 32)
    changed = [now for now, action, *_ in controller.actions if action == "look again"]
    assert max(debt, 0.2) <= changed[0] < max(debt, 0.2) + 1
