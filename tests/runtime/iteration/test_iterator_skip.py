"""Tests of iterator.skip(n): it skips elements without calling functions if possible, and returns their number."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chains.chain import Chain
from chains.draw import pipelines
from chains.model import Failure, plain
from dataset import Dataset
from dataset.errors import ClosedError
from dataset.testing import assert_elements_equal, outcomes
from support.libraries import Ours

OURS = Ours()
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(pipelines(), st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=6))
def test_stands_where_as_many_calls_of_next_would_bring_it(pipeline: Chain, moves):
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
    "random map": lambda f: Dataset.range(1000).random_map(lambda draws, x: f(x), seed=1),
    "batch": lambda f: Dataset.range(1000).map(f).batch(4),
    "parallel": lambda f: Dataset.range(1000).map(f, num_parallel_calls=2).batch(2),
    "prefetch": lambda f: Dataset.range(1000).map(f).prefetch(2),
    "repeat": lambda f: Dataset.from_tensor_slices(np.arange(60)).map(f).repeat(10),
    "shuffle": lambda f: (
        Dataset.range(1000).shuffle(100, 1, reshuffle_each_iteration=False).map(f).batch(4).prefetch(2)
    ),
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


def test_all_is_skipped_without_a_call_where_that_ends_it():
    called = []
    iterator = iter(Dataset.range(10).map(called.append))
    assert [iterator.skip(10), iterator.skip(1), next(iterator, "over"), called] == [10, 0, "over", []]
    assert iterator.state_dict()["operator"] is None


def test_goes_on_in_the_middle_of_numbers_by_arithmetic():
    iterator = iter(Dataset.range(10**12).enumerate().skip(3))
    assert next(iterator) == (3, 3)
    for _ in range(3):
        assert iterator.skip(10**11) == 10**11
    assert next(iterator) == (4 + 3 * 10**11, 4 + 3 * 10**11)
    assert iterator.skip(10**12) == 10**12 - 3 * 10**11 - 5


def test_an_element_that_fails_counts_as_one_and_is_not_raised():
    iterator = iter(Dataset.range(6).filter(lambda x: 1 // int(x != 2) == 1))
    assert iterator.skip(4) == 4
    assert list(iterator) == [4, 5]


def test_uses_up_no_order_of_a_shuffle():
    def orders(move):
        dataset, found = Dataset.range(20).shuffle(20, seed=1), []
        for _ in range(3):
            iterator = iter(dataset)
            first = next(iterator)
            move(iterator)
            found.append([first, *iterator])
        return found

    assert orders(lambda iterator: iterator.skip(3)) == orders(lambda iterator: [next(iterator) for _ in range(3)])


@pytest.mark.parametrize(("count", "error"), [(-1, ValueError), (1.5, TypeError), (None, TypeError)])
def test_other_counts_are_refused_and_any_count_after_close(count, error):
    iterator = iter(Dataset.range(3))
    with pytest.raises(error, match="skip"):
        iterator.skip(count)
    iterator.close()
    with pytest.raises(ClosedError):
        iterator.skip(1)
