"""The model against its formulas, and against the simulation, which knows nothing of them."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import ParallelMap, Prefetch, Simulation, Work

from dataset.autotune.model import CORES, INTERPRETER_LOCK, Prediction, Section, predict
from dataset.autotune.queues import buffer_needed

NOTHING = Work()

# What the model sees of a simulated pipeline


def modelled(stages, consumer, takes=1.0):
    """The root section of a simulated pipeline whose work does not change."""
    root = section = Section("consumer", **costs(consumer))
    elements = 1.0
    for stage, taken in zip(stages, [takes, *(stage.takes for stage in stages)], strict=False):
        elements *= taken
        below = section_of(stage, elements, math.ceil(taken))
        section.inputs.append(below)
        section = below
    return root


def section_of(stage, elements, taken):
    if isinstance(stage, Prefetch):
        return Section(stage.name, elements, **costs(stage._work, elements), buffer=stage.knob.value)
    calls = stage.knob.value
    return Section(
        stage.name,
        elements,
        **costs(stage._work, elements, stage.input_work),
        serial_seconds=elements * stage.input_work.seconds,
        workers=calls,
        buffer=calls + (taken if taken > 1 else 0),
    )


def costs(work, elements=1.0, serial=NOTHING):
    return {
        "seconds": elements * work.seconds,
        "cpu_seconds": elements * (work.compute + serial.compute),
        "lock_seconds": elements * (work.compute * work.lock_share + serial.compute * serial.lock_share),
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


# The size of a buffer


def published(x, y, n):
    """The wait of Murray et al. as the steady state of the queue has it: by the sum, not by its closed form."""
    load = x / y
    return y / sum(load**k for k in range(n + 1))


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.02, 0.5))
@settings(deadline=None)
def test_for_exponential_times_the_buffer_is_the_smallest_that_is_enough(x, y, share):
    for near in (x, y * (1 + 1e-16), y * (1 + 1e-12), y * (1 + 1e-9), y * (1 + 1e-6)):
        n = buffer_needed(near, y, 1.0, share)
        bound = max(0.0, y - near) + share * max(near, y)
        assert published(near, y, n) <= bound * (1 + 1e-6)
        assert n == 1 or published(near, y, n - 1) >= bound * (1 - 1e-6)


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(0, 4), st.floats(1e-3, 0.5))
def test_times_that_vary_more_need_a_larger_buffer(x, y, variation, share):
    assert buffer_needed(x, y, 0.0, share) == 1
    assert 1 <= buffer_needed(x, y, variation, share) <= buffer_needed(x, y, variation + 0.5, share)


@pytest.mark.parametrize(("x", "y"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (1e-9, 1e9), (1e9, 1e-9)])
def test_a_producer_or_a_consumer_that_takes_no_time_needs_no_buffer(x, y):
    assert buffer_needed(x, y, 4.0, 0.03) == 1


# What any prediction must hold to

sections = st.builds(
    Section,
    name=st.uuids(),
    elements=st.sampled_from([0.01, 1.0, 3.0, 1000.0]),
    seconds=st.floats(0, 1),
    serial_seconds=st.sampled_from([0.0, 0.0, 0.1]),
    workers=st.integers(1, 16),
    buffer=st.sampled_from([0, 1, 4, 100]),
)


@st.composite
def pipelines(draw):
    """A chain of up to four sections, with shares of computing and of the lock."""
    chain = draw(st.lists(sections, min_size=1, max_size=4))
    for section, source in itertools.pairwise(chain):
        section.cpu_seconds = section.seconds * draw(st.sampled_from([0, 0.3, 1]))
        section.lock_seconds = section.cpu_seconds * draw(st.sampled_from([0, 0.5, 1]))
        section.inputs = [source]
    return chain[0]


@given(pipelines(), st.sampled_from([1, 2, 64]))
def test_no_prediction_is_below_what_the_cores_the_lock_and_each_section_need(root, cores):
    prediction = predict(root, cores)
    everything = list(root)
    assert math.isfinite(prediction.seconds)
    assert prediction.binding in {CORES, INTERPRETER_LOCK, *(section.name for section in everything)}
    assert prediction.seconds >= sum(section.cpu_seconds for section in everything) / cores
    assert prediction.seconds >= sum(section.lock_seconds for section in everything)
    for section in everything:
        assert prediction.seconds >= section.serial_seconds
        assert prediction.seconds >= section.seconds / section.workers


def test_a_pipeline_without_costs_takes_no_time_and_one_without_stages_that_of_its_consumer():
    read = Section("read", workers=4, buffer=4)
    assert predict(Section("consumer", inputs=[read]), 2).seconds == 0
    assert predict(Section("consumer", seconds=0.5), 2) == Prediction(0.5, "consumer")


@pytest.mark.parametrize("buffer", [0, 2, 6, 8])
def test_a_buffer_that_holds_a_part_of_a_batch_hides_that_part(buffer):
    """The rest of the batch is read while the consumer waits for it."""
    read = Section("read", elements=8, seconds=9.0, buffer=buffer)
    assert predict(Section("consumer", seconds=2.0, inputs=[read]), 1).seconds == max(9.0, 2.0 + 9 * (1 - buffer / 8))
