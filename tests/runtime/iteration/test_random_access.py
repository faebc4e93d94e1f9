"""Tests of dataset[i]: one element, without those before it. check_operator tests all ops with random access."""

import threading

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import no_leaks


def counted(count):
    calls = []
    return calls, Dataset.range(count).map(lambda x: calls.append(int(x)) or x)


def test_only_what_is_requested_is_computed_and_nothing_is_left_behind():
    calls, mapped = counted(100)
    dataset = mapped.enumerate().skip(3).take(50).batch(4).prefetch(2)
    before = set(threading.enumerate())  # some threads may be about to end
    with no_leaks():
        numbers, values = dataset[5]
        assert set(threading.enumerate()) <= before
    assert values.tolist() == calls == [23, 24, 25, 26]
    assert numbers.tolist() == values.tolist()
    assert dataset[-1][1].tolist() == [51, 52]


def test_an_index_from_the_end_and_of_other_int_types():
    dataset = Dataset.range(10)
    assert dataset[-1] == dataset[9] == dataset[np.int8(9)] == dataset[np.array(9)] == 9


def test_endless_data_has_elements_from_its_start_only():
    assert Dataset.range(5).repeat()[1_000_001] == 1
    with pytest.raises(IndexError, match="index -1 is out of range for an endless dataset"):
        Dataset.range(5).repeat()[-1]
    joined = Dataset.range(5).concatenate(Dataset.range(10, 20)).repeat()
    assert [int(joined[i]) for i in (0, 4, 5, 14, 15, 22)] == [0, 4, 10, 19, 0, 12]
    assert Dataset.range(5).repeat().concatenate(Dataset.range(3))[7] == 2


@pytest.mark.parametrize("index", [3, -4, 2**70])
def test_an_index_out_of_range(index):
    with pytest.raises(IndexError, match=f"index {index} is out of range for a dataset of 3 elements"):
        Dataset.range(3)[index]


@pytest.mark.parametrize("index", [1.0, "1", None, (1,), np.array([1]), slice(1, None)])
def test_other_indices_are_refused_and_for_a_slice_with_advice(index):
    advice = r" slice\(1, None, None\); use skip\(\) and take\(\)" if isinstance(index, slice) else ""
    with pytest.raises(TypeError, match="a dataset is indexed by an int, got" + advice):
        Dataset.range(3)[index]


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Dataset.range(3).shuffle(2).batch(2), r"shuffle\(2\)"),
        (lambda: Dataset.range(3).filter(lambda x: True), r"filter\(<lambda>\)"),
        (lambda: Dataset.from_generator(lambda: [1, 2]), r"from_generator\(<lambda>\)"),
        (lambda: Dataset.range(3).flat_map(Dataset.range), r"flat_map\(Dataset.range\)"),
        (lambda: Dataset.zip(Dataset.range(3), Dataset.range(4).batch(2).unbatch()), "unbatch"),
    ],
)
def test_the_op_that_must_run_from_its_start_is_named(make, named):
    with pytest.raises(TypeError, match=f"no random access, because {named} from test_random_access.py:"):
        make()[0]
