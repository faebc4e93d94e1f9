"""The model against its formulas, and against the simulation, which knows nothing of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import ParallelMap, Prefetch, Simulation, Work

from dataset.autotune.model import CORES, INTERPRETER_LOCK, Prediction, Section, predict
from dataset.autotune.queues import BUFFER_MAX, buffer_needed, wait_seconds

NOTHING = Work()

# What the model sees of a simulated pipeline


def modelled(stages, consumer, takes=1.0):
    """The root section of a simulated pipeline whose work does not change."""
    ratios = np.cumprod([takes, *(stage.takes for stage in stages)])
    inputs = ()
    for stage, ratio, taken in reversed(list(zip(stages, ratios, [takes, *(s.takes for s in stages)], strict=False))):
        inputs = (section_of(stage, float(ratio), math.ceil(taken), inputs),)
    return Section("consumer", **costs(consumer), inputs=inputs)


def section_of(stage, ratio, taken, inputs):
    if isinstance(stage, Prefetch):
        return Section(stage.name, ratio, **costs(stage._work), buffer=stage.knob.value, inputs=inputs)
    calls = stage.knob.value
    return Section(
        stage.name,
        ratio,
        **costs(stage._work, stage.input_work),
        serial_seconds=stage.input_work.seconds,
        workers=calls,
        buffer=calls + (taken if taken > 1 else 0),
        inputs=inputs,
    )


def costs(work, serial=NOTHING):
    return {
        "wall_seconds": work.seconds,
        "cpu_seconds": work.compute + serial.compute,
        "lock_seconds": work.compute * work.lock_share + serial.compute * serial.lock_share,
    }


def compare(stages, consumer, takes=1.0, cores=2.0, elements=2500):
    """The prediction, and the period that was simulated."""
    prediction = predict(modelled(stages, consumer, takes), cores)
    simulation = Simulation(stages, consumer, takes=takes, cores=cores)
    simulation.run(elements=elements)
    return prediction, simulation.period(since=elements // 10)


# The model against the simulation


def random_work(rng, seconds):
    compute = rng.choice([0.0, 1.0, rng.uniform()])
    seconds *= 10 ** rng.uniform(-0.7, 0.7)
    return Work(
        wait=seconds * (1 - compute),
        compute=seconds * compute,
        lock_share=rng.choice([0, 0, 1, rng.uniform()]),
    )


def random_pipeline(rng):
    """1 to 3 stages and a consumer whose needs are within a factor of five, either way, which is where it is hard."""
    takes = taken = float(rng.choice([1, 1, 1, 8, 0.25]))
    ratio = takes
    count = int(rng.integers(1, 4))
    stages = []
    for number in range(count):
        below = float(rng.choice([1, 1, 1, 1, 4, 0.5])) if number < count - 1 else 1.0
        if rng.uniform() < 0.55:
            calls = int(rng.integers(1, 17))
            reading = Work(compute=10 ** rng.uniform(-3, -1) / ratio) if rng.uniform() < 0.5 else Work()
            work = random_work(rng, calls / ratio / 1.5)
            stages.append(ParallelMap(f"map {number}", work, calls, input_work=reading, takes=below))
        else:
            size = int(rng.choice([1, 2, 4, 16])) * int(rng.choice([1, max(1, taken)]))
            stages.append(Prefetch(f"prefetch {number}", random_work(rng, 1 / ratio), size, takes=below))
        ratio *= below
        taken = below
    return stages, random_work(rng, 1.0), takes, float(rng.choice([1, 2, 4, 16]))


def test_predictions_for_random_pipelines_are_close():
    errors = []
    for seed in range(25):
        prediction, simulated = compare(*random_pipeline(np.random.default_rng([7, seed])), elements=1500)
        errors.append(abs(prediction.seconds / simulated - 1))
    assert np.median(errors) < 0.03
    assert np.quantile(errors, 0.9) < 0.13
    assert max(errors) < 0.30


# What bounds it


@pytest.mark.parametrize(
    ("stages", "consumer", "cores", "binding", "seconds"),
    [
        ([ParallelMap("decode", Work(compute=4.0), 8)], Work(wait=0.5), 2, CORES, 2.0),
        ([ParallelMap("decode", Work(compute=4.0), 8)], Work(compute=1.0), 1, CORES, 5.0),
        ([ParallelMap("parse", Work(compute=1.0, lock_share=1), 8)], Work(wait=0.3), 4, INTERPRETER_LOCK, 1.0),
        ([ParallelMap("read", Work(wait=8.0), 4)], Work(wait=0.5), 2, "read", 2.0),
        ([ParallelMap("read", Work(wait=8.0), 32)], Work(wait=2.0), 2, "consumer", 2.0),
        ([ParallelMap("read", Work(wait=8.0), 32, input_work=Work(wait=2.0))], Work(wait=0.1), 2, "read", 2.0),
        ([Prefetch("p", Work(), 2), ParallelMap("a", Work(wait=4.0), 2)], Work(wait=0.5), 2, "a", 2.0),
        ([Prefetch("p", Work(wait=2.0), 2), ParallelMap("a", Work(wait=4.0), 8)], Work(wait=0.5), 2, "p", 2.0),
    ],
)
def test_the_bottleneck_is_named(stages, consumer, cores, binding, seconds):
    prediction, simulated = compare(stages, consumer, cores=cores, elements=1000)
    assert prediction.binding == binding
    assert simulated == pytest.approx(seconds, rel=0.02)
    assert prediction.seconds == pytest.approx(seconds, rel=0.02)


# The formulas

seconds = st.floats(1e-6, 1e3)
variations = st.floats(0, 4)


def published(x, y, n):
    """The wait of Murray et al. as the steady state of the queue has it: by the sum, not by its closed form."""
    load = x / y
    return y / sum(load**k for k in range(n + 1))


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.integers(1, 30))
def test_for_exponential_times_the_wait_is_the_published_one(x, y, n):
    assert wait_seconds(x, y, n) == pytest.approx(published(x, y, n), rel=1e-6)
    for closeness in (0, 1e-16, 1e-12, 1e-9, 1e-6):
        near = x * (1 + closeness)
        assert wait_seconds(x, near, n) == pytest.approx(published(x, near, n), rel=1e-6)


@given(seconds, seconds, st.integers(0, 10**9), variations)
def test_a_wait_is_bounded_and_monotonic_in_the_buffer_and_the_variation(x, y, n, variation):
    wait = wait_seconds(x, y, n, variation)
    assert max(0.0, y - x) * (1 - 1e-9) <= wait <= y * (1 + 1e-9)
    assert wait_seconds(x, y, n + 1, variation) <= wait * (1 + 1e-9)
    assert n == 0 or wait <= wait_seconds(x, y, n, variation + 0.5) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.0, 1.0, 10), 1.0),
        ((1.0, 0.0, 10), 0.0),
        ((0.0, 0.0, 10), 0.0),
        ((1.0, 2.0, 0), 2.0),
        ((1.0, 2.0, 1e300), 1.0),
        ((2.0, 1.0, 1e300), 0.0),
        ((3.0, 5.0, 1, 0), 2.0),
    ],
)
def test_the_wait_of_extreme_arguments(arguments, expected):
    assert wait_seconds(*arguments) == expected


@given(seconds, seconds, variations, variations, st.floats(1e-3, 0.5))
@settings(deadline=None)
def test_the_buffer_that_is_needed_is_the_smallest_that_is_enough(x, y, variation_x, variation_y, share):
    n = buffer_needed(x, y, variation_x, variation_y, share)
    bound = max(0.0, y - x) + share * max(x, y)
    variation = sum(v if v <= 1 else v**0.6 for v in (variation_x, variation_y)) / 2
    assert 1 <= n <= BUFFER_MAX
    assert n == BUFFER_MAX or wait_seconds(x, y, n, variation) <= bound
    assert n == 1 or wait_seconds(x, y, n - 1, variation) > bound
    assert buffer_needed(1.0, 1.0, 1.0, 1.0, 1e-9) == BUFFER_MAX


# What any prediction must hold to

sections = st.builds(
    Section,
    name=st.sampled_from("abcd"),
    ratio=st.sampled_from([0.01, 1.0, 3.0, 1000.0]),
    wall_seconds=st.floats(0, 1),
    serial_seconds=st.sampled_from([0.0, 0.0, 0.1]),
    workers=st.integers(1, 16),
    buffer=st.sampled_from([0, 1, 4, 100]),
)


@st.composite
def pipelines(draw):
    """A chain of up to four sections, with shares of computing and of the lock."""
    root = None
    for section in draw(st.lists(sections, min_size=1, max_size=4)):
        cpu = section.wall_seconds * draw(st.sampled_from([0, 0.3, 1]))
        lock = cpu * draw(st.sampled_from([0, 0.5, 1]))
        root = replace(section, cpu_seconds=cpu, lock_seconds=lock, inputs=(root,) if root else ())
    return replace(root, ratio=1.0, workers=1)


@given(pipelines(), st.sampled_from([1, 2, 64]))
@settings(deadline=None, max_examples=80)
def test_no_prediction_is_below_what_the_cores_the_lock_and_each_section_need(root, cores):
    prediction = predict(root, cores)
    everything = list(root)
    assert math.isfinite(prediction.seconds)
    assert prediction.binding in {CORES, INTERPRETER_LOCK, *(section.name for section in everything)}
    almost = prediction.seconds * (1 + 1e-3) + 1e-12
    assert almost >= sum(section.ratio * section.cpu_seconds for section in everything) / cores
    assert almost >= sum(section.ratio * section.lock_seconds for section in everything)
    for section in everything:
        assert almost >= section.ratio * section.serial_seconds
        assert almost >= section.ratio * section.wall_seconds / section.workers


@given(st.integers(1, 30), st.floats(0.1, 10))
def test_another_worker_that_only_waits_never_makes_a_steady_pipeline_slower(workers, consumer):
    def seconds(count):
        read = Section("read", wall_seconds=5.0, workers=count, buffer=count)
        return predict(Section("consumer", wall_seconds=consumer, inputs=(read,)), 1).seconds

    assert seconds(workers + 1) <= seconds(workers) * (1 + 1e-3)


def test_a_pipeline_without_costs_takes_no_time_and_one_without_stages_that_of_its_consumer():
    read = Section("read", workers=4, buffer=4)
    assert predict(Section("consumer", inputs=(read,)), 2).seconds == 0
    assert predict(Section("consumer", wall_seconds=0.5), 2) == Prediction(0.5, "consumer")


def test_without_a_buffer_the_work_is_done_for_the_consumer_while_it_waits():
    read = Section("read", wall_seconds=3.0, cpu_seconds=3.0)
    prediction = predict(Section("consumer", wall_seconds=2.0, cpu_seconds=2.0, inputs=(read,)), 1)
    assert prediction.seconds == pytest.approx(5.0, rel=1e-3)


def test_of_several_inputs_the_slowest_counts():
    inputs = tuple(Section(name, wall_seconds=wall, buffer=2) for name, wall in (("a", 1.0), ("b", 4.0), ("c", 3.9)))
    prediction = predict(Section("consumer", wall_seconds=0.5, inputs=inputs), 2)
    assert prediction.seconds == pytest.approx(4.0, rel=0.01)
    assert prediction.binding == "b"
