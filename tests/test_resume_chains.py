"""Tests of orders of datasets in several places of a plan, and of caches of elements in any order."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import outcomes
from support.resuming import advanced, loaded, to_json


def shuffled(count: int) -> Dataset[Any]:
    return Dataset.range(count).shuffle(count, seed=1)


def test_each_use_of_a_dataset_and_each_call_that_returns_it_draws_another_order_and_equal_seeds_the_same():
    first, second = (list(map(int, half)) for half in zip(*Dataset.zip(shuffled(50), shuffled(50)), strict=True))
    assert first == second
    one = shuffled(50)
    found = np.array(list(one.concatenate(one))).reshape(2, 50).tolist()
    assert found[0] == first
    use, other = (Dataset.range(2).flat_map(lambda _: one) for _ in range(2))
    found += np.array(list(use.concatenate(other).repeat(2))).reshape(8, 50).tolist()
    assert len(set(map(tuple, found))) == 10
    assert all(sorted(order) == list(range(50)) for order in found)


def test_an_op_that_has_not_begun_resumes_in_its_iteration():
    """The second dataset is opened after the state was saved, in the third epoch of the loop."""

    def build() -> Dataset[Any]:
        return (
            Dataset.range(3)
            .concatenate(Dataset.range(1).flat_map(lambda _: Dataset.range(0)))
            .concatenate(Dataset.range(20).random_map(lambda draws, x: x + draws.integers(1000), seed=3))
        )

    dataset = build()
    outcomes(iter(dataset)), outcomes(iter(dataset))
    iterator = iter(dataset)
    next(iterator)
    state = to_json(iterator.state_dict())
    assert outcomes(loaded(build(), state)) == outcomes(iterator)


def kept(kind: str, folder: Path, *, is_first_late: bool) -> Dataset[Any]:
    """Cached numbers from a parallel map without order. The first one is the last of four if its call is slow."""
    has_come = threading.Event()

    def spread(x: Any) -> Any:
        if x == 0 and is_first_late:
            has_come.wait(1)
        if x == 3:
            has_come.set()
        return x + 0

    found = Dataset.range(12).map(spread, num_parallel_calls=4, deterministic=False)
    if kind == "snapshot":
        return found.snapshot(str(folder)).repeat(2)
    return found.cache(str(folder) if kind == "cache in files" else "").repeat(2)


@pytest.mark.parametrize("kind", ["cache", "cache in files", "snapshot"])
def test_what_is_kept_resumes_where_the_order_is_left_to_chance(kind, tmp_path):
    for place in (1, 3, 11, 12, 15):
        with iter(kept(kind, tmp_path / f"first {place}", is_first_late=True)) as iterator:
            got = advanced(iterator, place)
            state = to_json(iterator.state_dict())
        with loaded(kept(kind, tmp_path / f"second {place}", is_first_late=False), state) as resumed:
            got += outcomes(resumed)
        assert Counter(map(int, got)) == Counter([*range(12), *range(12)])
