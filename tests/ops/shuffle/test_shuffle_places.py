"""shuffle_places: the elements in the buffer of a shuffle, computed, beside the algorithm that draws one by one."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dataset.ops.shuffle import shuffle_places
from dataset.ops.shuffle.shuffle_places import buffer_behind
from dataset.runtime.random.streams import Stream


def one_by_one(stream, count, size):
    """(slots, hole) behind 1 to ``count`` elements, by the definition."""
    slots, upcoming, hole = list(range(size)), size, None
    for _ in range(count):
        if hole is not None:
            slots[hole] = upcoming
            upcoming += 1
        hole = int(stream.random(1)[0] * size)
        yield list(slots), hole


@settings(deadline=None)
@given(st.integers(0, 2**64), st.integers(1, 40), st.integers(1, 400))
@example(0, 1, 1)
@example(0, 1, 2)
@example(0, 2, 1)
def test_is_the_buffer_of_the_one_by_one_algorithm(key, size, count):
    *_, (slots, hole) = one_by_one(Stream(key), count, size)
    found = buffer_behind(Stream(key), count, size)
    assert found.hole == hole
    assert found.elements.tolist() == slots
    assert found.rest().tolist() == slots[:hole] + slots[hole + 1 :]


@pytest.mark.parametrize("step", [1, 2, 7, 8192])
@pytest.mark.parametrize(("first", "block"), [(1, 1), (3, 2), (3, 4096)])
def test_it_does_not_matter_how_many_draws_are_looked_at_together(step, first, block, monkeypatch):
    monkeypatch.setattr(shuffle_places, "_STEP", step)
    monkeypatch.setattr(shuffle_places, "_FIRST", first)
    monkeypatch.setattr(shuffle_places, "_BLOCK_MIN", block)
    for count, (slots, hole) in enumerate(one_by_one(Stream(5), 200, 13), start=1):
        found = buffer_behind(Stream(5), count, 13)
        assert (found.elements.tolist(), found.hole) == (slots, hole)


def test_far_into_endless_data_only_the_last_draws_are_looked_at():
    class Counting(Stream):
        drawn = 0

        def random(self, count):
            self.drawn += count
            return super().random(count)

    stream = Counting(1)
    found = buffer_behind(stream, 10**15, 1000)
    assert stream.drawn < 30_000
    assert found.elements.min() > 10**15 - 30_000
    assert len(set(found.elements.tolist())) == 1000
    assert found.elements.max() < 10**15 + 1000
