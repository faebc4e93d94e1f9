"""The controller of a parallel stage in virtual time: from the first element on, it is near the best fixed way.

The consumer, the workers and the machine are simulated (simulation.py), the controller and the tuner are real. What is
best is searched on the same simulation, where only the consumer, or only threads in a fixed number, do the work.
"""

import bisect
import itertools
from functools import cache

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from simulation import ParallelMap, SimulatedRecord, Simulation, Work

from dataset.autotune.tuner import Tuner
from dataset.runtime.choice import INLINE, PROCESSES
from dataset.runtime.metrics.background import Tunable
from dataset.runtime.parallel.controller import THREADS, Controller
from dataset.runtime.parallel.pool import CALLS_MAX
from support.seeds import rng

MS = 1e-3
US = 1e-6
CORES = 2

FREE = Work()


class Pieces:
    """What is constant for some seconds each: the share of the cores that others use, or the work."""

    def __init__(self, values, seconds, simulation=None):
        self.values, self.seconds, self.simulation = values, seconds, simulation

    def __call__(self, now):
        if isinstance(self.values[0], Work):  # then it is called with the number of an element
            now = self.simulation.now if self.simulation is not None else 0.0
        return self.values[int(now / self.seconds) % len(self.values)]


class Run:
    """A parallel map that was run in virtual time for some seconds."""

    def __init__(self, work, consumer=FREE, takes=1, *, seconds=3.0, ways=(INLINE, THREADS), way=INLINE, calls=None,
                 learned=None, resting=0, steal=None, cores=CORES):  # fmt: skip
        first = cores if learned is None else learned.value
        knob = Tunable("num_parallel_calls", first, 1, CALLS_MAX) if calls is None else Tunable("calls", calls)
        self.inline_seconds = 0.0  # that the consumer worked itself
        self.ways = []  # (seconds, way, calls)
        self.log = []
        self.stage = ParallelMap("map", work, knob, control=lambda knob, clock: self._control(knob, clock, learned))
        self.arguments = {"ways": ways, "way": way}
        self.resting = resting  # worker processes
        self.started = None  # when processes were wanted
        self.simulation = Simulation([self.stage], consumer, takes=takes, cores=cores, steal=steal)
        if isinstance(work, Pieces):
            work.simulation = self.simulation
        self.takes, self.knob = takes, knob
        self._tops = (SimulatedRecord("map", self.stage),)
        self._tuner = Tuner(cores, lambda now, record, *decision: self.log.append((now, *decision)))
        self._due = 0.0
        self.controller = self.stage.controller
        self.simulation.run(until=seconds, on_time=self._tick)

    def _control(self, knob, clock, learned):
        controller = Controller(knob, CORES, clock=clock, **self.arguments)
        controller.resting_processes = lambda: self.resting
        end_inline = controller.end_inline

        def note(*arguments):
            seconds = end_inline(*arguments)
            self.inline_seconds += seconds
            return seconds

        controller.end_inline = note
        if learned is not None:
            controller.warm_start(learned)
        return controller

    def _tick(self, now):
        if self.controller.wants_processes:
            self.started = now if self.started is None else self.started
            self.controller.has_processes = now - self.started >= (0.02 if self.resting else 0.25)
        if now >= self._due:
            self._due = self._tuner.look(now, self._tops)
        while self.stage.actions:
            self.log.append(self.stage.actions.popleft())
        setting = self.controller.choice.way, self.knob.value
        if not self.ways or self.ways[-1][1:] != setting:
            self.ways.append((now, *setting))

    def count(self, seconds):
        return bisect.bisect_right(self.simulation.times, seconds) * self.takes

    def rate(self, since, until):
        return (self.count(until) - self.count(since)) / (until - since)

    @property
    def changes(self):
        """When another way was accepted."""
        ways = [(now, action) for now, action, *_ in self.log if action.startswith("run in")]
        return [now for (_, before), (now, way) in itertools.pairwise(ways) if way != before]

    def explained(self):
        return "\n".join(f"{now:8.3f} {' '.join(map(str, rest))}" for now, *rest in self.log)


@cache
def fixed(work, consumer=FREE, takes=1, seconds=3.0, steal=None, ways=()):
    """The runs of the fixed ways."""
    pieces = work.values if isinstance(work, Pieces) else [work]
    calls = {THREADS: [CORES, 16, CALLS_MAX] if any(piece.wait for piece in pieces) else [CORES]}
    return [
        Run(work, consumer, takes, seconds=seconds, steal=steal, ways=(way,), way=way, calls=count)
        for way in (INLINE, THREADS, *ways)
        for count in calls.get(way, [CORES])
    ]


def best(runs, since, until):
    return max(run.rate(since, until) for run in runs)


def waits(ms, compute=20 * US, lock_share=1):
    return Work(wait=ms * MS, compute=compute, lock_share=lock_share)  # a call that waits costs 20 us of CPU, too


