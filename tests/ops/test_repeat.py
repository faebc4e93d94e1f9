"""repeat: the dataset several times over. tests/oracle compares counts, failures and cardinalities with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.runtime.context import open_plan
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("count", [0, 1, 5, np.int64(3)])
def test_gives_the_data_count_times(count):
    check_operator(lambda: Dataset.range(3).repeat(count), ints(*list(range(3)) * int(count)))
    assert len(Dataset.range(3).repeat(count)) == 3 * count


@pytest.mark.parametrize("count", [None, -5])
def test_an_endless_repetition_ends_at_once_where_there_is_nothing(count):
    check_operator(lambda: Dataset.range(2).repeat(count).take(5), ints(0, 1, 0, 1, 0))
    check_operator(lambda: Dataset.range(0).repeat(count), [])
    check_operator(lambda: Dataset.range(3).filter(lambda x: False).repeat(count), [])
    got = outcomes(iter(Dataset.range(2).map(fail_at(0, 1)).repeat(count)))  # as in tf.data
    assert_elements_equal(got, [ValueError("bad 0"), ValueError("bad 1")])


def test_each_pass_runs_the_data_anew():
    passes = []

    def source():
        passes.append(None)
        yield from range(len(passes))

    assert list(Dataset.from_generator(source).repeat(3)) == [0, 0, 1, 0, 1, 2]


def test_takes_one_element_for_each_and_begins_a_pass_when_it_is_requested():
    check_laziness(lambda numbers: numbers.repeat(1), lambda k: k)
    check_laziness(lambda numbers: numbers.take(3).repeat(2), lambda k: k, size=6)
    started = []
    iterator = iter(Dataset.from_generator(lambda: started.append(1) or range(2)).repeat())
    assert [next(iterator), next(iterator)] == [0, 1]
    assert started == [1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(3).shuffle(3, seed=4).repeat(2).repeat(3),
        lambda: Dataset.range(4).shuffle(4, seed=4).repeat(2).skip(1).take(6).repeat(3),
        lambda: Dataset.range(2).random_map(lambda rng, x: rng.integers(100), seed=4).repeat(2).repeat(2).repeat(2),
    ],
)
def test_a_state_of_an_earlier_pass_is_advanced_as_before_when_another_thread_has_read_on(make):
    whole = [int(x) for x in make()]
    coordinator, operator = open_plan(make().plan)
    states, advanced = [], 0
    for read in range(len(whole)):
        states.append(operator.save())
        for start in range(read):
            for count in range(1, len(whole) - start):
                state = operator.advance(states[start], count)
                if state is not None:
                    advanced += 1
                    other, following = open_plan(make().plan)
                    following.load(state)
                    assert int(following.pull(1).only()) == whole[start + count], (start, count, read)
                    other.shut_down(following.close, wait=True)
        operator.pull(1)
    assert advanced > len(whole)
    coordinator.shut_down(operator.close, wait=True)
