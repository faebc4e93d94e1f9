"""The simulation against what is known without it: queues with formulas, constant times, shared cores."""

import numpy as np
import pytest
from simulation import Machine, ParallelMap, Prefetch, Simulation, Work

from dataset.runtime.metrics.background import BackgroundOperator, Counters, Tunable

NOTHING = Work()


def simulate(stages, consumer=NOTHING, elements=2000, **arguments):
    simulation = Simulation(stages, consumer, **arguments)
    simulation.run(elements=elements)
    return simulation


def period(stages, consumer=NOTHING, elements=2000, **arguments):
    return simulate(stages, consumer, elements, **arguments).period(since=elements // 10)


def exponential(seconds):
    return Work(wait=seconds, law="exponential")


# Queues


@pytest.mark.parametrize("size", [1, 2, 4, 9])
@pytest.mark.parametrize("making", [0.5, 1.0, 1.7])
def test_exponential_times_give_the_throughput_of_a_queue_with_limited_room(size, making):
    room = size + 1  # what the consumer works on has left the buffer, not the queue
    load = 1 / making
    empty = 1 / (room + 1) if load == 1 else (1 - load) / (1 - load ** (room + 1))
    measured = period([Prefetch("load", exponential(making), size)], exponential(1.0), elements=30_000)
    assert measured == pytest.approx(1 / (1 - empty), rel=0.03)


@pytest.mark.parametrize(("making", "using"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.0)])
def test_with_constant_times_the_longer_one_counts(making, using):
    assert period([Prefetch("load", Work(wait=making), 1)], Work(wait=using)) == pytest.approx(max(making, using))


def test_a_chain_of_constant_times_goes_as_slowly_as_its_slowest_part():
    stages = [Prefetch("a", Work(wait=2), 1), ParallelMap("b", Work(wait=12), 4), Prefetch("c", Work(wait=1), 1)]
    assert period(stages, Work(wait=1)) == pytest.approx(3, rel=1e-2)