def holds_lock(seconds):
    return Work(compute=seconds, lock_share=1)


SLEEPS, COMPUTES, TRAINS = Work(wait=5 * MS), Work(compute=5 * MS), Work(compute=5 * MS, lock_share=1)

CASES = {  # work, consumer, elements of a request, seconds; the shares of the best in the first 0.3 s and afterwards
    "waits 1 ms": (waits(1), FREE, 1, 1, 0.8, 0.95),
    "waits 10 ms": (waits(10), FREE, 1, 3, 0.8, 0.95),
    "waits 100 ms": (waits(100), FREE, 1, 6, 0, 0.95),  # the first two calls take 0.2 s
    "waits 1 ms, sleeping consumer": (waits(1), SLEEPS, 32, 3, 0.8, 0.95),
    "waits 1 ms, computing consumer": (waits(1), COMPUTES, 32, 3, 0.8, 0.95),
    "waits and computes": (waits(2, MS, 0), FREE, 1, 3, 0.7, 0.9),
    "waits and holds the lock": (waits(1, 0.3 * MS), FREE, 1, 3, 0.7, 0.87),
    "lock, 5 us": (holds_lock(5 * US), FREE, 32, 1, 0.95, 0.97),
    "lock, 200 us": (holds_lock(200 * US), FREE, 1, 3, 0.95, 0.97),
    "lock, 20 ms": (holds_lock(20 * MS), FREE, 1, 3, 0.93, 0.97),  # 14 elements of 15
    "lock, 200 us, sleeping consumer": (holds_lock(200 * US), SLEEPS, 32, 3, 0.88, 0.95),
    "lock, 200 us, consumer with lock": (holds_lock(200 * US), TRAINS, 32, 3, 0.95, 0.95),
    "half lock": (Work(compute=MS, lock_share=0.5), FREE, 1, 3, 0.9, 0.95),
    "no lock, 1 ms": (Work(compute=MS), FREE, 1, 3, 0.9, 0.95),
    "no lock, 5 ms": (Work(compute=5 * MS), FREE, 1, 3, 0.9, 0.95),
    "no lock, 1 ms, sleeping consumer": (Work(compute=MS), SLEEPS, 32, 3, 0.8, 0.95),
    "crowded, sleeping consumer": (Work(compute=MS, crowded=8), SLEEPS, 32, 6, 0.75, 0.97),
    "no lock, 1 ms, computing consumer": (Work(compute=MS), COMPUTES, 32, 3, 0.8, 0.95),
    "cheap, 1 us": (holds_lock(US), FREE, 1000, 3, 0.95, 0.97),
    "cheap, 2 us, batches": (holds_lock(2 * US), FREE, 32, 1, 0.95, 0.97),
}


@pytest.mark.parametrize("case", CASES)
def test_throughput_is_near_the_best_from_the_first_element_on(case):
    work, consumer, takes, seconds, first, afterwards = CASES[case]
    run, others = Run(work, consumer, takes, seconds=seconds), fixed(work, consumer, takes, seconds)
    assert run.rate(0, 0.3) >= first * best(others, 0, 0.3), run.explained()
    for until in {1, 3, seconds}:
        if 40 * work.seconds <= until <= seconds:
            assert run.rate(0.3, until) >= afterwards * best(others, 0.3, until), run.explained()
    if work.wait:
        assert run.inline_seconds <= max(2.1 * work.seconds, 5 * MS)
    elif work.lock_share == 1:
        assert max(calls for _, _, calls in run.ways) <= 2
    if run.controller.choice.accepted == INLINE:
        per_element = [part.simulation.cpu_seconds / part.count(seconds) for part in (run, others[0])]
        assert per_element[0] <= 1.05 * per_element[1]


@pytest.mark.parametrize("work", [holds_lock(200 * US), holds_lock(2 * MS)])
def test_processes_take_over_work_that_holds_the_lock(work):
    run = Run(work, ways=(INLINE, THREADS, PROCESSES))
    inline, _, processes = fixed(work, ways=(PROCESSES,))
    assert run.controller.choice.accepted == PROCESSES, run.explained()
    assert run.rate(0, 0.3) >= 0.95 * inline.rate(0, 0.3)
    assert run.rate(0.6, 3) >= 0.95 * processes.rate(0.6, 3)


def test_processes_that_rest_take_over_in_short_epochs():
    learned, ways = None, (INLINE, THREADS, PROCESSES)
    for epoch in range(3):
        run = Run(holds_lock(200 * US), seconds=0.3, ways=ways, learned=learned, resting=2 * (epoch > 0))
        learned = run.controller.learned
    assert learned.way == PROCESSES, run.explained()


SLOWER_THAN_INPUT = [Work(compute=100 * US), Work(compute=100 * US, lock_share=0.5), holds_lock(100 * US), waits(1)]


