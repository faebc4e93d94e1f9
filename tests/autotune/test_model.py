"""The model against its formulas, and against the simulation, which knows nothing of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation import ParallelMap, Prefetch, Simulation, Work

from dataset.autotune.model import CORES, INTERPRETER_LOCK, Prediction, Section, gain, predict
from dataset.autotune.queues import BUFFER_MAX, buffer_needed, parallelism_needed, wait_seconds

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
        ordered=stage.ordered,
        buffer=calls + (taken if taken > 1 else 0),
        inputs=inputs,
    )


def costs(work, serial=NOTHING):
    return {
        "wall_seconds": work.seconds,
        "cpu_seconds": work.compute + serial.compute,
        "lock_seconds": work.compute * work.lock_share + serial.compute * serial.lock_share,
        "variation": work.variation,
    }


def compare(stages, consumer, takes=1.0, cores=2.0, elements=2500):
    """The prediction, and the period that was simulated."""
    prediction = predict(modelled(stages, consumer, takes), cores)
    simulation = Simulation(stages, consumer, takes=takes, cores=cores)
    simulation.run(elements=elements)
    return prediction, simulation.period(since=elements // 10)


# The model against the simulation

LAWS = ["constant", "exponential", "lognormal"]


def random_work(rng, seconds):
    compute = rng.choice([0.0, 1.0, rng.uniform()])
    seconds *= 10 ** rng.uniform(-0.7, 0.7)
    return Work(
        wait=seconds * (1 - compute),
        compute=seconds * compute,
        lock_share=rng.choice([0, 0, 1, rng.uniform()]),
        law=str(rng.choice(LAWS)),
        cv=rng.uniform(0.2, 1.5),
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


def test_a_map_in_any_order_is_faster_if_times_vary():
    def times(ordered):
        return compare([ParallelMap("read", Work(wait=8, law="exponential"), 8, ordered=ordered)], Work(wait=1))

    (ordered, slow), (unordered, quick) = times(ordered=True), times(ordered=False)
    assert unordered.seconds < ordered.seconds
    assert unordered.seconds == pytest.approx(quick, rel=0.1)
    assert ordered.seconds == pytest.approx(slow, rel=0.1)


def work(wait, law="constant"):
    return Work(wait=float(wait), law=law, cv=0.5)


def chain(law, count):
    return [Prefetch(f"p{number}", work(1, law), 1) for number in range(count)], work(1, law)


@pytest.mark.parametrize(
    ("stages", "consumer", "rel"),
    [
        ([ParallelMap("read", work(1, "lognormal"), 1)], work(1), 0.13),
        ([ParallelMap("read", work(2), 2)], work(0.2), 0.13),
        ([ParallelMap("read", work(4, "exponential"), 4)], work(1), 0.13),
        ([ParallelMap("read", work(16, "exponential"), 16)], work(2), 0.13),
        ([ParallelMap("read", work(16, "lognormal"), 16)], work(0.2), 0.13),
        ([Prefetch("load", work(0.5, "exponential"), 1)], work(1, "exponential"), 0.05),
        ([Prefetch("load", work(1, "exponential"), 3)], work(1, "exponential"), 0.05),
        ([Prefetch("load", work(1, "exponential"), 16)], work(1, "exponential"), 0.05),
        ([Prefetch("load", work(2, "lognormal"), 3)], work(1, "lognormal"), 0.05),
        (*chain("constant", 3), 0.06),
        (*chain("exponential", 3), 0.06),
        (*chain("lognormal", 3), 0.06),
    ],
)
def test_predictions_for_maps_prefetches_and_chains_are_close(stages, consumer, rel):
    prediction, simulated = compare(stages, consumer, elements=6000)
    assert prediction.seconds == pytest.approx(simulated, rel=rel)


@pytest.mark.parametrize("size", [2, 16, 40])
def test_a_buffer_smaller_than_a_batch(size):
    prediction, simulated = compare([Prefetch("load", work(0.1), size)], work(1.2), takes=16, elements=500)
    assert prediction.seconds == pytest.approx(simulated, rel=0.1)


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


def test_the_gain_is_that_of_the_throughput():
    read = Section("read", wall_seconds=8.0, workers=2, buffer=4)
    root = Section("consumer", wall_seconds=1.0, inputs=(read,))
    quick_read = replace(root, inputs=(replace(read, wall_seconds=4.0),))
    assert gain(root, quick_read, cores=2) == pytest.approx(1.0, rel=1e-3)
    assert gain(root, replace(root, wall_seconds=0.5), cores=2) == pytest.approx(0.0, abs=1e-3)
    assert gain(root, root, cores=2) == 0


def test_the_gain_is_that_of_the_simulation():
    def stages(seconds):
        return [Prefetch("b", Work(compute=1.0), 2), ParallelMap("a", Work(wait=2.0, compute=seconds), 4)]

    slow, quick = modelled(stages(4.0), Work()), modelled(stages(2.0), Work())
    simulated = [compare(stages(seconds), Work())[1] for seconds in (4.0, 2.0)]
    assert gain(slow, quick, cores=2) == pytest.approx(simulated[0] / simulated[1] - 1, rel=0.15)


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


@pytest.mark.parametrize(("share", "law"), [(0.05, "lognormal"), (0.2, "exponential")])
def test_the_buffer_that_is_needed_is_what_the_simulation_needs(share, law):
    making, using = Work(wait=0.8, law=law, cv=0.7), Work(wait=1.0, law=law, cv=0.7)

    def waited(size):
        simulation = Simulation([Prefetch("load", making, size)], using)
        simulation.run(elements=30_000)
        return simulation.stages[0].counters.wait_seconds / 30_000

    size = buffer_needed(1.0, 0.8, using.variation, making.variation, share)
    assert waited(size) < 1.3 * share
    assert waited(size - 1) > 0.7 * share


def test_as_many_workers_are_needed_as_are_busy():
    assert [parallelism_needed(wall, 1e-3) for wall in (10e-3, 10.1e-3, 0.0)] == [10, 11, 1]
    with pytest.raises(ValueError, match="above 0"):
        parallelism_needed(1.0, 0.0)
    assert buffer_needed(1.0, 1.0, 1.0, 1.0, 1e-9) == BUFFER_MAX


# What any prediction must hold to

sections = st.builds(
    Section,
    name=st.sampled_from("abcd"),
    ratio=st.sampled_from([0.01, 1.0, 3.0, 1000.0]),
    wall_seconds=st.floats(0, 1),
    serial_seconds=st.sampled_from([0.0, 0.0, 0.1]),
    workers=st.integers(1, 16),
    ordered=st.booleans(),
    variation=variations,
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


@given(pipelines(), st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=30)
def test_the_unit_of_time_does_not_matter(root, unit):
    def scaled(section):
        names = ("wall_seconds", "cpu_seconds", "lock_seconds", "serial_seconds")
        times = {name: getattr(section, name) * unit for name in names}
        return replace(section, **times, inputs=tuple(map(scaled, section.inputs)))

    assert predict(scaled(root), 2).seconds == pytest.approx(predict(root, 2).seconds * unit, rel=0.01, abs=1e-12)


@given(st.integers(1, 30), st.floats(0.1, 10), st.booleans())
def test_another_worker_that_only_waits_never_makes_a_steady_pipeline_slower(workers, consumer, ordered):
    def seconds(count):
        read = Section("read", wall_seconds=5.0, workers=count, ordered=ordered, buffer=count)
        return predict(Section("consumer", wall_seconds=consumer, inputs=(read,)), 1).seconds

    assert seconds(workers + 1) <= seconds(workers) * (1 + 1e-3)


def test_many_sections_are_predicted_as_well():
    root = None
    for number in range(12):
        section = Section(f"s{number}", wall_seconds=4.0, cpu_seconds=1.0, lock_seconds=0.1, workers=4, buffer=4)
        root = replace(section, inputs=(root,) if root else ())
    root = Section("consumer", wall_seconds=0.5, inputs=(root,))
    prediction = predict(root, cores=4)
    assert prediction.binding == CORES
    assert 3.0 <= prediction.seconds < 4.0


def test_a_pipeline_without_costs_takes_no_time_and_one_without_stages_that_of_its_consumer():
    read = Section("read", workers=4, buffer=4)
    assert predict(Section("consumer", inputs=(read,)), 2).seconds == 0
    assert gain(read, read, 2) == 0
    assert gain(replace(read, wall_seconds=1.0), read, 2) == math.inf
    assert predict(Section("consumer", wall_seconds=0.5), 2) == Prediction(0.5, "consumer")


@pytest.mark.parametrize("ratio", [0.01, 1000.0])
def test_ratios_far_from_one(ratio):
    read = Section("read", ratio=ratio, wall_seconds=3.0 / ratio, buffer=2 * max(1, ratio))
    assert predict(Section("consumer", wall_seconds=2.0, inputs=(read,)), 2).seconds == pytest.approx(3.0, rel=1e-3)
    assert predict(Section("consumer", wall_seconds=5.0, inputs=(read,)), 2).seconds == pytest.approx(5.0, rel=1e-3)


def test_without_a_buffer_the_work_is_done_for_the_consumer_while_it_waits():
    read = Section("read", wall_seconds=3.0, cpu_seconds=3.0)
    prediction = predict(Section("consumer", wall_seconds=2.0, cpu_seconds=2.0, inputs=(read,)), 1)
    assert prediction.seconds == pytest.approx(5.0, rel=1e-3)


def test_of_several_inputs_the_slowest_counts():
    inputs = tuple(Section(name, wall_seconds=wall, buffer=2) for name, wall in (("a", 1.0), ("b", 4.0), ("c", 3.9)))
    prediction = predict(Section("consumer", wall_seconds=0.5, inputs=inputs), 2)
    assert prediction.seconds == pytest.approx(4.0, rel=0.01)
    assert prediction.binding == "b"
