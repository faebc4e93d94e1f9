"""The tuner on simulated pipelines: it reaches what a search over all settings finds, and stays there.

Time is virtual, so each outcome is the same in every run. What is best is searched on the same simulation, with knobs
that stay as they are.
"""

import bisect
import itertools
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import FixedWay, ParallelMap, Prefetch, SimulatedRecord, Simulation, Work

from dataset.autotune.tuner import Tuner
from dataset.runtime.metrics.background import Tunable

MS = 1e-3
WORKERS = [(n,) for n in (1, 2, 8, 32, 128)]
SIZES = [(n,) for n in (1, 4, 16, 128)]


def calls(value=2):
    return Tunable("num_parallel_calls", value, 1, 128)


def size(value=2):
    return Tunable("buffer_size", value, 1, 128)


class Driven:
    """A simulated pipeline that runs, and a tuner that looks at it."""

    def __init__(self, stages, consumer, *, cores=2.0, budget=None, is_tuned=True, **arguments):
        self.stages = stages
        self.simulation = Simulation(stages, consumer, cores=cores, **arguments)
        self.tuner = Tuner(budget or cores, self._record)
        self.log = []  # (seconds, name, action, before, after, reason)
        self.tops = ()
        for stage in reversed(stages):
            self.tops = (SimulatedRecord(stage.name, stage, self.tops),)
        self._due = 0.0 if is_tuned else math.inf

    def _record(self, now, record, *decision):
        self.log.append((now, record.name, *decision))

    def _tick(self, now):
        if now >= self._due:
            self._due = self.tuner.look(now, self.tops)

    def until(self, seconds):
        self.simulation.run(until=seconds, on_time=self._tick)
        return self

    def rate(self, since):
        """Elements per second, from that moment until now."""
        times = self.simulation.times
        first = bisect.bisect_left(times, since)
        return (len(times) - 1 - first) / (times[-1] - times[first])

    @property
    def values(self):
        return [stage.knob.value for stage in self.stages]

    def actions(self, since=0.0):
        return Counter(action for now, _, action, *_ in self.log if now >= since)

    def elements_until_settled(self):
        """That the consumer got until the last change that was kept."""
        kept = max((now for now, _, action, *_ in self.log if action in {"keep", "hold back"}), default=0.0)
        return bisect.bisect_left(self.simulation.times, kept)

    def explained(self):
        return "\n".join(f"{now:8.2f} {' '.join(map(str, rest))}" for now, *rest in self.log)


def best_rate(make, grid, seconds, **arguments):
    """Of the settings, that of the best; the first half of the time, in which buffers fill, is left out."""
    rates = []
    for values in grid:
        stages, consumer = make()
        for stage, value in zip(stages, values, strict=True):
            stage.knob.value = value
        rates.append(Driven(stages, consumer, is_tuned=False, **arguments).until(seconds).rate(seconds / 2))
    return max(rates)


def check(make, grid, seconds=6.0, share=0.9, **arguments):
    """What is reached in the second half is near the best; returns the pipeline."""
    driven = Driven(*make(), **arguments).until(seconds)
    best = best_rate(make, grid, seconds / 2, **arguments)
    assert driven.rate(seconds / 2) >= share * best, driven.explained()
    return driven


def one_map(work, consumer, value=2, **arguments):
    return lambda: ([ParallelMap("map", work, calls(value), **arguments)], consumer)


# Work that stays as it is


def test_a_map_that_waits_gets_as_many_workers_as_it_takes():
    driven = check(one_map(Work(wait=10 * MS), Work(wait=0.5 * MS)), WORKERS)
    assert 20 <= driven.values[0] <= 32
    assert driven.actions(since=3) == {}


@pytest.mark.parametrize("is_in_background", [False, True])
def test_batches_of_32_are_tuned_within_200_of_them(is_in_background):
    def make():
        batch = Prefetch("batch", Work(compute=0.1 * MS), size(), takes=32)
        return [batch, ParallelMap("read", Work(wait=10 * MS), calls())], Work(wait=5 * MS)

    if is_in_background:
        driven = check(make, [(2, 64), (8, 96)], seconds=8)
    else:
        driven = check(one_map(Work(wait=10 * MS), Work(wait=5 * MS)), WORKERS, takes=32)
        assert driven.actions(since=4) == {}
    assert driven.elements_until_settled() < 200


def test_workers_without_work_are_removed_but_for_one():
    assert Driven(*one_map(Work(), Work(wait=5 * MS), 64)()).until(12).values == [1]


