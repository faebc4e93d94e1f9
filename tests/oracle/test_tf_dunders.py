"""Tests of len(), bool() and iter() of a dataset against tf.data's."""

import pytest
from cases import SOURCES, failing
from compare import assert_outcomes_equal, attempt, oracle, outcomes

from support.libraries import Ours


def length(build):
    return [attempt(lambda lib: len(build(lib)), lib) for lib in (Ours(), oracle())]


@pytest.mark.parametrize("source", SOURCES)
def test_len(source):
    ours, theirs = length(SOURCES[source])
    assert type(ours) is type(theirs)
    assert isinstance(ours, TypeError) or ours == theirs


def test_len_behind_other_transformations():
    for build in (
        lambda lib: lib.Dataset.range(7).batch(2),
        lambda lib: lib.Dataset.range(7).repeat(3).skip(2),
        lambda lib: lib.Dataset.range(7).repeat(),
        lambda lib: lib.Dataset.range(7).flat_map(lib.Dataset.range),
        lambda lib: lib.Dataset.from_tensors(True),
        lambda lib: lib.Dataset.from_tensor_slices([True, False]),
    ):
        ours, theirs = length(build)
        assert type(ours) is type(theirs)
        assert isinstance(ours, TypeError) or ours == theirs


@pytest.mark.parametrize("source", SOURCES)
def test_bool(source):
    for lib in (Ours(), oracle()):
        assert bool(SOURCES[source](lib)) is True


def values(iterator, limit=20):
    return outcomes(iterator, int, limit)


@pytest.mark.parametrize("source", SOURCES)
def test_iter_starts_anew_each_time(source):
    def passes(lib):
        dataset = SOURCES[source](lib)
        first, second = iter(dataset), iter(dataset)
        return [*values(first, 2), *values(second, 5), *values(first), *values(iter(dataset))]

    assert_outcomes_equal(passes(Ours()), passes(oracle()))


def test_iterators_stay_at_the_end():
    for lib in (Ours(), oracle()):
        iterator = iter(lib.Dataset.range(2))
        assert iter(iterator) is iterator
        assert values(iterator) == [0, 1]
        assert values(iterator) == []
        assert next(iterator, None) is None


def test_a_loop_ends_at_a_failure_and_another_goes_on_behind_it():
    def loops(lib):
        iterator, found = iter(failing(lib, 1, 3, size=5)), []
        for _ in range(4):
            try:
                for element in iterator:
                    found.append(int(element))  # noqa: PERF401  # the elements before a failure are kept
            except Exception:
                found.append("failed")
        return found

    assert loops(Ours()) == loops(oracle()) == [0, "failed", 2, "failed", 4]


def test_comprehensions_enumerate_and_zip():
    for lib in (Ours(), oracle()):
        dataset = lib.Dataset.range(4)
        assert [int(x) for x in dataset] == [0, 1, 2, 3]
        assert [(i, int(x)) for i, x in enumerate(dataset)] == [(0, 0), (1, 1), (2, 2), (3, 3)]
        assert [(int(a), int(b)) for a, b in zip(dataset, dataset.skip(1), strict=False)] == [(0, 1), (1, 2), (2, 3)]
        assert max(int(x) for x in dataset) == 3


def test_what_a_dataset_is_not():
    for lib in (Ours(), oracle()):
        dataset = lib.Dataset.range(3)
        with pytest.raises(TypeError):
            next(dataset)
        assert dataset != lib.Dataset.range(3)
        assert len({dataset, dataset, lib.Dataset.range(3)}) == 2
