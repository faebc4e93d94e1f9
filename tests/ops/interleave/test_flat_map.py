"""flat_map: a dataset for each element, one after the other."""

import sys

import numpy as np
import pytest

from dataset import Dataset, SpecError, TensorSpec
from dataset.testing import check_laziness, check_operator, no_leaks, outcomes
from support.op_cases import fail_at, ints


def test_gives_the_elements_of_each_dataset_in_turn():
    check_operator(lambda: Dataset.range(4).flat_map(Dataset.range), ints(0, 0, 1, 0, 1, 2))
    check_operator(lambda: Dataset.range(0).flat_map(Dataset.range), [])
    check_operator(lambda: Dataset.range(3).flat_map(lambda n: Dataset.range(0)), [])


def test_resumes_through_shuffles_and_repeats_inside():
    def inner(n):
        return Dataset.range(5).shuffle(3, seed=int(n)).repeat(2).map(lambda x: x + 10 * n).batch(3)

    check_operator(lambda: Dataset.range(3).flat_map(inner))
    check_operator(
        lambda: Dataset.range(3).flat_map(lambda n: Dataset.range(2).flat_map(lambda m: Dataset.range(n + m)))
    )


def test_opens_a_dataset_only_when_its_elements_are_asked_for():
    check_laziness(lambda numbers: numbers.flat_map(lambda n: Dataset.from_tensors(n).repeat(3)), lambda k: -(-k // 3))
    opened = []
    iterator = iter(Dataset.range(5).flat_map(lambda n: opened.append(int(n)) or Dataset.range(2)))
    assert opened == []
    next(iterator)
    next(iterator)
    assert opened == [0]
    next(iterator)
    assert opened == [0, 1]


def test_does_not_read_a_generator_inside_ahead():
    taken = []

    def generate(n):
        for i in range(4):
            taken.append((int(n), i))
            yield i

    dataset = Dataset.range(2).flat_map(lambda n: Dataset.from_generator(generate, args=(n,)))
    assert [int(x) for x in dataset.take(6)] == [0, 1, 2, 3, 0, 1]
    assert taken == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)]


def test_an_endless_dataset_inside_is_fine():
    check_operator(lambda: Dataset.range(3).flat_map(lambda n: Dataset.from_tensors(n).repeat()).take(3), ints(0, 0, 0))


def test_passes_a_tuple_as_arguments_and_takes_every_structure():
    pairs = Dataset.zip(Dataset.range(2), Dataset.range(1, 3))
    dataset = pairs.flat_map(lambda a, b: Dataset.from_tensors({"a": a, "b": (b, None)}).repeat(b))
    expected = [{"a": np.int64(i), "b": (np.int64(i + 1), None)} for i in range(2) for _ in range(i + 1)]
    check_operator(lambda: dataset, expected)


def test_the_inverse_of_window_free_batching():
    batches = Dataset.range(7).batch(3)
    check_operator(lambda: batches.flat_map(Dataset.from_tensor_slices), ints(*range(7)))


def test_exceptions_inside_and_outside_keep_their_place():
    bad = ValueError("bad 1")
    inside = Dataset.range(2).flat_map(lambda n: Dataset.range(3).map(fail_at(1)))
    check_operator(lambda: inside, [np.int64(0), bad, np.int64(2)] * 2)
    outside = Dataset.range(3).map(fail_at(1)).flat_map(lambda n: Dataset.from_tensors(n).repeat(2))
    check_operator(lambda: outside, [*ints(0, 0), bad, *ints(2, 2)])
    function = Dataset.range(4).flat_map(lambda n: Dataset.range(fail_at(1)(n)))
    check_operator(lambda: function, [bad, *ints(0, 1, 0, 1, 2)])


def test_an_exception_of_the_function_has_a_note():
    def broken(n):
        if n == 2:
            raise OSError("gone")
        return Dataset.range(1)

    line = sys._getframe().f_lineno + 1
    errors = [e for e in outcomes(iter(Dataset.range(4).flat_map(broken))) if isinstance(e, Exception)]
    assert [type(e) for e in errors] == [OSError]
    (note,) = errors[0].__notes__
    assert "flat_map(" in note
    assert f"test_flat_map.py:{line}" in note
    assert note.endswith("element 2")


def test_an_interrupt_in_the_function_comes_through():
    def interrupt(n):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(iter(Dataset.range(3).flat_map(interrupt)))


@pytest.mark.parametrize("result", [3, None, [1, 2], (Dataset.range(1),)], ids=["int", "none", "list", "tuple"])
def test_a_function_that_returns_no_dataset_is_an_error_of_its_element(result):
    with pytest.raises(TypeError, match=r"flat_map\(\): the function must return a Dataset, got"):
        next(iter(Dataset.range(3).flat_map(lambda n: result)))


def test_datasets_of_different_structures_are_an_error():
    dataset = Dataset.range(2).flat_map(lambda n: Dataset.from_tensors((1, 2) if n else 1))
    got = outcomes(iter(dataset))
    assert got[0] == 1
    assert isinstance(got[1], SpecError)


@pytest.mark.parametrize("function", [None, 3, Dataset.range(3)])
def test_refuses_what_cannot_be_called(function):
    with pytest.raises(TypeError, match=r"flat_map\(\): map_func must be a function"):
        Dataset.range(3).flat_map(function)


def test_length_is_unknown_and_the_spec_is_found_by_running():
    dataset = Dataset.range(3).flat_map(lambda n: Dataset.range(2).batch(2))
    assert dataset.cardinality() == -2
    assert dataset.element_spec.dtype == np.int64
    with pytest.raises(SpecError, match="none"):
        _ = Dataset.range(0).flat_map(Dataset.range).element_spec
    assert Dataset.range(2).flat_map(Dataset.range).element_spec == TensorSpec((), np.int64)


def test_leaves_nothing_behind_when_dropped_inside_a_dataset():
    with no_leaks():
        iterator = iter(Dataset.range(3).flat_map(lambda n: Dataset.range(100).prefetch(2)))
        next(iterator)
        del iterator
