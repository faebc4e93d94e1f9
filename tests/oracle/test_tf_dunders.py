"""Tests of len(), bool() and iter() of a dataset against tf.data's."""

import pytest
from cases import SOURCES
from compare import assert_outcomes_equal, attempt, in_both, outcomes, same


def assert_same_length(build):
    ours, theirs = in_both(lambda lib: attempt(lambda lib: len(build(lib)), lib))
    assert type(ours) is type(theirs)
    assert isinstance(ours, TypeError) or ours == theirs


def values(iterator, limit=20):
    return outcomes(iterator, int, limit)


def assert_same_passes(build):
    def passes(lib):
        dataset = build(lib)
        assert bool(dataset) is True
        first, second = iter(dataset), iter(dataset)
        return [*values(first, 2), *values(second, 5), *values(first), *values(iter(dataset))]

    assert_outcomes_equal(*in_both(passes))


test_len = same("source", source=SOURCES, by=assert_same_length)
test_len_of_others = same(
    ["range(7).batch(2)", "range(7).flat_map(range)", "from_tensors(True)"], by=assert_same_length
)
test_iter_starts_anew_each_time = same("source", source=SOURCES, by=assert_same_passes)


def test_a_loop_ends_at_a_failure_and_another_goes_on_behind_it():
    def loops(lib):
        iterator, found = iter(lib.failing(1, 3, size=5)), []
        for _ in range(4):
            try:
                for element in iterator:
                    found.append(int(element))  # noqa: PERF401  # the elements before a failure are kept
            except Exception:
                found.append("failed")
        return found

    assert in_both(loops) == ([0, "failed", 2, "failed", 4],) * 2


def test_what_a_dataset_is_and_is_not():
    def check(lib):
        dataset, iterator = lib.range(3), iter(lib.range(2))
        assert iter(iterator) is iterator
        assert [values(iterator), values(iterator), next(iterator, None)] == [[0, 1], [], None]
        assert [(int(a), int(b)) for a, b in zip(dataset, dataset.skip(1), strict=False)] == [(0, 1), (1, 2)]
        with pytest.raises(TypeError):
            next(dataset)
        assert dataset != lib.range(3)
        assert len({dataset, dataset, lib.range(3)}) == 2

    in_both(check)