@pytest.mark.parametrize("law", ["exponential", "lognormal"])
def test_draws_have_the_mean_and_the_variation_they_are_said_to_have(law):
    work = Work(wait=2.0, law=law, cv=0.7)
    gaps = np.diff(simulate([], work, elements=40_000).times)
    assert gaps.mean() == pytest.approx(2.0, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(work.variation, rel=0.08)


def test_as_many_workers_are_busy_as_littles_law_says():
    stage = ParallelMap("decode", exponential(3.0), 8)
    simulation = Simulation([stage], Work(wait=1.0))
    seen = []  # at moments that do not depend on what goes on
    for moment in range(1, 4000):
        simulation.run(until=moment * 0.997)
        seen.append(stage._active)
    assert np.mean(seen) == pytest.approx(3.0 / simulation.period(since=100), rel=0.05)


# Cores and the lock


def ends_of(parts, cores, **arguments):
    """When each of (start, compute, locked) is done."""
    machine = Machine(cores, **arguments)
    ends = {}

    def thread(number, start, compute, locked):
        yield from machine.doing(start, compute, locked)
        ends[number] = machine.now

    for number, part in enumerate(parts):
        machine.start(thread(number, *part))
    machine.run_until(lambda: len(ends) == len(parts), 1000)
    return [ends[number] for number in range(len(parts))]


def test_cores_are_shared_equally():
    assert ends_of([(0, 1, 0)] * 3, cores=2) == pytest.approx([1.5] * 3)
    assert ends_of([(0, 2, 0), (1, 1, 0)], cores=1) == pytest.approx([3, 3])
    assert ends_of([(0, 1, 0), (0, 3, 0)], cores=1) == pytest.approx([2, 4])
    assert ends_of([(0, 1, 0), (0, 3, 0)], cores=2) == pytest.approx([1, 3])
    assert ends_of([(0, 1, 0)], cores=0.5) == pytest.approx([2])


def test_who_needs_the_lock_gets_it_in_turns():
    assert ends_of([(0, 0, 1), (0, 0, 1)], cores=8) == pytest.approx([2, 2])
    assert ends_of([(0, 0, 3), (1, 0, 1)], cores=8) == pytest.approx([4, 3])
    assert ends_of([(0, 0, 1), (0, 2, 0)], cores=1) == pytest.approx([2, 3])
    assert ends_of([(0, 0, 1), (0, 0, 1), (0, 1, 0)], cores=1) == pytest.approx([3, 3, 2])  # one core for both


def test_sleeping_takes_no_core():
    assert ends_of([(1, 0, 0)] * 50, cores=1) == pytest.approx([1] * 50)


def test_others_that_take_a_share_of_the_cores_make_computing_slower():
    assert ends_of([(0, 1, 0)], cores=1, steal=lambda now: 0.5 if now < 1 else 0.0) == pytest.approx([1.5])
    assert ends_of([(0, 1, 0)], cores=1, steal=lambda now: 0.0 if now > 2 else 1.0) == pytest.approx([3], abs=0.02)


def test_all_cores_are_used_where_there_is_enough_to_compute():
    simulation = simulate([ParallelMap("decode", Work(compute=3.0), 6)], cores=2)
    assert simulation.period(since=200) == pytest.approx(1.5, rel=1e-3)
    assert simulation.cpu_seconds / simulation.now == pytest.approx(2, rel=0.01)


def test_threads_gain_nothing_from_each_other_under_the_lock():
    simulation = simulate([ParallelMap("parse", Work(compute=1.0, lock_share=1.0), 8)], cores=16)
    assert simulation.period(since=200) == pytest.approx(1.0, rel=1e-2)
    assert simulation.lock_seconds == simulation.cpu_seconds


# Stages


def test_a_slow_element_stops_nobody_while_the_window_has_room():
    def work(number):
        return Work(wait=20.0 if number == 200 else 1.0)

    ordered = simulate([ParallelMap("m", work, 4)], elements=1000)
    unordered = simulate([ParallelMap("m", work, 4, ordered=False)], elements=1000)
    assert ordered.now == pytest.approx(unordered.now, rel=0.05)
    assert max(np.diff(ordered.times)) > 10
    assert max(np.diff(unordered.times)) < 5


def test_reading_the_inputs_is_done_by_one_worker_at_a_time():
    stage = ParallelMap("m", Work(wait=1.0), 16, input_work=Work(wait=0.5))
    assert period([stage]) == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize(("ordered", "most"), [(False, 4 + 3), (True, 4 * 32)])
def test_no_more_is_held_than_the_knobs_and_the_window_allow(ordered, most):
    prefetch, decode = Prefetch("p", Work(), 3), ParallelMap("m", exponential(1.0), 4, ordered=ordered)
    simulation = Simulation([prefetch, decode], Work(wait=5.0))
    held = []
    simulation.run(elements=300, on_time=lambda now: held.append((prefetch.buffered()[0], decode.buffered()[0])))
    assert max(p for p, _ in held) == 3
    assert 4 <= max(m for _, m in held) <= most  # ready, and in the making or behind one that is


def test_who_takes_a_batch_gets_it_although_there_are_fewer_workers():
    stages = [Prefetch("batch", Work(), 2, takes=32), ParallelMap("m", Work(wait=1.0), 4)]
    assert period(stages, elements=200) == pytest.approx(8.0, rel=1e-3)
    assert period([Prefetch("p", Work(wait=1.0), 2)], takes=32, elements=200) == pytest.approx(32)


def test_an_element_may_be_made_into_several():
    simulation = simulate([Prefetch("lines", Work(wait=1.0), 2)], takes=0.25, elements=400)
    assert simulation.period(since=40, until=361) == pytest.approx(0.25)
    assert simulation.stages[0].counters.taken == 100


def test_inline_the_consumer_does_the_work():
    stage = ParallelMap("m", Work(compute=1.0), 4, input_work=Work(wait=1.0), inline=True)
    assert period([stage], Work(wait=2.0)) == pytest.approx(4.0)
    assert stage.counters.taken == stage.counters.elements == 2000
    assert stage.counters.wait_seconds == 0


def test_a_stage_may_turn_inline_and_back_while_it_works():
    stage = ParallelMap("m", Work(wait=1.0), 4)
    simulation = Simulation([stage])
    periods = []
    for stage.inline in (False, True, False):
        begin = len(simulation.times)
        simulation.run(elements=400)
        periods.append(simulation.period(since=begin + 50))
    assert periods == pytest.approx([0.25, 1.0, 0.25], rel=0.05)


def test_a_knob_may_be_turned_while_it_works():
    stage = ParallelMap("m", Work(wait=1.0), Tunable("num_parallel_calls", 1, 1, 16))
    simulation = Simulation([stage])
    periods = []
    for stage.knob.value in (1, 8, 2):
        begin = len(simulation.times)
        simulation.run(elements=400)
        periods.append(simulation.period(since=begin + 100))
    assert periods == pytest.approx([1, 1 / 8, 1 / 2], rel=0.02)


def test_the_work_may_change_and_pause():
    def consumer(number):
        return Work(wait=10.0 if number == 300 else 3.0 if number >= 500 else 1.0)

    simulation = simulate([Prefetch("p", Work(wait=0.5), 2)], consumer, elements=1000)
    assert simulation.period(since=100, until=300) == pytest.approx(1)
    assert simulation.times[300] - simulation.times[299] == pytest.approx(10)
    assert simulation.period(since=500) == pytest.approx(3)


# What is counted


def test_stages_are_what_the_tuner_expects_of_stages():
    stages: list[BackgroundOperator] = [ParallelMap("m", Work(wait=1.0), 2), Prefetch("p", Work(), 2)]
    simulate(stages, elements=10)
    assert [stage.knob.name for stage in stages] == ["num_parallel_calls", "buffer_size"]
    assert not any(stage.inline for stage in stages)


def test_every_counter_is_filled():
    refusing = iter([False] + [True] * 10_000)
    work = Work(wait=1.0, compute=1.0, law="exponential")
    stages = [Prefetch("p", work, 2, nbytes=10), ParallelMap("m", work, 2, input_work=Work(wait=0.1), nbytes=5)]
    simulate(stages, work, admit=lambda stage: next(refusing))
    for name in Counters.__slots__:
        total = sum(getattr(stage.counters, name) for stage in stages)
        assert total > 0 or name in {"least_ready", "waiting_since"}, name
        assert total < 1 << 60, name


def test_the_counters_of_a_stage_add_up():
    stage = ParallelMap("m", Work(wait=2.0, compute=1.0), 4, input_work=Work(wait=0.25), nbytes=7)
    simulation = simulate([stage], Work(wait=0.1), cores=8, elements=1000)
    counters = stage.counters
    assert counters.taken == 1000
    assert counters.elements == counters.tasks == pytest.approx(1000, abs=12)
    assert counters.nbytes == 7 * counters.elements
    assert counters.work_seconds == pytest.approx(3 * counters.elements)
    assert counters.squares == pytest.approx(9 * counters.elements)
    assert counters.cpu_seconds == pytest.approx(counters.elements)
    assert counters.input_seconds == pytest.approx(0.25 * counters.elements)
    assert counters.wait_seconds + 0.1 * 1000 == pytest.approx(simulation.now)
    assert counters.least_ready == 0


def test_a_prefetch_counts_how_long_it_rests_and_how_few_elements_were_ready():
    stage = Prefetch("p", Work(wait=1.0), 4)
    simulation = Simulation([stage], Work(wait=3.0))
    simulation.run(elements=100)
    stage.counters.least_ready = 1 << 62
    simulation.run(elements=100)
    assert stage.counters.least_ready == 4
    assert stage.counters.rest_seconds == pytest.approx(simulation.now * 2 / 3, rel=0.05)


def test_a_prefetch_counts_waiting_for_the_stage_below_as_work_since_it_cannot_tell():
    upper, lower = Prefetch("upper", Work(wait=1.0), 2), Prefetch("lower", Work(wait=3.0), 2)
    simulate([upper, lower], elements=500)
    assert upper.counters.work_seconds / upper.counters.elements == pytest.approx(3.0, rel=0.02)
    assert upper.counters.input_seconds == 0
    assert lower.counters.wait_seconds == pytest.approx(2 * upper.counters.elements, rel=0.02)


def test_the_peak_of_what_is_held_is_kept():
    simulation = simulate([Prefetch("p", Work(wait=1.0), 5, nbytes=10)], Work(wait=3.0), elements=50)
    assert simulation.peak_bytes == 50
    assert simulation.held_bytes == simulation.stages[0].buffered()[1]


def test_nothing_is_begun_that_is_not_admitted_and_yet_the_consumer_is_served():
    bound = 60
    prefetch = Prefetch("p", Work(wait=0.1), 50, nbytes=10)
    decode = ParallelMap("m", Work(wait=1.0), 8, nbytes=lambda rng: int(rng.integers(5, 11)))

    def admit(stage):
        return 10 * sum(stage.buffered()[0] for stage in simulation.stages) < bound

    simulation = Simulation([prefetch, decode], Work(wait=2.0), takes=4, admit=admit)
    simulation.run(elements=300)
    assert simulation.peak_bytes <= bound
    assert decode.counters.refusals > 0


# The run


def test_a_run_comes_out_the_same_each_time_and_differs_by_the_seed():
    def times(seed):
        work = Work(wait=1.0, compute=0.5, lock_share=0.5, law="lognormal")
        stages = [Prefetch("p", work, 2), ParallelMap("m", work, 4)]
        return simulate(stages, work, elements=300, seed=seed).times

    assert times(1) == times(1) != times(2)


def test_a_run_goes_on_where_it_has_stopped():
    def stages():
        return [ParallelMap("m", exponential(3.0), 4)]

    whole = simulate(stages(), exponential(1.0), elements=100)
    parts = Simulation(stages(), exponential(1.0))
    parts.run(elements=30)
    parts.run(until=50.0)
    assert parts.now == 50.0
    parts.run(elements=100 - len(parts.times))
    assert parts.times == pytest.approx(whole.times)


def test_who_drives_a_run_is_called_whenever_something_is_done():
    moments = []
    simulation = Simulation([Prefetch("p", Work(wait=1.0), 1)], Work(wait=3.0))
    simulation.run(elements=3, on_time=moments.append)
    assert moments == pytest.approx([1, 2, 4, 5, 7, 8, 10])


def test_a_run_without_end_is_refused():
    with pytest.raises(ValueError, match="until when"):
        Simulation([]).run()


def test_a_pipeline_that_is_stuck_says_so():
    machine = Machine(1)

    def thread():
        machine.parking()
        yield

    machine.start(thread())
    with pytest.raises(AssertionError, match="nothing can happen"):
        machine.run_until(lambda: False, float("inf"))


def test_work_that_costs_nothing_ends():
    assert simulate([ParallelMap("m", Work(), 4), Prefetch("p", Work(), 4)], elements=100).now == 0
    assert simulate([ParallelMap("m", Work(), 4, inline=True)], elements=100).now == 0
    assert simulate([], elements=100).now == 0
