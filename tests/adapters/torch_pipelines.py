"""Functions and pipelines that tests send to DataLoader workers; the workers import the functions by name."""

from __future__ import annotations

import numpy as np

from dataset import Dataset


def double(x):
    return 2 * x


def numbers(batches):
    """Return all elements as ints, in order."""
    return [int(x) for batch in batches for x in np.atleast_1d(batch)]


def third(x):
    return x % 3 > 0


def four_from(x):
    return Dataset.range(4 * x, 4 * x + 4)


IN_ORDER = {
    "arrays": lambda: Dataset.from_tensor_slices(np.arange(101)).batch(10),
    "range": lambda: Dataset.range(101).map(double).batch(10),
    "elements": lambda: Dataset.range(23),
    "filter": lambda: Dataset.range(60).filter(third).batch(5),
    "interleave": lambda: Dataset.range(7).interleave(four_from, 3).batch(3),
    "threads": lambda: Dataset.range(80).map(double, num_parallel_calls=4).batch(6).prefetch(2),
    "few": lambda: Dataset.range(1).batch(1),
    "none": lambda: Dataset.range(0).batch(1),
    "cache": lambda: Dataset.range(50).cache().batch(4),
    "repeat": lambda: Dataset.range(13).repeat(3).batch(5),
    "dropped": lambda: Dataset.range(101).batch(10, drop_remainder=True),
}
SHUFFLED = {
    "unseeded": lambda: Dataset.range(101).shuffle(30).batch(7),
    "seeded": lambda: Dataset.range(101).shuffle(200, seed=4).batch(7),
    "of arrays": lambda: Dataset.from_tensor_slices(np.arange(101)).shuffle(50).batch(10),
    "of mapped": lambda: Dataset.range(101).map(double).shuffle(20).batch(8),
    "of batches": lambda: Dataset.range(101).batch(5).shuffle(5),
    "above a cache": lambda: Dataset.range(50).map(double).cache().shuffle(20).batch(4),
    "of files, say": lambda: Dataset.range(7).shuffle(7).interleave(four_from, 3).shuffle(6, seed=1).batch(3),
    "repeated": lambda: Dataset.range(13).shuffle(13).repeat(3).batch(5),
}
"""So many elements that two passes are very unlikely to have the same order."""

FROZEN = {
    "not reshuffled": lambda: Dataset.range(50).shuffle(20, reshuffle_each_iteration=False).batch(4),
}
