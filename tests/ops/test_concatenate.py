"""concatenate: one dataset, then another. tests/oracle compares elements, specs and failures with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, TensorSpec
from dataset.testing import check_laziness, check_operator
from support.op_cases import ints
from support.pipelines import unoptimized
from support.states import rest_of, state_after


def chained(datasets):
    first, *others = datasets
    for other in others:
        first = first.concatenate(other)
    return first


def test_gives_one_then_the_other():
    one, two, empty = Dataset.range(2), Dataset.range(10, 12), Dataset.range(0)
    check_operator(lambda: one.concatenate(two), ints(0, 1, 10, 11))
    check_operator(lambda: empty.concatenate(two), ints(10, 11))
    check_operator(lambda: one.concatenate(two).batch(3), [np.array([0, 1, 10]), np.array([11])])


def test_does_not_touch_the_second_before_the_first_has_ended():
    check_laziness(lambda numbers: numbers.concatenate(Dataset.range(9)), lambda k: k)
    check_laziness(lambda numbers: Dataset.range(9).concatenate(numbers), lambda k: max(0, k - 9))


def test_a_mismatch_that_only_running_shows_is_raised_at_its_place():
    pairs = Dataset.range(2).map(lambda x: (x, x))
    iterator = iter(chained([Dataset.range(1), Dataset.range(1, 2), pairs, Dataset.range(3)]))
    assert [next(iterator), next(iterator)] == [0, 1]
    with pytest.raises(SpecError, match="all datasets must have the same structure"):
        next(iterator)


# Many


@pytest.mark.parametrize("change", [lambda dataset: dataset, unoptimized], ids=["optimized", "as written"])
def test_a_loop_may_join_more_than_the_interpreter_recurses(change):
    def make():
        return change(chained(Dataset.range(3 * i, 3 * i + 3) for i in range(1100)))

    dataset = make()
    assert len(dataset) == 3300
    assert dataset.element_spec == TensorSpec((), np.int64)
    assert list(dataset) == list(range(3300))
    assert list(dataset.skip(2000).take(2)) == [2000, 2001]
    assert rest_of(make().batch(100), state_after(dataset.batch(100), 20))[0][0] == 2000


def test_a_loop_may_put_more_before_than_the_interpreter_recurses():
    dataset = Dataset.range(1)
    for i in range(1, 1100):
        dataset = Dataset.range(i, i + 1).concatenate(dataset)
    assert list(dataset) == [*range(1099, 0, -1), 0]


def test_chains_are_one_node_whichever_way_they_were_made():
    parts = [Dataset.range(3), Dataset.range(3, 5), Dataset.range(5, 6), Dataset.range(6, 9)]
    left = chained(parts)
    right = parts[0].concatenate(parts[1].concatenate(parts[2].concatenate(parts[3])))
    pairs = parts[0].concatenate(parts[1]).concatenate(parts[2].concatenate(parts[3]))
    for dataset in (left, right, pairs):
        assert dataset.plan.label() == "concatenate(4 datasets)"
        assert dataset.fingerprint() == left.fingerprint()
        assert list(dataset) == list(range(9))
    check_operator(lambda: right, ints(*range(9)))
