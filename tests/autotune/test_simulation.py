"""The simulation against what is known without it: queues with formulas, constant times, shared cores."""

import pytest
from simulation import Machine, ParallelMap, Prefetch, Simulation, Work

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


@pytest.mark.parametrize(("size", "making"), [(1, 1.0), (2, 0.5), (4, 1.7), (9, 1.0)])
def test_exponential_times_have_the_throughput_of_a_bounded_queue(size, making):
    room = size + 1  # the element that the consumer works on has left the buffer, not the queue
    load = 1 / making
    empty = 1 / (room + 1) if load == 1 else (1 - load) / (1 - load ** (room + 1))
    measured = period([Prefetch("load", exponential(making), size)], exponential(1.0), elements=20_000)
    assert measured == pytest.approx(1 / (1 - empty), rel=0.03)


def test_a_chain_of_constant_times_is_as_slow_as_its_slowest_part():
    stages = [Prefetch("a", Work(wait=2), 1), ParallelMap("b", Work(wait=12), 4), Prefetch("c", Work(wait=1), 1)]
    assert period(stages, Work(wait=1)) == pytest.approx(3, rel=1e-2)
    stages = [Prefetch("batch", Work(), 2, takes=32), ParallelMap("m", Work(wait=1.0), 4)]
    assert period(stages, elements=200) == pytest.approx(8.0, rel=1e-3)
    inline = ParallelMap("m", Work(compute=1.0), 4, input_work=Work(wait=1.0), inline=True)
    assert period([inline], Work(wait=2.0)) == pytest.approx(4.0)


# Cores and the lock


def ends_of(parts, cores, **arguments):
    """Return when each of (start, compute, locked) is done."""
    machine = Machine(cores, **arguments)
    ends = {}

    def thread(number, start, compute, locked):
        yield from machine.doing(start, compute, locked)
        ends[number] = machine.now

    for number, part in enumerate(parts):
        machine.start(thread(number, *part))
    machine.run_until(lambda: len(ends) == len(parts), 1000)
    return [ends[number] for number in range(len(parts))]


@pytest.mark.parametrize(
    ("parts", "cores", "ends"),
    [
        ([(0, 1, 0)] * 3, 2, [1.5] * 3),
        ([(0, 2, 0), (1, 1, 0)], 1, [3, 3]),
        ([(0, 1, 0), (0, 3, 0)], 1, [2, 4]),
        ([(0, 1, 0), (0, 3, 0)], 2, [1, 3]),
        ([(0, 1, 0)], 0.5, [2]),
        ([(1, 0, 0)] * 50, 1, [1] * 50),  # sleeping
        ([(0, 0, 3), (1, 0, 1)], 8, [4, 3]),  # the lock is held in turns
        ([(0, 0, 1), (0, 2, 0)], 1, [2, 3]),
        ([(0, 0, 1), (0, 0, 1), (0, 1, 0)], 1, [3, 3, 2]),  # one core for both
    ],
)
def test_cores_are_shared_equally_and_the_lock_is_held_in_turns(parts, cores, ends):
    assert ends_of(parts, cores) == pytest.approx(ends)


def test_cores_that_others_use_make_computing_slower():
    assert ends_of([(0, 1, 0)], cores=1, steal=lambda now: 0.5 if now < 1 else 0.0) == pytest.approx([1.5])
    assert ends_of([(0, 1, 0)], cores=1, steal=lambda now: 0.0 if now > 2 else 1.0) == pytest.approx([3], abs=0.02)


# Stages


# What is counted


def test_the_counters_of_a_map_add_up():
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


# The run


def test_a_run_is_reproducible_and_resumes_where_it_stopped():
    def new(seed):
        work = Work(wait=1.0, compute=0.5, lock_share=0.5, law="lognormal")
        return Simulation([Prefetch("p", work, 2), ParallelMap("m", work, 4)], work, seed=seed)

    whole, parts, other = new(1), new(1), new(2)
    for simulation in (whole, other):
        simulation.run(elements=100)
    parts.run(elements=30)
    parts.run(until=parts.now + 5.0)
    parts.run(elements=100 - len(parts.times))
    assert parts.times == pytest.approx(whole.times)
    assert whole.times != other.times
