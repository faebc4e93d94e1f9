"""Tests of the shares of functions that run together: which of several fused maps takes the time."""

import json

import numpy as np
import pytest

from dataset import Dataset
from dataset.runtime.metrics import step_times


class Clock:
    """A clock that only the functions under test advance."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(step_times.time, "perf_counter", self.read)

    def read(self):
        return self.now

    def taking(self, seconds, size=1, result=lambda x: x):
        def function(x):
            self.now += seconds
            return result(np.full(size, x.flat[0] if np.ndim(x) else x))

        return function


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def shares(dataset):
    with iter(dataset) as iterator:
        for _ in iterator:
            pass
        found = [operator for operator in iterator.stats().operators if operator.steps]
    return [round(step.share, 3) for operator in found for step in operator.steps]


# Through all functions by chunks, by chunks that are written into batches, and by single elements.
@pytest.mark.parametrize("size", [1, 100_000, 300_000])
def test_the_share_of_each_function(clock, size):
    chain = Dataset.range(100).map(clock.taking(1, size)).map(clock.taking(7, size)).map(clock.taking(2, size))
    assert shares(chain.batch(4)) == [0.1, 0.7, 0.2]


def test_the_shares_in_threads_with_filters_failures_and_several_passes(clock):
    def failing(x):
        clock.now += 3
        raise ValueError

    numbers, long = Dataset.range(100), clock.taking(3)
    for chain in (
        numbers.map(clock.taking(1), num_parallel_calls=1).map(long, num_parallel_calls=1),
        numbers.repeat(10).map(clock.taking(1, result=np.ravel)).filter(clock.taking(3, result=np.all)),
        numbers.map(clock.taking(1)).map(failing).ignore_errors(),
        Dataset.range(3).map(clock.taking(1)).map(long).repeat(50),
    ):
        assert shares(chain) == [0.25, 0.75]


def test_reports_name_the_slowest(clock):
    dataset = Dataset.range(64).map(clock.taking(1)).map(clock.taking(9), name="slow").batch(1)
    with iter(dataset) as iterator:
        list(iterator)
        stats = iterator.stats()
    (operator,) = [operator for operator in stats.operators if operator.steps]
    assert stats.bottleneck.slowest == operator.steps[1]
    assert f"slowest part: slow in {operator.location} takes 90% of its time" in repr(stats)
    assert f"slow in {operator.location} takes 90%" in stats.verdict
    assert json.loads(json.dumps(stats.to_dict()))["operators"][1]["steps"][1]["share"] == 0.9


def test_only_a_sample_of_the_pulls_is_measured():
    times = step_times.StepTimes(2)
    assert [number for number in range(1000) if times.begin_pull()] == [1, 2, 4, 8, 16, 32, 64, 256, 512, 768]
