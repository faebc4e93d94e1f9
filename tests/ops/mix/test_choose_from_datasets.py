"""choose_from_datasets: elements of several datasets in the order of given choices. tests/oracle compares elements."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import ints

mix = Dataset.choose_from_datasets


def choices(*numbers):
    return Dataset.from_tensor_slices(np.array(numbers, np.int64))


def three():
    return [Dataset.range(4), Dataset.range(10, 14), Dataset.range(20, 24)]


def generated(stop, taken):
    """A dataset of unknown length that notes which elements were taken."""

    def numbers():
        for i in range(stop):
            taken.append(i)
            yield i

    return Dataset.from_generator(numbers, output_signature=TensorSpec((), np.int64))


@pytest.mark.parametrize(
    ("sources", "picks", "stop", "expected"),
    [
        (three(), choices(0, 1, 2, 2, 1, 0, 0), True, ints(0, 10, 20, 21, 11, 1, 2)),
        ([Dataset.range(1), Dataset.range(10, 13).map(int)], choices(0, 1).repeat(), False, ints(0, 10, 11, 12)),
    ],
)
def test_returns_the_next_element_of_the_chosen_dataset(sources, picks, stop, expected):
    """Choices of a dataset that has ended end it, or are skipped."""
    check_operator(lambda: mix(sources, picks, stop), expected)


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("wrong", [2, -1, 2**40])
def test_a_choice_out_of_range_fails_in_its_place(stop, wrong):
    sources = [Dataset.range(3), Dataset.range(10, 13)]
    got = check_operator(lambda: mix(sources, choices(0, wrong, 1, wrong, 0), stop))
    assert_elements_equal([got[0], got[2], got[4]], ints(0, 10, 1))
    for place in (1, 3):
        assert isinstance(got[place], ValueError)
        assert f"choice {wrong} for element {place} is out of range; there are 2 datasets" in str(got[place])


@pytest.mark.parametrize("wrong", [1.0, (0, 1), np.int32(1), [1]], ids=repr)
def test_a_choice_that_is_not_an_int64_fails_in_its_place(wrong):
    got = outcomes(iter(mix(three(), Dataset.range(3).map(lambda i: wrong if i == 1 else np.int64(0)))))
    assert_elements_equal([got[0], got[2]], ints(0, 1))
    assert isinstance(got[1], SpecError)
    arrays = [np.int64(0), np.array([1]), np.int64(1)]
    unknown = Dataset.from_generator(lambda: iter(arrays), output_signature=TensorSpec(None, np.int64))
    assert "choice 1 must be an int64 scalar, got array([1])" in str(outcomes(iter(mix(three(), unknown)))[1])


def test_takes_a_choice_and_an_element_for_each():
    check_laziness(lambda numbers: mix([numbers], choices(0).repeat()), lambda k: k)
    check_laziness(lambda numbers: mix([numbers, Dataset.range(99)], choices(0, 1).repeat()), lambda k: (k + 1) // 2)
    check_laziness(lambda numbers: mix(three(), numbers.map(lambda i: i % 3)), lambda k: min(13, k), size=12)


@pytest.mark.parametrize("demand", [1, 2, 3, 20])
@pytest.mark.parametrize(
    ("lengths", "stop", "read"), [((3, 9), True, 7), ((9, 2), True, 6), ((3, 2), False, 7)], ids=str
)
def test_reads_no_choice_past_the_end(demand, lengths, stop, read):
    taken = []
    for sources in ([Dataset.range(length) for length in lengths], [generated(length, []) for length in lengths]):
        taken.clear()
        list(mix(sources, generated(50, taken).map(lambda i: i % 2), stop).batch(demand))
        assert len(taken) == read
