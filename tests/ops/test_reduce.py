"""reduce: all elements combined into one value."""

import re

import numpy as np
import pytest

from dataset import Dataset, SpecError
from dataset.testing import assert_elements_equal, no_leaks


def test_combines_all_elements():
    assert_elements_equal([Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x)], [np.int64(10)])
    assert_elements_equal([Dataset.range(5).reduce(0, lambda total, x: total + x)], [np.int64(10)])


def test_gives_the_initial_state_for_no_elements():
    state = {"a": 1, "b": ("x", [2.0])}
    (expected,) = Dataset.from_tensors(state)
    assert_elements_equal([Dataset.range(0).reduce(state, lambda state, x: state)], [expected])


def test_passes_a_tuple_element_and_a_tuple_state_as_one_argument_each():
    pairs = Dataset.zip(Dataset.range(3), Dataset.range(3))
    assert pairs.reduce(np.int64(0), lambda total, pair: total + pair[0] * pair[1]) == 5
    result = Dataset.range(4).reduce((0, 1.0), lambda state, x: (state[0] + x, state[1] * 2))
    assert_elements_equal([result], [(np.int64(6), np.float64(16))])


def test_a_list_at_the_top_counts_as_a_tuple():
    result = Dataset.range(3).reduce((0, 0), lambda state, x: [state[0] + x, state[1] + 1])
    assert_elements_equal([result], [(np.int64(3), np.int64(3))])


def test_the_state_may_change_its_shape():
    result = Dataset.range(3).reduce(np.zeros(0, np.int64), np.append)
    assert_elements_equal([result], [np.array([0, 1, 2])])


def test_bytes_and_objects_may_be_states():
    assert Dataset.from_tensor_slices(["a", "b\x00"]).reduce("", lambda text, x: text + x) == b"ab\x00"
    assert Dataset.range(3).reduce(frozenset(), lambda seen, x: seen | {int(x)}) == {0, 1, 2}


def test_another_structure_is_an_error_with_both():
    with pytest.raises(SpecError, match=r"reduce\(<lambda>\): .*initial_state") as caught:
        Dataset.range(3).reduce(0, lambda state, x: (state, x))
    assert re.fullmatch(r"in reduce\(<lambda>\) from test_reduce.py:\d+, element 0", caught.value.__notes__[0])
    with pytest.raises(SpecError, match="initial_state"):
        Dataset.range(3).reduce({"a": 1}, lambda state, x: {"b": 1})


def test_another_dtype_is_an_error_as_in_tf_data():
    with pytest.raises((SpecError, TypeError), match=r"dtype|type"):
        Dataset.range(3).reduce(np.int32(0), lambda state, x: np.float64(1.5))


def test_an_exception_of_the_function_has_a_note():
    def fail(state, x):
        if x == 2:
            raise OSError("gone")
        return state

    with pytest.raises(OSError, match="gone") as caught:
        Dataset.range(4).reduce(0, fail)
    (note,) = caught.value.__notes__
    assert "reduce(" in note
    assert "test_reduce.py:" in note
    assert note.endswith("element 2")


def test_an_exception_of_the_dataset_comes_through():
    def fail(x):
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        Dataset.range(4).map(fail).reduce(0, lambda state, x: state)


def test_leaves_nothing_behind_when_it_fails():
    def fail(state, x):
        raise ValueError("bad")

    with no_leaks(), pytest.raises(ValueError, match="bad"):
        Dataset.range(100).prefetch(2).reduce(0, fail)


def test_the_initial_state_of_the_user_is_not_changed():
    mine = np.zeros(2)

    def add(state, x):
        state += x
        return state

    result = Dataset.range(3).reduce(mine, add)
    assert result.tolist() == [3, 3]
    nested = {"total": np.zeros(2)}
    Dataset.range(3).reduce(nested, lambda state, x: {"total": add(state["total"], x)})
    assert not mine.any()
    assert not nested["total"].any()


@pytest.mark.parametrize("function", [None, 3])
def test_refuses_what_cannot_be_called(function):
    with pytest.raises(TypeError, match=r"reduce\(\): reduce_func must be a function"):
        Dataset.range(3).reduce(0, function)
