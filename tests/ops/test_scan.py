"""scan: each element through a function that carries a state. tests/oracle compares it with tf.data's."""

import re
from typing import NamedTuple

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SpecError, StateError
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints


class Range(NamedTuple):
    low: int
    high: int


def running_sum(total, x):
    return total + x, total


def test_gives_the_output_and_starts_each_pass_from_the_initial_state():
    check_operator(lambda: Dataset.range(5).scan(np.int64(0), running_sum), ints(0, 0, 1, 3, 6))
    check_operator(lambda: Dataset.range(3).scan(7, running_sum).repeat(2), ints(7, 7, 8, 7, 7, 8))
    check_laziness(lambda numbers: numbers.scan(0, running_sum), lambda k: k)


@pytest.mark.parametrize(
    ("initial", "step"),
    [
        (RaggedTensor.from_rows([[1], [2, 3]]), lambda s, x: RaggedTensor(s.values + x, s.row_splits)),
        (np.array(["a"], object), lambda s, x: np.append(s, str(x).encode())),
        (0, lambda s, x: np.full(x, 1)),
        (Range(5, 5), lambda s, x: Range(min(s.low, x), max(s.high, x))),
    ],
    ids=lambda value: "" if callable(value) else repr(value),
)
def test_a_state_has_any_structure_and_may_change_its_shape(initial, step):
    (state,) = Dataset.from_tensors(initial)
    expected = []
    for x in range(4):
        expected.append((np.int64(x), state))
        (state,) = Dataset.from_tensors(step(state, np.int64(x)))
    check_operator(lambda: Dataset.range(4).scan(initial, lambda s, x: (step(s, x), (x, s))), expected)


def test_an_object_may_be_the_state_but_cannot_be_saved():
    dataset = Dataset.range(3).scan(frozenset(), lambda seen, x: (seen | {int(x)}, len(seen)))
    assert_elements_equal(list(dataset), ints(0, 1, 2))
    with pytest.raises(StateError, match="frozenset"):
        iter(dataset).state_dict()


def test_a_failure_takes_back_what_the_function_did_to_its_state():
    def count(state, x):
        state["n"] = state["n"] + 1
        fail_at(2)(x)
        return state, state["n"] - 1

    expected = [*ints(0, 1), ValueError("bad 2"), *ints(2, 3)]
    check_operator(lambda: Dataset.range(5).scan({"n": 0}, count), expected)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda s, x: x, r"pair of the new state and the output element, got \*"),
        (lambda s, x: ((s, s), x), r"structure \(\*, \*\).*initial_state, \*"),
        (lambda s, x: (s + 0.5, x), "float64.*dtypes of initial_state.*int64"),
        (lambda s, x: (s, None), "returned None, but earlier elements"),
    ],
)
def test_what_is_not_a_pair_of_a_state_and_an_element_is_an_error_of_its_element(result, words):
    got = outcomes(iter(Dataset.range(4).scan(0, lambda s, x: result(s, x) if x == 1 else (s + 1, s))))
    assert isinstance(got[1], SpecError)
    assert re.search(words, str(got[1]))
    assert "element 1" in got[1].__notes__[0]
    assert_elements_equal([got[0], *got[2:]], ints(0, 1, 2))


def test_no_array_that_a_user_holds_changes():
    initial = np.zeros(2)

    def add_in_place(state, x):
        state += x
        return state, (state, state[:1], {"all": state.reshape(2, 1)})

    dataset = Dataset.range(4).scan(initial, add_in_place)
    for given in (list(dataset), list(dataset)):
        for total, (whole, first, nested) in zip([0, 1, 3, 6], given, strict=True):
            assert whole.tolist() == [total, total]
            assert first.tolist() == [total]
            assert nested["all"].tolist() == [[total], [total]]
    assert not initial.any()


def test_what_the_user_does_to_an_output_does_not_reach_the_state():
    seen = []
    for array in Dataset.range(4).map(lambda x: np.full(1, x)).scan(np.zeros(1, np.int64), lambda s, x: (x, (s, x))):
        seen.append([int(part[0]) for part in array])
        array[1][:] = 100
    assert seen == [[0, 0], [0, 1], [1, 2], [2, 3]]


def test_the_function_may_fill_one_buffer_again_and_again():
    buffer, spare = np.zeros(1, np.int64), np.zeros(1, np.int64)

    def step(state, x):
        buffer[:] = state + x
        spare[:] = x
        return buffer, spare

    expected = [np.array([x]) for x in range(4)]
    check_operator(lambda: Dataset.range(4).scan(np.zeros(1, np.int64), step), expected)


def test_a_state_of_another_initial_state_is_refused():
    state = iter(Dataset.range(3).scan(np.zeros(2), lambda s, x: (s, x))).state_dict()
    with pytest.raises(StateError, match="another pipeline"):
        iter(Dataset.range(3).scan(np.zeros(3), lambda s, x: (s, x))).load_state_dict(state)
