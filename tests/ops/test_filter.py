"""filter: the elements for which a function returns True."""

import numpy as np
import pytest

from dataset import Dataset, SpecError, vectorized
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes


def test_gives_the_elements_for_which_the_predicate_is_true():
    check_operator(lambda: Dataset.range(7).filter(lambda x: x % 3 == 1), [np.int64(1), np.int64(4)])
    check_operator(lambda: Dataset.range(3).filter(lambda x: bool(x >= 0)), [np.int64(i) for i in range(3)])
    check_operator(lambda: Dataset.range(3).filter(lambda x: x > 9), [])
    check_operator(lambda: Dataset.range(0).filter(lambda x: True), [])


def test_takes_no_more_than_up_to_the_last_match():
    check_laziness(lambda numbers: numbers.filter(lambda x: x % 5 == 2), lambda k: 5 * k - 2 if k else 0, size=48)
    check_laziness(
        lambda numbers: numbers.filter(lambda x: str(x).endswith("3")), lambda k: 10 * k - 6 if k else 0, size=44
    )


@pytest.mark.parametrize(
    "value", [(1, "a"), {"b": 1, "a": [2, 3]}, (1, None), "text", np.zeros((2, 2)), ((1,), {"x": b"\x00"})], ids=repr
)
def test_passes_every_structure_on_unchanged(value):
    (element,) = Dataset.from_tensors(value)
    dataset = Dataset.from_tensors(value).repeat(3)
    check_operator(lambda: dataset.filter(lambda *args: len(args) > 0), [element] * 3)
    assert dataset.filter(lambda *args: True).element_spec == dataset.element_spec


def test_passes_the_items_of_a_tuple_as_arguments():
    pairs = Dataset.zip(Dataset.range(4), Dataset.range(4, 0, -1))
    check_operator(lambda: pairs.filter(lambda a, b: a == b), [(np.int64(2), np.int64(2))])
    check_operator(lambda: pairs.filter(lambda a, b: str(a) == str(b)), [(np.int64(2), np.int64(2))])


@pytest.mark.parametrize("true", [True, np.True_, np.array(True)], ids=repr)
def test_takes_every_kind_of_bool(true):
    assert len(list(Dataset.range(3).filter(lambda x: true))) == 3


@pytest.mark.parametrize("result", [1, 0, None, "yes", np.int64(1), [True], np.array([True]), 1.0], ids=repr)
@pytest.mark.parametrize("demand", [1, 2])
def test_a_result_that_is_no_bool_is_an_error_of_its_element(result, demand):
    got = outcomes(iter(Dataset.range(4).filter(lambda x: result if x == 1 else True).batch(demand)))
    errors = [outcome for outcome in got if isinstance(outcome, Exception)]
    assert len(errors) == 1
    assert isinstance(errors[0], SpecError)
    assert "must return a bool" in str(errors[0])
    assert "element 1" in errors[0].__notes__[0]


@pytest.mark.parametrize("bad", [0, 2, 4])
def test_an_exception_takes_the_place_of_its_element(bad):
    def check(x):
        if x == bad:
            raise ValueError("bad")
        return x % 2 == 0

    expected = [ValueError("bad") if i == bad else np.int64(i) for i in range(5) if i % 2 == 0 or i == bad]
    check_operator(lambda: Dataset.range(5).filter(check), expected)


def test_stop_iteration_and_interrupts_lose_nothing():
    def stop(x):
        if x == 1:
            raise StopIteration
        return True

    got = outcomes(iter(Dataset.range(3).filter(stop)))
    assert isinstance(got[1], RuntimeError)
    assert (got[0], got[2]) == (0, 2)
    armed = [True]

    def interrupt(x):
        if x == 2 and armed:
            armed.clear()
            raise KeyboardInterrupt
        return True

    iterator = iter(Dataset.range(5).filter(interrupt).batch(5))
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert next(iterator).tolist() == [0, 1, 2, 3, 4]


def test_an_exception_has_a_note():
    def raises(x):
        raise OSError("gone")

    with pytest.raises(OSError, match="gone") as caught:
        next(iter(Dataset.range(3).filter(raises)))
    (note,) = caught.value.__notes__
    assert "filter(" in note
    assert "raises" in note
    assert "test_filter.py:" in note
    assert note.endswith("element 0")


def test_the_length_is_unknown():
    assert Dataset.range(5).filter(lambda x: True).cardinality() == -2
    assert Dataset.range(5).repeat().filter(lambda x: True).cardinality() == -2


def test_finds_matches_in_endless_data():
    endless = Dataset.range(10).repeat().filter(lambda x: x == 3)
    check_operator(lambda: endless.take(4), [np.int64(3)] * 4)


def test_a_vectorized_predicate_gets_columns():
    predicate = vectorized(lambda x: x % 2 == 0)
    check_operator(lambda: Dataset.range(5).filter(predicate), [np.int64(i) for i in (0, 2, 4)])
    with pytest.raises(SpecError, match="bools"):
        list(Dataset.range(4).filter(vectorized(lambda x: x)))
    with pytest.raises(SpecError, match="bools"):
        list(Dataset.range(4).filter(vectorized(lambda x: x[:0] == 0)))


@pytest.mark.parametrize("predicate", [None, True, "x"])
def test_refuses_what_cannot_be_called(predicate):
    with pytest.raises(TypeError, match=r"filter\(\): predicate must be a function"):
        Dataset.range(3).filter(predicate)


def test_arrays_pass_through_as_they_are():
    source = np.zeros((4, 2))
    rows = list(Dataset.from_tensor_slices(source).filter(lambda row: True))
    for row in rows:
        if row.flags.writeable:
            row[:] = 1
    assert not source.any()
    assert_elements_equal(list(Dataset.from_tensor_slices(source).filter(lambda row: True)), list(source))