@pytest.mark.parametrize("consumer", [SLEEPS, COMPUTES, TRAINS])
@pytest.mark.parametrize("work", SLOWER_THAN_INPUT)
def test_a_step_that_is_slower_than_its_input_sees_no_more_threads_than_it_needs(work, consumer):
    def rate_and_cost(run):
        return run.rate(0.3, 3), run.simulation.cpu_seconds / run.count(3)

    run = Run(work, consumer, 32)
    others = {calls: rate_and_cost(Run(work, consumer, 32, ways=(THREADS,), way=THREADS, calls=calls))
              for calls in (1, 2, 4, 8, 16, 32, 64)} | {0: rate_and_cost(fixed(work, consumer, 32)[0])}  # fmt: skip
    most = max(rate for rate, _ in others.values())
    rate, cost = rate_and_cost(run)
    assert rate >= 0.97 * most, run.explained()
    assert cost <= 1.1 * min(cost for other, cost in others.values() if other >= 0.97 * most)
    if run.controller.choice.accepted != INLINE:
        needed = min(calls for calls, (other, _) in others.items() if other >= 0.97 * most)
        assert run.knob.value <= needed * (2 if work.wait else 1), run.explained()


@pytest.mark.parametrize(
    "case", ["waits 10 ms", "waits and computes", "lock, 200 us", "no lock, 1 ms", "lock, 200 us, sleeping consumer"]
)
def test_a_rebuilt_epoch_goes_on_like_the_one_before(case):
    work, consumer, takes, *_ = CASES[case]
    first = Run(work, consumer, takes)
    second = Run(work, consumer, takes, seconds=1, learned=first.controller.learned)
    assert second.knob.value == pytest.approx(first.knob.value, rel=0.3)  # the tuner goes on
    assert second.changes == []
    assert second.rate(0.05, 1) >= 0.97 * first.rate(1, 3), second.explained()
    if work.wait:
        assert not second.inline_seconds


@pytest.mark.parametrize("work", [holds_lock(2 * MS), Work(compute=2 * MS, lock_share=0.9), Work(compute=5 * MS)])
@pytest.mark.parametrize("consumer", [FREE, TRAINS])
def test_it_does_not_flap(work, consumer):
    steal = Pieces(rng("steal").choices([0.0, 0.2, 0.4], k=100), 0.1)
    run = Run(work, consumer, 4, seconds=65, steal=steal)
    assert sum(now > 5 for now in run.changes) <= 2, run.explained()


@pytest.mark.parametrize(("count", "first"), [(256, 0), (2000, 1), (8000, 0)])
def test_work_that_waits_and_computes_by_turns_is_soon_called_many_times_at_once(count, first):
    work = lambda number: (holds_lock(100 * US), waits(1))[(number // count + first) % 2]
    run = Run(work, takes=32, seconds=6)
    other = Run(work, takes=32, seconds=6, ways=(THREADS,), way=THREADS, calls=CALLS_MAX)
    assert run.rate(2, 6) >= 0.9 * other.rate(2, 6), run.explained()


def test_work_in_a_fixed_number_of_calls_moves_to_threads_when_it_changes():
    run = Run(Pieces([holds_lock(100 * US), Work(compute=MS)], 1.5), takes=4, way=THREADS, calls=2)
    assert [way for _, way, _ in run.ways if way != run.controller.choice.accepted], run.explained()
    assert run.controller.choice.accepted == THREADS, run.explained()
    assert not [reason for *_, reason in run.log if "as inline" in reason and reason.startswith("inline")]


WORKS = [waits(10), waits(2, MS, 0), holds_lock(30 * US), holds_lock(2 * MS), Work(compute=MS),
         Work(compute=MS, lock_share=0.5)]  # fmt: skip


@given(st.lists(st.sampled_from(WORKS), min_size=2, max_size=3), st.lists(st.sampled_from([0.0, 0.2, 0.5]), min_size=9))
@example([WORKS[1], WORKS[0], WORKS[3]], [0.5, 0.0, 0.5, 0.2, 0.2, 0.0, 0.0, 0.2, 0.2])
@example([WORKS[2], WORKS[1], WORKS[5]], [0.2, 0.2, 0.2, 0.5, 0.0, 0.5, 0.0, 0.0, 0.2])
@settings(deadline=None, max_examples=6, phases=[Phase.explicit, Phase.generate])
def test_whatever_changes_little_is_lost(works, steals):
    length, steal = 1.5, Pieces(steals, 0.5)
    arguments = {"seconds": length * len(works), "steal": steal}
    run, others = Run(Pieces(works, length), **arguments), fixed(Pieces(works, length), **arguments)
    for number, work in enumerate(works):
        since, until = number * length, (number + 1) * length
        most = best(others, since, until)
        # Three segments of 50 ms show that the work has changed. Meanwhile, tasks that have begun are finished.
        assert (most - run.rate(since, until)) / most * length <= 0.05 * length + 0.4, run.explained()
        if work.lock_share == 1 and not work.wait:
            assert [calls for now, _, calls in run.ways if now < until][-1] <= 2
