"""Tests of caches and snapshots that are interrupted while they are filled."""

from __future__ import annotations

from typing import Any

import pytest

from dataset import Dataset
from dataset.testing import assert_elements_equal, outcomes
from support.resuming import advanced, assert_from, check_every_place, interrupted, loaded, to_json

SIZE = 8


def counted(calls: list[int], size: int = SIZE) -> Dataset[Any]:
    """Return numbers, recording each when it is computed."""
    return Dataset.range(size).map(lambda x: calls.append(int(x)) or x)


# In memory: a new process has an empty cache


@pytest.mark.parametrize("place", [0, 1, 7, 8, 9, 15, 16])
def test_a_pass_that_was_left_is_made_again_once_and_then_kept(place):
    """The elements before the position are recomputed, because later passes need them; each only once."""
    _, states = interrupted(counted([]).cache().repeat(3), [place])
    calls: list[int] = []
    iterator = loaded(counted(calls).cache().repeat(3), states[place])
    assert calls == []  # not before they are requested
    assert outcomes(iterator) == (list(range(SIZE)) * 3)[place:]
    assert calls == list(range(SIZE))


def test_a_resumed_pass_that_is_left_again_leaves_no_cache():
    calls: list[int] = []
    whole = counted(calls).cache()
    _, states = interrupted(whole.take(3), [2])
    del calls[:]
    with loaded(whole.take(3), states[2]) as iterator:
        advanced(iterator, 1)
    assert calls == [0, 1, 2]
    assert list(whole) == list(range(SIZE))
    assert calls == [0, 1, 2, *range(SIZE)]


READERS = (
    "Dataset.range(4).map(failing(4, 1)){}.cache().apply(lambda kept: Dataset.choose_from_datasets([kept, kept],"
    " Dataset.range(12).map(lambda x: np.int64(x >= 6)), stop_on_empty_dataset=False))"
)
"""A cache that is read in turn: six elements of one pass, then another pass."""


@pytest.mark.parametrize("order", ["", ".shuffle(4)"])
def test_asking_for_a_state_does_not_decide_which_pass_fills_the_cache(order, built):
    with iter(built(READERS.format(order))) as iterator:
        iterator.state_dict()
        found = outcomes(iterator)
    kept = [element for element in found[:4] if not isinstance(element, Exception)]
    assert_elements_equal(found[4:], kept)


TWO = "lambda x: Dataset.range(x, x + 2)"
AHEAD = [
    "shuffle(3, seed=1)",
    "batch(20)",
    "prefetch(2)",
    "map(number, num_parallel_calls=2)",
    f"interleave({TWO}, cycle_length=9, num_parallel_calls=2)",
    "batch(9, num_parallel_calls=2).rebatch(5)",
]
"""Ops that have read all of a pass, which later passes return, when the state is saved."""

TWO_PASSES = (
    "Dataset.range(4).random_map(noisy, seed=1).cache().repeat(2)"
    ".apply(lambda kept: Dataset.sample_from_datasets([kept, kept.repeat(2)], seed=1))"
)
"""When one reader has filled the cache, another is about to end a pass of its own."""

WHOLE = [
    READERS.format(""),
    READERS.format(".shuffle(4)"),
    TWO_PASSES,
    *[
        f"Dataset.range(7).shuffle(7, seed=3).cache().apply({several})"
        for several in (
            "lambda kept: Dataset.zip(kept.repeat(2), kept.repeat(3).skip(1))",
            "lambda kept: kept.take(3).repeat(2).prefetch(2).concatenate(kept).repeat(2)",
            "lambda kept: Dataset.range(3).interleave(lambda x: kept, cycle_length=2, num_parallel_calls=2)",
        )
    ],
    # The first pass over the snapshot fills the cache. A failure in it prevents this pass from being kept.
    *[
        f"Dataset.range({size}).map(failing(5, 1)).cache().repeat(2).snapshot(folder + '/kept')"
        ".apply(lambda kept: kept.concatenate(kept.repeat(2)))"
        for size in (2, 3, 5)
    ],
    *[f"Dataset.range(7).shuffle(7).cache().{ahead}.repeat(3)" for ahead in AHEAD],
    *[f"Dataset.range(3).shuffle(3, seed=1).cache().repeat(2).{ahead}.repeat(3)" for ahead in AHEAD],
]


@pytest.mark.parametrize("chain", WHOLE)
def test_a_cache_that_is_read_in_several_places_or_passes_resumes_anywhere(chain, built):
    check_every_place(lambda: built(chain), range(25))


# In files: another iterator fills the cache


@pytest.mark.parametrize("ahead", ["", ".prefetch(2)", ".map(number, num_parallel_calls=2)"])
@pytest.mark.parametrize("keeper", ["cache", "snapshot"])
def test_another_iterator_may_fill_the_cache_before_the_first_element(keeper, ahead, built, tmp_path):
    """It does so after the state was loaded; the resumed iterator is interrupted again."""

    def new(name: str) -> Any:
        return built(f"Dataset.range(10).map(failing(4, 1)).{keeper}({str(tmp_path / name)!r}){ahead}.repeat(2)")

    found, states = interrupted(new("first"), range(0, 18, 3))
    for place, state in states.items():
        with loaded(new(f"second {place}"), state) as iterator:
            list(new(f"second {place}").ignore_errors())
            advanced(iterator, 2)
            later = to_json(iterator.state_dict())
        with loaded(new(f"second {place}"), later) as iterator:
            assert_from(place + 2, outcomes(iterator), found)
