"""Datasets as components of elements, through all ops that hold elements, and through saved states."""

import numpy as np
import pytest

from dataset import Dataset, DatasetSpec, StateError, TensorSpec
from dataset.testing import assert_elements_equal, check_operator, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import Point
from support.states import rest_of, state_after

INT = TensorSpec((), np.int64)


def windows():
    return Dataset.range(11).window(3, shift=2)


PIPELINES = {
    "prefetch of batches": lambda: windows().map(lambda w: (w, w.batch(2))).prefetch(3),
    "cached and batched": lambda: windows().cache().repeat(2).flat_map(lambda w: w.batch(2)),
    "batch, shuffle": lambda: windows().batch(2).shuffle(2, seed=3),
    "batch, unbatch, flat_map": lambda: windows().batch(4).unbatch().flat_map(lambda w: w),
    "window of windows, read": lambda: windows().window(2).flat_map(lambda o: o.flat_map(lambda w: w.batch(2))),
    "interleave": lambda: windows().interleave(lambda w: w.repeat(2), cycle_length=3, block_length=2),
    "failing ones in a buffer": lambda: (
        Dataset.range(3, 7).map(lambda n: Dataset.range(n).map(fail_at(0, 1, 3))).shuffle(2, seed=1)
    ),
    "empty ones in a buffer": lambda: Dataset.range(4).map(lambda n: (n, Dataset.range(n * 2 % 3))).shuffle(2, seed=1),
    "of datasets of named tuples": lambda: (
        Dataset.range(1, 5).map(lambda n: Dataset.range(n).map(lambda x: Point(x, b"t"))).shuffle(2, seed=1)
    ),
    "groups of windows": lambda: windows().group_by_window(len, lambda key, w: w.flat_map(lambda v: v), 2),
}


@pytest.mark.parametrize("case", PIPELINES)
def test_pass_through_and_are_saved(case):
    check_operator(PIPELINES[case], positions=8)


def test_what_comes_back_from_a_state_is_the_same_dataset():
    def make():
        return Dataset.range(1, 9).batch(2).window(2).prefetch(4)

    window = rest_of(make(), state_after(make(), 1))[0]
    assert_elements_equal(list(window), [np.array([5, 6]), np.array([7, 8])])
    assert_elements_equal(list(window), list(window))
    assert (window.element_spec, len(window)) == (TensorSpec((None,), np.int64), 2)
    assert not any(row.flags.writeable for row in window)


def test_one_without_an_end_cannot_be_saved_by_value():
    def make(inner):
        return Dataset.from_generator(lambda: iter(range(4))).map(inner).shuffle(2, seed=1)

    generator = Dataset.from_generator(lambda: iter(int, 1))  # it is not known to be endless
    for inner in (lambda n: Dataset.range(3).repeat(), lambda n: generator.batch(2**16).unbatch()):
        with iter(make(inner)) as iterator:
            next(iterator)
            with pytest.raises(StateError, match=r"an element contains an infinite dataset, .* limit it with take"):
                iterator.state_dict()
            assert int(next(iter(next(iterator)))) == 0


def test_a_place_in_a_window_goes_with_an_equal_window_only():
    first, second, *_, last = windows()
    state = state_after(first, 1)
    assert_elements_equal(rest_of(second, state), ints(3, 4))  # of the same length, as arrays of the same shape are
    with pytest.raises(StateError, match="another"):
        rest_of(last, state)


def test_a_dataset_in_from_tensors_is_not_run_for_its_name():
    calls = []
    inner = Dataset.range(3).map(lambda x: calls.append(x) or x)
    with pytest.raises(StateError, match="another pipeline"):
        rest_of(Dataset.from_tensors((Dataset.range(3), 1)), state_after(Dataset.from_tensors((inner, 1)), 0))
    Dataset.from_tensors(inner).batch(2).unbatch()
    assert calls == []
    assert Dataset.from_tensors(inner).element_spec == DatasetSpec(INT)


def test_the_spec_is_that_of_the_first_dataset_that_has_elements():
    dataset = Dataset.range(4).map(lambda n: Dataset.range(n).map(fail_at(0)))
    assert dataset.element_spec == DatasetSpec(INT)
    assert next(outcomes(iter(inner)) for inner in dataset) == []


def test_elements_that_hold_datasets_are_compared_by_value():
    def element(*values):
        return (1, Dataset.from_tensor_slices(np.array(values)))

    assert_elements_equal([element(1, 2)], [element(1, 2)])
    for other in (element(1, 3), element(1), element(1.0, 2.0), (1, np.array([1, 2]))):
        with pytest.raises(AssertionError, match=r"element 0\[1\]: got a dataset of \["):
            assert_elements_equal([element(1, 2)], [other])
