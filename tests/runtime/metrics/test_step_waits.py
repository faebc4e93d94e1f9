"""Tests of the histogram of waits, against percentiles of all values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset
from dataset.runtime.metrics.step_waits import StepWaits


@given(st.lists(st.floats(1e-8, 1e5), min_size=1, max_size=300))
def test_percentiles_are_those_of_all_values_to_six_percent(values):
    waits, now = StepWaits(), 0.0
    for value in values:
        waits.add(1, now, now + value)
        now += value
    found = waits.percentiles(0.0, 1e12)
    exact = np.percentile(values, [50, 95, 99], method="inverted_cdf")
    # Differences of clock readings are rounded.
    assert (found.p50, found.p95, found.p99) == pytest.approx(tuple(exact), rel=0.07, abs=1e-9 + now * 1e-15)


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(1e-6, 10)), min_size=1, max_size=50))
def test_a_measured_step_counts_for_those_that_it_represents(values):
    weighted, repeated = StepWaits(), StepWaits()
    for steps, seconds in values:
        weighted.add(steps, 0.0, seconds)
        for _ in range(steps):
            repeated.add(1, 0.0, seconds)
    first, second = weighted.percentiles(0.0, 1e12), repeated.percentiles(0.0, 1e12)
    assert (first.p50, first.p95, first.p99) == (second.p50, second.p95, second.p99)


def test_the_history_stays_short_and_loses_nothing():
    waits = StepWaits()
    for second in range(20_000):
        waits.add(1, second, second + (0.5 if second == 7000 else 0.001))
    found = waits.percentiles(0.0, 20_000.5)
    assert 32 <= len(found.by_period) <= 64
    ends = [period[0] for period in found.by_period]
    assert ends == sorted(ends)
    assert ends[-1] == 20_000.5
    slow = [index for index, period in enumerate(found.by_period) if period[3] > 0.1 or period[1] > 0.1]
    assert len(slow) <= 1
    assert sum(sum(period.steps.values()) for period in waits._periods) == 20_000
    assert found.p99 == pytest.approx(0.001, rel=0.07)


def test_before_the_first_step_there_are_none():
    assert StepWaits().percentiles(0.0, 1e12) is None
    assert iter(Dataset.range(3)).stats().step_waits is None
