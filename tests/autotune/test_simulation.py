"""The simulation where test_model.py, which compares it with formulas, does not go: stolen cores, counters, seeds."""

import pytest
from simulation import ParallelMap, Prefetch, Simulation, Work


@pytest.mark.parametrize(
    ("steal", "end"), [(lambda now: 0.5 if now < 1 else 0.0, 1.5), (lambda now: 0.0 if now > 2 else 1.0, 3)]
)
def test_cores_that_others_use_make_computing_slower(steal, end):
    simulation = Simulation([], Work(compute=1), cores=1, steal=steal)
    simulation.run(elements=1)
    assert simulation.now == pytest.approx(end, abs=0.02)


def test_the_counters_of_a_map_add_up():
    stage = ParallelMap("m", Work(wait=2.0, compute=1.0), 4, input_work=Work(wait=0.25), nbytes=7)
    simulation = Simulation([stage], Work(wait=0.1), cores=8)
    simulation.run(elements=1000)
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
