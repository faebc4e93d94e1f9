"""Tests that chains of stateful ops that once failed resume exactly. test_resume_search.py draws more chains."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import outcomes
from support.resuming import advanced, check_every_place, check_stops, loaded, to_json

# One dataset that draws a new order in each use, in several places of a plan


def shuffled(count: int = 5, seed: int | None = 1) -> Dataset[Any]:
    return Dataset.range(count).shuffle(count, seed=seed)


def nested(seed: int) -> Dataset[Any]:
    return (
        Dataset.from_tensor_slices(np.arange(2))
        .shuffle(2, seed=seed)
        .take(33)
        .shuffle(2, seed=seed)
        .repeat(2)
        .shuffle(5, seed=seed)
        .repeat(2)
    )


def with_shared_in_function(passes: int, seed: int | None) -> Dataset[Any]:
    shared = shuffled(3, seed).repeat(passes)
    return Dataset.range(3).flat_map(lambda x: shared.map(lambda y: 10 * x + y)).repeat(2)


TWICE: dict[str, Callable[[Dataset[Any]], Dataset[Any]]] = {
    "concatenate": lambda d: d.concatenate(d).repeat(2),
    "concatenate, shuffled": lambda d: d.concatenate(d).shuffle(4, seed=2).repeat(2),
    "zip": lambda d: Dataset.zip(d, d).repeat(2),
    "zip, one repeated": lambda d: Dataset.zip(d, d.take(2).repeat(3)).repeat(2),
    "zip, one without end": lambda d: Dataset.zip(d.repeat().take(8), d.repeat()).repeat(2),
    "sample_from_datasets": lambda d: Dataset.sample_from_datasets([d, d.map(lambda x: -x)], seed=3).repeat(2),
    "choose_from_datasets": lambda d: Dataset.choose_from_datasets(
        [d, d.repeat(2)], Dataset.range(30).map(lambda x: x % 2), stop_on_empty_dataset=False
    ).repeat(2),
    "rejection_resample": lambda d: d.repeat(3).rejection_resample(lambda x: x % 2, [0.2, 0.8], seed=4).repeat(2),
    "weights": lambda d: Dataset.sample_from_datasets(
        [d, d.map(lambda x: -x)], d.map(lambda x: np.array([1.0, x + 1.0])), seed=3
    ).repeat(2),
    "by threads": lambda d: Dataset.zip(d.prefetch(2).repeat(3), d.map(lambda x: x, num_parallel_calls=2).repeat(3)),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_dataset_that_is_used_twice_goes_on_in_its_orders(name):
    build = lambda: TWICE[name](shuffled())
    found = check_every_place(build, range(40))
    check_stops(build, [3, 9, 17], found)


@pytest.mark.parametrize("seed", range(8))
def test_nested_repetitions_of_shuffles_go_on_in_their_orders(seed):
    found = check_every_place(lambda: nested(seed), range(12))
    check_stops(lambda: nested(seed), [1, 4, 6], found)


@pytest.mark.parametrize("seed", [7, None])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_shared_dataset_that_a_function_returns_goes_on_in_its_orders(passes, seed):
    check_every_place(lambda: with_shared_in_function(passes, seed), range(40))


@pytest.mark.parametrize("calls", [None, 2])
def test_shuffles_without_a_seed_that_a_function_builds_go_on_in_their_orders(calls):
    def build() -> Dataset[Any]:
        return (
            Dataset.range(6)
            .interleave(
                lambda x: (
                    Dataset.range(10 * x, 10 * x + 4).shuffle(4).flat_map(lambda y: shuffled(3, None).take(y % 3))
                ),
                cycle_length=2,
                num_parallel_calls=calls,
            )
            .repeat(2)
        )

    check_every_place(build, range(40))


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


def test_an_op_that_has_not_begun_goes_on_in_its_iteration():
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


# Caches without a deterministic order


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


@pytest.mark.parametrize("place", [1, 3, 11, 12, 15])
@pytest.mark.parametrize("kind", ["cache", "cache in files", "snapshot"])
def test_what_is_kept_goes_on_where_the_order_is_left_to_chance(kind, place, tmp_path):
    with iter(kept(kind, tmp_path / "first", is_first_late=True)) as iterator:
        got = advanced(iterator, place)
        state = to_json(iterator.state_dict())
    with loaded(kept(kind, tmp_path / "second", is_first_late=False), state) as resumed:
        got += outcomes(resumed)
    assert Counter(map(int, got)) == Counter([*range(12), *range(12)])
