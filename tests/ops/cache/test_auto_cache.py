"""cache(AUTOTUNE): the place is chosen by measurement, and no choice changes an element."""

import copy
import time

import numpy as np
import pytest

from dataset import AUTOTUNE, Dataset, Options
from dataset.testing import assert_elements_equal, check_laziness, check_operator
from support.op_cases import fail_at, ints


@pytest.fixture
def calls():
    return []


@pytest.fixture
def slow(calls):
    def slow(x):
        calls.append(int(x))
        time.sleep(0.002)
        return x

    return slow


def wide(x):
    return np.full(1000, x)


def with_memory(dataset, nbytes):
    options = Options()
    options.autotune.ram_budget = nbytes
    return dataset.with_options(options)


def note(dataset):
    return next(line for line in dataset.explain().splitlines() if "cache(AUTOTUNE)" in line)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Dataset.range(3).repeat(2).map(str).cache(AUTOTUNE).repeat(2), [b"0", b"1", b"2"] * 4),
        (lambda: Dataset.range(6).map(str).shuffle(6, seed=1).batch(4).cache(AUTOTUNE).repeat(3), None),
        # An element that fails does so in each pass.
        (
            lambda: Dataset.range(3).map(fail_at(1)).cache(AUTOTUNE).repeat(2),
            [*ints(0), ValueError("bad 1"), *ints(2, 0), ValueError("bad 1"), *ints(2)],
        ),
    ],
)
def test_keeps_the_contract_of_operators(make, expected):
    check_operator(make, expected, positions=12)


def test_takes_one_element_for_each():
    check_laziness(lambda numbers: numbers.cache(AUTOTUNE), lambda k: k)


def test_keeps_the_last_elements_that_no_random_op_is_before(calls, slow):
    written = Dataset.range(4).map(wide).shuffle(4, seed=1).batch(2)
    chosen = Dataset.range(4).map(slow).map(wide, name="wide").shuffle(4, seed=1).batch(2).cache(AUTOTUNE)
    assert "cache(AUTOTUNE) the first pass decides where" in note(chosen)
    for _ in range(3):
        assert_elements_equal(list(chosen), list(written))  # with a new order in each
    assert len(calls) == 4
    assert "after wide, which saves" in note(chosen)
    with iter(chosen) as iterator:
        list(iterator)
        stats = iterator.stats()
    assert any("after wide" in operator.note for operator in stats.operators)
    assert "cache(AUTOTUNE) keeps about" in repr(stats)
    assert [operator.name for operator in stats.operators].count("cache() after wide") == 1


def test_the_second_pass_fills_a_place_further_up_if_the_last_is_too_large(calls, slow):
    dataset = with_memory(Dataset.range(20).map(slow).map(wide).cache(AUTOTUNE), 10_000)
    expected = list(Dataset.range(20).map(wide))
    passes = [list(dataset) for _ in range(4)]
    assert all(len(one) == 20 for one in passes)
    for one in passes:
        assert_elements_equal(one, expected)
    assert len(calls) == 40
    assert "after map(slow)" in note(dataset)


def test_keeps_nothing_if_nothing_fits(calls, slow):
    dataset = with_memory(Dataset.range(20).map(slow).map(wide).batch(4).cache(AUTOTUNE), 100)
    for _ in range(3):
        assert len(list(dataset)) == 5
    assert len(calls) == 60
    assert "keeps nothing" in note(dataset)


def test_a_pass_that_a_later_op_ends_early_is_not_cached(calls, slow):
    dataset = Dataset.range(9).map(slow).take(3).cache(AUTOTUNE)
    assert [list(dataset) for _ in range(3)] == [[0, 1, 2]] * 3
    early = Dataset.range(9).map(slow).cache(AUTOTUNE).take(3)
    del calls[:]
    assert [list(early) for _ in range(3)] == [[0, 1, 2]] * 3
    assert len(calls) == 9


def test_arrays_are_as_writable_in_each_pass(slow):
    def add_one(array):
        array += 1
        return array

    kept = Dataset.range(9).map(slow).map(wide).map(add_one).cache(AUTOTUNE)
    for dataset in (with_memory(kept, 10_000), kept):
        for _ in range(3):
            for index, array in enumerate(dataset):
                assert (array == index + 1).all()
                np.add(array, 1, out=array)  # must not change what is kept


def test_pipelines_made_of_one_dataset_share_what_is_kept(calls, slow):
    dataset = Dataset.range(4).map(slow).cache(AUTOTUNE)
    for _ in range(3):
        assert sorted(map(int, dataset.shuffle(4).batch(2).unbatch())) == [0, 1, 2, 3]
    assert len(calls) == 4
    other = copy.deepcopy(dataset)  # a copy decides on its own
    assert len(list(other)) == 4
    assert len(calls) == 8


def test_a_directory_serves_later_processes(calls, slow, tmp_path):
    def make():
        batches = Dataset.range(4).map(slow).shuffle(4, seed=1).batch(2)
        return batches.cache(AUTOTUNE, directory=tmp_path / "cache", on_mismatch="rebuild")

    dataset, written = make(), Dataset.range(4).shuffle(4, seed=1).batch(2)
    passes = [list(written) for _ in range(2)]
    for expected in passes:
        assert_elements_equal(list(dataset), expected)
    assert_elements_equal(list(make()), passes[0])
    assert len(calls) == 4  # read by what could be another process


def test_it_says_why_there_is_nothing_to_keep(slow):
    for _ in range(2):
        dataset = Dataset.range(4).shuffle(4).map(slow).batch(2).cache(AUTOTUNE)
        list(dataset)
        assert "keeps nothing: shuffle(4) from test_auto_cache.py:" in note(dataset)
    assert "keeps nothing: there are no elements that take work" in note(Dataset.range(4).batch(2).cache(AUTOTUNE))