@pytest.mark.parametrize(
    "make",
    [
        one_map(Work(wait=10 * MS), Work(wait=20 * MS)),
        one_map(Work(wait=10 * MS), Work(compute=20 * MS)),
        lambda: ([Prefetch("load", Work(wait=MS), size())], Work(wait=1.1 * MS)),
    ],
)
def test_nothing_changes_if_the_consumer_is_the_bottleneck(make):
    assert check(make, WORKERS[:3]).log == []


@pytest.mark.parametrize(("second", "order"), [(Work(wait=MS), (0, 1, 2)), (Work(compute=MS), (2, 1, 0))])
def test_a_chain_of_three_maps_is_tuned_at_once(second, order):
    works = Work(wait=10 * MS), second, Work(wait=0.1 * MS)

    def make():
        return [ParallelMap(f"map {n}", works[n], calls()) for n in order], Work(wait=0.5 * MS)

    grid = [tuple(values[n] for n in order) for values in itertools.product((2, 4, 24), (1, 3), (2,))]
    driven = check(make, grid, seconds=4)
    assert driven.elements_until_settled() < 3000


def test_a_prefetch_holds_as_much_as_the_variation_needs():
    def make():
        return [Prefetch("load", Work(wait=MS, law="exponential"), size())], Work(wait=MS, law="exponential")

    driven = check(make, SIZES, seconds=20)
    assert driven.values[0] >= 8
    assert driven.actions(since=10)["keep"] <= 1


WAIT, QUICK = Work(wait=10 * MS), Work(wait=MS)


def test_a_pause_of_the_consumer_changes_nothing():
    paused = []

    def consumer(number):
        if number == 5000:
            paused.append(number)
            return Work(wait=10)
        return QUICK

    driven = Driven(*one_map(WAIT, consumer)()).until(4)
    before = driven.values, len(driven.log)
    driven.until(22)
    assert paused
    assert (driven.values, len(driven.log)) == before, driven.explained()


# Noise


def steal(now):
    """Others take a third of the cores, most of the time."""
    return 0.3 if int(now * 10) % 3 else 0.1


