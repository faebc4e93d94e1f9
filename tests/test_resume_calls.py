"""Tests of the calls of user functions after a resume: elements that were returned are not recomputed.

The exceptions, and where they are documented: the few elements between a mark and the position of a prefetching op
(runtime/state/replay_log.py), the elements of a cache that has to be filled (ops/cache/caching.py), the values of a
generator, and what the function of flat_map or interleave returned for the elements whose datasets were open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dataset import Dataset
from dataset.testing import outcomes
from support.resuming import advanced, interrupted, loaded

SIZE = 30
Function = Callable[[Any], Any]


def streamed(size: int = SIZE) -> Dataset[Any]:
    return Dataset.range(size).filter(lambda x: x >= 0)


def is_noted(function: Function) -> Function:
    """A predicate that is true."""
    return lambda x: function(x) >= 0


IN_TURN: dict[str, Callable[[Function], Dataset[Any]]] = {
    "map": lambda f: Dataset.range(SIZE).map(f),
    "filter": lambda f: Dataset.range(SIZE).filter(is_noted(f)),
    "take_while": lambda f: streamed().take_while(is_noted(f)),
    "scan": lambda f: streamed().scan(0, lambda state, x: (state, f(x))),
    "shuffle, map": lambda f: Dataset.range(SIZE).shuffle(7, seed=1).map(f),
    "map, shuffle": lambda f: streamed().map(f).shuffle(7, seed=1),
    "map in flat_map": lambda f: Dataset.range(6).flat_map(lambda x: Dataset.range(5 * x, 5 * x + 5).map(f)),
    "map in interleave": lambda f: Dataset.range(6).interleave(
        lambda x: Dataset.range(5 * x, 5 * x + 5).map(f), cycle_length=3
    ),
    "map, group_by_window": lambda f: streamed().map(f).group_by_window(lambda x: x % 2, lambda _, group: group, 4),
    "map by threads, prefetch": lambda f: Dataset.range(SIZE).map(f, num_parallel_calls=2).prefetch(3),
}
"""Pipelines that return the numbers below SIZE, in some order, and call the function with each."""

AHEAD: dict[str, Callable[[Function], Dataset[Any]]] = {
    "filter, prefetch": lambda f: Dataset.range(SIZE).filter(is_noted(f)).prefetch(2),
    "map of a stream, by threads": lambda f: streamed().map(f, num_parallel_calls=2),
    "interleave by threads": lambda f: Dataset.range(6).interleave(
        lambda x: Dataset.range(5 * x, 5 * x + 5).map(f), cycle_length=3, num_parallel_calls=2
    ),
}
"""Pipelines whose position after prefetched elements cannot be computed."""


def resumed_calls(make: Callable[[Function], Dataset[Any]], place: int) -> tuple[list[int], Counter[int]]:
    """Return the elements before the position, and the calls after it; there are no calls before the first pull."""
    calls: list[int] = []

    def function(x: Any) -> Any:
        calls.append(int(x))
        return x

    found, states = interrupted(make(function), [place])
    with loaded(make(function), states[place]) as iterator:
        del calls[:]  # finding the spec may compute one element
        iterator.state_dict()
        assert calls == []
        outcomes(iterator)
    return [int(element) for element in found[:place]], Counter(calls)


@pytest.mark.parametrize("name", IN_TURN | AHEAD)
def test_nothing_that_was_handed_out_is_made_again_and_nothing_twice(name):
    """If an op reads ahead, elements that were returned may be recomputed, but only once."""
    for place in (0, 1, 8, SIZE - 1, SIZE):
        before, calls = resumed_calls((IN_TURN | AHEAD)[name], place)
        assert calls.keys() <= set(range(SIZE))
        assert set(calls.values()) <= {1}
        if name in IN_TURN:
            assert not calls.keys() & set(before)


def test_a_resumed_run_is_as_lazy_as_a_new_one():
    calls: list[int] = []
    make = lambda: Dataset.range(SIZE).map(lambda x: calls.append(int(x)) or x)
    _, states = interrupted(make(), [10])
    del calls[:]
    with loaded(make(), states[10]) as iterator:
        advanced(iterator, 3)
    assert calls == [10, 11, 12]
