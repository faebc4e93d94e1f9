"""Tests of len(), bool() and iter() of a dataset against tf.data's."""

import pytest
from cases import SOURCES, failing
from compare import assert_outcomes_equal, attempt, in_both, outcomes, same


def assert_same_length(build):
    ours, theirs = in_both(lambda lib: attempt(lambda lib: len(build(lib)), lib))
    assert type(ours) is type(theirs)
    assert isinstance(ours, TypeError) or ours == theirs


OTHERS = {
    "batches": lambda lib: lib.range(7).batch(2),
    "repeated and skipped": lambda lib: lib.range(7).repeat(3).skip(2),
    "without end": lambda lib: lib.range(7).repeat(),
    "flat_map": lambda lib: lib.range(7).flat_map(lib.Dataset.range),
    "tensors": lambda lib: lib.from_tensors(True),
    "slices": lambda lib: lib.from_tensor_slices([True, False]),
}
test_len = same(SOURCES | OTHERS, by=assert_same_length)


def values(iterator, limit=20):
    return outcomes(iterator, int, limit)


@pytest.mark.parametrize("source", SOURCES)
def test_iter_starts_anew_each_time(source):
    def passes(lib):
        dataset = SOURCES[source](lib)
        assert bool(dataset) is True
        first, second = iter(dataset), iter(dataset)
        return [*values(first, 2), *values(second, 5), *values(first), *values(iter(dataset))]

    assert_outcomes_equal(*in_both(passes))


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

    ours, theirs = in_both(loops)
    assert ours == theirs == [0, "failed", 2, "failed", 4]


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
