"""repeat: the dataset several times over."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


@pytest.mark.parametrize("count", [0, 1, 2, 5, np.int64(3)])
def test_gives_the_data_count_times(count):
    check_operator(lambda: Dataset.range(3).repeat(count), ints(*list(range(3)) * int(count)))
    assert len(Dataset.range(3).repeat(count)) == 3 * count


@pytest.mark.parametrize("count", [None, -1, -5])
def test_goes_on_endlessly(count):
    check_operator(lambda: Dataset.range(2).repeat(count).take(5), ints(0, 1, 0, 1, 0))
    assert Dataset.range(2).repeat(count).cardinality() == -1


def test_an_endless_repetition_of_nothing_ends_at_once():
    check_operator(lambda: Dataset.range(0).repeat(), [])
    assert Dataset.range(0).repeat().cardinality() == 0
    check_operator(lambda: Dataset.range(3).filter(lambda x: False).repeat(), [])
    check_operator(lambda: Dataset.range(0).repeat(3), [])


def test_each_pass_runs_the_data_anew():
    passes = []

    def source():
        passes.append(None)
        yield from range(len(passes))

    assert list(Dataset.from_generator(source).repeat(3)) == [0, 0, 1, 0, 1, 2]
    calls = []
    assert len(list(Dataset.range(2).map(lambda x: calls.append(1) or x).repeat(3))) == len(calls) == 6


def test_takes_one_element_for_each():
    check_laziness(lambda numbers: numbers.repeat(1), lambda k: k)
    check_laziness(lambda numbers: numbers.take(3).repeat(2), lambda k: k, size=6)
    started = []
    iterator = iter(Dataset.from_generator(lambda: started.append(1) or range(2)).repeat())
    assert [next(iterator), next(iterator)] == [0, 1]
    assert started == [1]


def test_batches_go_across_passes():
    check_operator(lambda: Dataset.range(3).repeat(2).batch(4), [np.array([0, 1, 2, 0]), np.array([1, 2])])
    check_operator(lambda: Dataset.range(3).batch(2).repeat(2), [np.array([0, 1]), np.array([2])] * 2)


def test_each_pass_is_shuffled_in_another_order():
    (first,), (second,) = (
        list(part.batch(50))
        for part in (
            Dataset.range(50).shuffle(50, seed=1).repeat(2).take(50),
            Dataset.range(50).shuffle(50, seed=1).repeat(2).skip(50),
        )
    )
    assert sorted(first) == sorted(second) == list(range(50))
    assert first.tolist() != second.tolist()
    check_operator(lambda: Dataset.range(5).shuffle(3, seed=1).repeat(3))


def test_exceptions_keep_their_place_in_each_pass():
    bad = ValueError("bad 1")
    check_operator(lambda: Dataset.range(3).map(fail_at(1)).repeat(2), [np.int64(0), bad, np.int64(2)] * 2)
    check_operator(lambda: Dataset.range(2).map(fail_at(1)).repeat(2), [np.int64(0), bad] * 2)


def test_an_endless_repetition_of_failures_alone_ends_as_in_tf_data():
    got = outcomes(iter(Dataset.range(2).map(fail_at(0, 1)).repeat()))
    assert_elements_equal(got, [ValueError("bad 0"), ValueError("bad 1")])


def test_repeats_of_repeats():
    check_operator(lambda: Dataset.range(2).repeat(2).repeat(2), ints(0, 1) * 4)
    check_operator(lambda: Dataset.range(2).repeat().repeat(2).take(5), ints(0, 1, 0, 1, 0))
    check_operator(lambda: Dataset.range(2).repeat().repeat(0), [])


def test_knows_its_cardinality():
    unknown, endless = Dataset.range(3).filter(lambda x: True), Dataset.range(3).repeat()
    table = [(unknown, None, -1), (unknown, 2, -2), (unknown, 0, 0), (endless, 2, -1), (endless, 0, 0)]
    for dataset, count, cardinality in table:
        assert dataset.repeat(count).cardinality() == cardinality


@pytest.mark.parametrize("count", [2.0, "2", True, [2]])
def test_refuses_a_count_that_is_no_int(count):
    with pytest.raises(TypeError, match=r"repeat\(\): count must be an int, got"):
        Dataset.range(3).repeat(count)