def test_in_steady_state_each_stage_goes_back_and_forth_at_most_once_per_minute():
    stages = [
        Prefetch("prefetch", Work(compute=MS), size()),
        ParallelMap("augment", Work(compute=6 * MS, law="exponential"), calls()),
        ParallelMap("read", Work(wait=40 * MS, law="lognormal"), calls()),
    ]
    driven = Driven(stages, Work(wait=5 * MS, law="lognormal"), steal=steal).until(240)
    turns, grew = Counter(), {}
    for now, name, action, before, after, _ in driven.log:
        if action == "keep":
            has_turned = grew.get(name, after > before) != (after > before)
            grew[name] = after > before
        else:
            has_turned = action == "take back"
        turns[name, now // 60] += has_turned
    assert all(count <= 1 for (_, minute), count in turns.items() if minute), driven.explained()
    assert driven.rate(60) >= 0.85 / (5 * MS)


# Budgets


def test_no_knob_grows_while_memory_is_refused():
    def make():
        return [Prefetch("ahead", Work(), size()), ParallelMap("read", WAIT, calls(), nbytes=10)], QUICK

    driven = Driven(*make(), admit=lambda stage: False).until(5)
    assert all(stage.counters.refusals for stage in driven.stages)
    assert driven.values == [2, 2]


@pytest.mark.parametrize(("value", "cores"), [(8, 2), (64, 1)])
def test_the_budget_of_cores_holds_on_a_larger_machine(value, cores):
    driven = Driven(*one_map(Work(compute=4 * MS), QUICK, value)(), cores=8, budget=cores).until(4)
    before = driven.simulation.cpu_seconds
    driven.until(10)
    assert driven.actions()["hold back"] >= 1
    assert driven.actions(since=4)["keep"] == 0
    assert driven.values[0] == cores
    assert (driven.simulation.cpu_seconds - before) / 6 <= 1.15 * cores
    unbounded = Driven(*one_map(Work(compute=2 * MS, law="exponential"), QUICK, 8)(), cores=8).until(6)
    assert unbounded.actions()["hold back"] == 0


def test_each_stage_keeps_one_worker_although_they_exceed_the_budget():
    stages = [ParallelMap(f"map {n}", Work(compute=MS), calls(4)) for n in range(3)]
    driven = Driven(stages, Work(), cores=8, budget=1).until(6)
    assert driven.values == [1, 1, 1]
    assert driven.actions(since=4)["hold back"] == 0


# Inline


def test_inline_stages_are_not_tuned_and_do_not_hide_those_upstream():
    stages = [
        ParallelMap("cheap", Work(compute=0.05 * MS), calls(), control=lambda knob, clock: FixedWay(inline=True)),
        ParallelMap("read", WAIT, calls()),
    ]
    driven = Driven(stages, QUICK).until(4)
    assert {name for _, name, action, *_ in driven.log if action == "try"} == {"read"}
    assert driven.values[0] == 2
    assert driven.rate(2) >= 0.9 * 1 / (1.05 * MS)


def test_what_is_on_trial_when_a_stage_becomes_inline_is_taken_back():
    driven = Driven([ParallelMap("map", Work(wait=10 * MS), calls())], QUICK)
    seconds = 0.0
    while not driven.log:
        seconds += 5 * MS
        driven.until(seconds)
    assert driven.actions() == {"try": 1}
    driven.stages[0].controller.inline = True
    driven.until(seconds + 1)
    assert driven.values == [2]
    _, name, action, before, after, reason = driven.log[1]
    assert (name, action, after) == ("map", "take back", 2)
    assert before == driven.log[0][4]
    assert "in the meantime" in reason
    assert len(driven.log) == 2


def test_without_stages_there_is_nothing_to_do():
    tuner = Tuner(2, lambda *decision: pytest.fail("nothing can be decided"))
    assert tuner.look(1.0, ()) > 1.0
    assert tuner.look(2.0, ()) > 2.0


# Whatever the pipeline

times = st.floats(0.3, 20).map(lambda ms: ms * MS)


@st.composite
def works(draw):
    seconds, share = draw(times), draw(st.sampled_from([0, 0, 0.5, 1]))
    law = draw(st.sampled_from(["constant", "exponential", "lognormal"]))
    lock = draw(st.sampled_from([0, 0, 1]))
    return Work(wait=seconds * (1 - share), compute=seconds * share, lock_share=lock, law=law, cv=0.5)


@st.composite
def pipelines(draw):
    """A function that makes one and the same pipeline, and the arguments of its simulation."""
    kinds = [
        (draw(st.booleans()), draw(works()), draw(st.integers(1, 16)), draw(st.sampled_from([1, 1, 4])))
        for _ in range(draw(st.integers(1, 3)))
    ]
    consumer, cores = draw(works()), draw(st.sampled_from([1, 2, 8]))
    nbytes = draw(st.integers(1, 1000))

    def make():
        return [
            ParallelMap(f"map {n}", work, calls(value), takes=takes, nbytes=nbytes)
            if is_map
            else Prefetch(f"prefetch {n}", work, size(value), takes=takes, nbytes=nbytes)
            for n, (is_map, work, value, takes) in enumerate(kinds)
        ], consumer

    return make, {"cores": cores, "seed": draw(st.integers(0, 1000)), "takes": draw(st.sampled_from([1, 1, 8]))}


def tried_and_decided(log):
    """Each knob that was tried, with its values, and what became of it."""
    open_trials = {}
    for _, name, action, before, after, _ in log:
        if action == "try":
            assert name not in open_trials
            assert before != after
            open_trials[name] = before, after
        elif action == "keep":
            assert open_trials.pop(name) == (before, after)
        elif action == "take back":
            assert open_trials.pop(name) == (after, before)
        else:
            assert action in {"settle", "look again", "hold back"}
            assert not open_trials
    return open_trials


@given(pipelines())
@settings(deadline=None, max_examples=8)
def test_any_pipeline_ends_settled_and_no_worse_than_it_began(pipeline):
    make, arguments = pipeline
    driven = Driven(*make(), **arguments)
    for second in range(1, 13):
        driven.until(second)
        assert all(stage.knob.minimum <= stage.knob.value <= stage.knob.maximum for stage in driven.stages)
    still_open = tried_and_decided(driven.log)
    assert driven.actions(since=9)["keep"] <= 1, driven.explained()
    assert driven.actions(since=9)["try"] <= 3 or still_open, driven.explained()
    began = Driven(*make(), is_tuned=False, **arguments).until(12)
    if len(began.simulation.times) >= 200:
        assert driven.rate(9) >= 0.85 * began.rate(9), driven.explained()


@given(pipelines(), st.integers(2, 200))
@settings(deadline=None, max_examples=8)
def test_a_budget_of_bytes_is_never_exceeded(pipeline, elements):
    make, arguments = pipeline
    stages, consumer = make()
    nbytes = stages[0]._nbytes
    budget = nbytes * (elements + 40)

    def admit(stage):
        under_way = sum(stage.buffered()[0] for stage in stages)
        return (under_way + 1) * nbytes <= nbytes * elements

    driven = Driven(stages, consumer, admit=admit, **arguments).until(4)
    assert driven.simulation.peak_bytes <= budget
