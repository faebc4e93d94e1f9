"""Tests of iterator.skip(n): it skips elements without calling functions if possible, and returns their number."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chains.model import Failure, Pipeline, plain
from dataset import Dataset
from dataset.errors import ClosedError
from dataset.testing import assert_elements_equal, no_leaks, outcomes
from support.libraries import Ours
from support.strategies import pipelines

OURS = Ours()
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(pipelines(), st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=6))
def test_stands_where_as_many_calls_of_next_would_bring_it(pipeline: Pipeline, moves):
    expected = pipeline.model()
    # Skipped elements are assumed not to fail, if a failure would affect the elements after them.
    assume(not any(isinstance(outcome, Failure) for outcome in expected))
    position = 0
    with iter(pipeline.make(OURS)) as iterator:
        for skips, count in moves:
            if skips:
                assert iterator.skip(count) == min(count, len(expected) - position)
            else:
                found = [plain(element) for element in itertools.islice(iterator, count)]
                assert found == expected[position : position + count]
            position = min(position + count, len(expected))
        assert [plain(outcome) for outcome in outcomes(iterator)] == expected[position:]


JUMPS = {
    "map": lambda f: Dataset.range(1000).map(f),
    "batch": lambda f: Dataset.range(1000).map(f).batch(4),
    "parallel": lambda f: Dataset.range(1000).map(f, num_parallel_calls=2).batch(2),
    "prefetch": lambda f: Dataset.range(1000).map(f).prefetch(2),
    "repeat": lambda f: Dataset.from_tensor_slices(np.arange(60)).map(f).repeat(10),
    "share": lambda f: Dataset.range(1000).map(f).batch(2).shard_by_process(1, 3),
}


@pytest.mark.parametrize("pipeline", JUMPS)
def test_calls_no_function_for_what_it_jumps_over(pipeline):
    called = []
    expected = list(JUMPS[pipeline](lambda x: x))
    with iter(JUMPS[pipeline](lambda x: called.append(int(x)) or x)) as iterator:
        assert iterator.skip(100) == 100
        assert called == []
        assert_elements_equal([next(iterator)], expected[100:101])
        rest = len(expected) - 101
        assert iterator.skip(rest + 5) == rest
        assert next(iterator, None) is None


def test_jumps_from_the_middle_over_what_is_made_ahead():
    called = []

    def make(f):
        dataset = Dataset.range(100_000).shuffle(100, seed=1, reshuffle_each_iteration=False)
        return dataset.map(f, num_parallel_calls=2).batch(4).prefetch(2)

    expected = list(make(lambda x: x))
    with iter(make(lambda x: called.append(int(x)) or x)) as iterator:
        for position in (0, 5_001, 10_002, 15_003):
            assert_elements_equal([next(iterator)], expected[position : position + 1])
            assert iterator.skip(5_000) == 5_000
        assert len(called) < 1_000


def test_all_is_jumped_over_without_a_call_where_that_ends_it():
    called = []
    iterator = iter(Dataset.range(10).map(called.append))
    assert iterator.skip(10) == 10
    assert iterator.skip(1) == 0
    assert next(iterator, "over") == "over"
    assert called == []
    assert iterator.state_dict()["operator"] is None


def test_goes_on_in_the_middle_of_numbers_by_arithmetic():
    iterator = iter(Dataset.range(10**12).enumerate().skip(3))
    assert next(iterator) == (3, 3)
    for _ in range(3):
        assert iterator.skip(10**11) == 10**11
    assert next(iterator) == (4 + 3 * 10**11, 4 + 3 * 10**11)
    assert iterator.skip(10**12) == 10**12 - 3 * 10**11 - 5


def test_an_element_that_fails_counts_as_one_and_is_not_raised():
    def check(x):
        if x == 2:
            raise ValueError("two")
        return True

    iterator = iter(Dataset.range(6).filter(check))
    assert iterator.skip(4) == 4
    assert list(iterator) == [4, 5]


def test_a_state_behind_it_goes_on_there():
    def make():
        return Dataset.range(50).shuffle(10, seed=1, reshuffle_each_iteration=False).map(lambda x: x).batch(3)

    expected = list(make())
    iterator = iter(make())
    next(iterator)
    iterator.skip(5)
    resumed = iter(make())
    resumed.load_state_dict(iterator.state_dict())
    assert resumed.skip(1) == 1
    assert_elements_equal(list(resumed), expected[7:])
    assert_elements_equal(list(iterator), expected[6:])


def test_uses_up_no_order_of_a_shuffle():
    def orders(*, skips):
        dataset = Dataset.range(20).shuffle(20, seed=1)
        found = []
        for _ in range(3):
            iterator = iter(dataset)
            first = next(iterator)
            if skips:
                iterator.skip(3)
            else:
                _ = [next(iterator) for _ in range(3)]
            found.append([first, *iterator])
        return found

    assert orders(skips=True) == orders(skips=False)


def test_stats_count_what_next_has_given():
    iterator = iter(Dataset.range(100).enumerate())
    next(iterator)
    iterator.skip(50)
    next(iterator)
    assert iterator.stats().elements == 2
    assert [operator.name for operator in iterator.stats().operators] == ["enumerate", "range(100)"]


def test_leaves_nothing_behind():
    with no_leaks():
        iterator = iter(Dataset.range(1000).map(lambda x: x, num_parallel_calls=2).prefetch(2))
        next(iterator)
        iterator.skip(500)
        next(iterator)
        del iterator


@pytest.mark.parametrize(("count", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_refuses_what_is_no_count(count, error):
    with pytest.raises(error, match="skip"):
        iter(Dataset.range(3)).skip(count)


def test_is_refused_after_close():
    iterator = iter(Dataset.range(3))
    iterator.close()
    with pytest.raises(ClosedError):
        iterator.skip(1)
