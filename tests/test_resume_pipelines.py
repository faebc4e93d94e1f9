"""Tests that long pipelines, interrupted anywhere, continue after a resume as without the interruption.

Their buffers hold thousands of elements. test_resume_search.py draws random pipelines, with few elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dataset import Dataset
from support.resuming import check_every_place, check_stops
from support.seeds import rng

MANY = 20_000


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
    "mixed": lambda: Dataset.sample_from_datasets([Dataset.range(MANY), streamed()], [0.7, 0.3], seed=5).batch(1000),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_pipeline_resumes_from_places_anywhere(name):
    length = sum(1 for _ in LONG[name]())
    places = rng("long", name).sample(range(length + 1), 3)
    check_stops(LONG[name], places, check_every_place(LONG[name], places))
