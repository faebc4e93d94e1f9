"""Tests of random permutations with random access."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.runtime.random import permutation
from dataset.runtime.random.permutation import Permutation
from dataset.runtime.random.streams import Stream


def whole(order):
    return order.from_on(0).tolist()


@pytest.fixture
def dealt(monkeypatch):
    """Make even small permutations use several groups."""
    deal_few(monkeypatch.setattr)


def deal_few(setattr_):
    for name, value in (("LARGE", 0), ("_PART", 1), ("_GROUP", 16), ("_BLOCK", 64)):
        setattr_(permutation, name, value)


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 1001, 5000])
def test_holds_everything_once(dealt, count):
    assert sorted(whole(Permutation(Stream(3), count))) == list(range(count))


@settings(deadline=None)
@given(st.integers(0, 2**64), st.integers(1, 3000), st.data())
def test_any_part_is_that_of_the_whole(key, count, data):
    with pytest.MonkeyPatch.context() as patched:
        if data.draw(st.booleans()):
            deal_few(patched.setattr)
        expected = whole(Permutation(Stream(key), count))
        order, stream = None, Stream(key)
        for _ in range(5):
            if order is None or data.draw(st.booleans()):
                stream.random(3)  # the position of the stream does not matter
                order = Permutation(stream, count)
            start = data.draw(st.integers(0, count - 1))
            stop = data.draw(st.integers(start + 1, count))
            run = order.run(start, stop).tolist()
            assert run
            assert run == expected[start : start + len(run)]
            assert order.from_on(start).tolist() == expected[start:]


@pytest.mark.parametrize("count", [permutation.LARGE, 2 * permutation._GROUP])
def test_how_many_are_held_at_a_time_does_not_matter(monkeypatch, count):
    expected = Permutation(Stream(5), count)
    assert expected._parts > expected._groups
    part = [expected.run(start, start + 1000) for start in range(0, count, count // 7)]
    monkeypatch.setattr(permutation, "_GROUP", count // 8)
    monkeypatch.setattr(permutation, "_BLOCK", 1 << 13)
    other = Permutation(Stream(5), count)
    assert other._groups != expected._groups
    for start, run in zip(range(0, count, count // 7), part, strict=True):
        assert np.array_equal(other.run(start, start + 1000), run)


def test_few_things_have_the_order_of_the_stream_and_of_many_a_part_is_held_at_a_time():
    assert whole(Permutation(Stream(3), 1000)) == Stream(3).permutation(1000).tolist()
    order = Permutation(Stream(3), 4 * permutation._GROUP)
    order.run(0, 1)
    assert order._things.nbytes < 4 * 1.1 * permutation._GROUP


def test_all_orders_are_equally_likely_and_each_position_gets_each_thing_equally_often(dealt):
    counts = Counter(tuple(whole(Permutation(Stream(key), 4))) for key in range(2400))
    assert len(counts) == 24
    assert sum((found - 100) ** 2 / 100 for found in counts.values()) < 2 * 24 + 30
    rows = np.stack([Permutation(Stream(key), 20).from_on(0) for key in range(2000)])
    for place in (0, 1, 10, 19):
        found = np.bincount(rows[:, place], minlength=20)
        assert ((found - 100) ** 2 / 100).sum() < 2 * 20 + 30


def test_many_things_occur_once_and_neighbours_are_independent():
    order = Permutation(Stream(9), permutation.LARGE + 3).from_on(0)
    assert np.array_equal(np.sort(order), np.arange(len(order)))
    rises = np.count_nonzero(np.diff(order) > 0)
    # The variance of the number of rises in a random order of n things is (n + 1) / 12.
    assert abs(rises - len(order) / 2) < 6 * np.sqrt(len(order) / 12)
    quarters = np.add.reduceat(order < len(order) // 4, np.arange(0, len(order), len(order) // 64))[:64]
    assert np.ptp(quarters) < 12 * np.sqrt(len(order) / 64 * 3 / 16)
