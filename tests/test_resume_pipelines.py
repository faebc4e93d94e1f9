"""Tests that long pipelines, interrupted anywhere, continue after a resume as without the interruption.

Their buffers hold thousands of elements. test_resume_search.py draws random pipelines, with few elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset import Dataset
from support.resuming import check_every_place, check_stops, examples

MANY = 50_000


def streamed() -> Dataset[Any]:
    return Dataset.range(MANY).filter(lambda x: x % 7 != 3)


LONG: dict[str, Callable[[], Dataset[Any]]] = {
    "shuffled, mapped, batched": lambda: (
        Dataset.from_tensor_slices((np.arange(MANY), np.arange(2 * MANY).reshape(MANY, 2)))
        .shuffle(5000, seed=1)
        .map(lambda x, y: (x, y + x))
        .batch(100)
        .prefetch(2)
    ),
    "shuffled all, in epochs": lambda: Dataset.range(MANY).shuffle(None, seed=1).repeat(2).batch(1000),
    "streamed, shuffled, in epochs": lambda: streamed().shuffle(5000, seed=1).repeat(2).batch(1000),
    "streamed, mapped by threads": lambda: (
        streamed().map(lambda x: (x, x * 2), num_parallel_calls=2).batch(500).prefetch(4)
    ),
    "interleaved by threads": lambda: (
        Dataset.range(100)
        .interleave(lambda x: Dataset.range(1000 * x, 1000 * x + 1000), cycle_length=8, num_parallel_calls=2)
        .batch(500)
    ),
    "cached, shuffled, in epochs": lambda: streamed().cache().shuffle(3000, seed=2).repeat(2).batch(1000),
    "windows": lambda: streamed().window(1000, 700).flat_map(lambda window: window.batch(1000)),
    "grouped": lambda: (
        streamed().take(20_000).group_by_window(lambda x: x % 5, lambda _, group: group.batch(500), window_size=500)
    ),
    "unique": lambda: streamed().map(lambda x: x * x % 5003).unique().batch(100),
    "rebatched": lambda: streamed().batch(999).rebatch([1000, 17]),
    "mixed": lambda: Dataset.sample_from_datasets([Dataset.range(MANY), streamed()], [0.7, 0.3], seed=5).batch(1000),
}


@pytest.mark.parametrize("name", LONG)
@examples(2)
@given(fractions=st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_a_long_pipeline_goes_on_from_places_anywhere(name, fractions):
    build = LONG[name]
    length = sum(1 for _ in build())
    places = [round(fraction * length) for fraction in fractions]
    found = check_every_place(build, places)
    check_stops(build, places, found)
