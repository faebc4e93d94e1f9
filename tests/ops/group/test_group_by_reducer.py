"""group_by_reducer: one result for each key. tests/oracle compares results with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, Reducer, SpecError, StateError
from dataset.runtime.context import open_plan
from dataset.testing import check_laziness, check_operator
from support.op_cases import ints

SUM = Reducer(lambda key: 0, lambda state, x: state + x, lambda state: state)


def total(state, x):
    return state[0], state[1] + x


def test_gives_the_groups_in_the_order_of_their_keys():
    reducer = Reducer(lambda key: (key, 0), total, lambda key, total: (key, total))
    expected = [(np.int64(key - 1), np.int64(sum(range(key, 2000, 3)))) for key in range(3)]
    check_operator(lambda: Dataset.range(2000).group_by_reducer(lambda x: x % 3 - 1, reducer), expected)


def test_states_may_grow_and_are_saved():
    reducer = Reducer(lambda key: np.zeros(0), np.append, lambda state: state)

    def build():
        return Dataset.range(50).map(lambda x: x * 0.5).group_by_reducer(lambda x: int(x) % 4, reducer)

    check_operator(build, list(build()), positions=4)


def test_requests_nothing_before_the_first_element():
    check_laziness(lambda numbers: numbers.group_by_reducer(lambda x: x % 2, SUM), lambda k: 100 * k)


@pytest.mark.parametrize("failing", ["key", "init", "reduce"])
def test_a_failure_takes_the_place_of_its_element_and_changes_no_state(failing):
    def fail(where, x):
        if where == failing and x == 4:
            raise KeyError("four")
        return x

    reducer = Reducer(
        lambda key: 0 * fail("init", key), lambda state, x: state + fail("reduce", x), lambda state: state
    )
    sums = Dataset.range(6).group_by_reducer(lambda x: fail("key", x) % 5, reducer)
    found = check_operator(lambda: sums, [KeyError("four"), *ints(5, 1, 2, 3)])
    assert "element 4" in found[0].__notes__[0]


def test_a_failing_finalization_takes_the_place_of_its_result():
    reducer = Reducer(lambda key: key, lambda state, x: state, lambda state: 1 // int(state))
    first, error, last = check_operator(lambda: Dataset.range(3).group_by_reducer(lambda x: x - 1, reducer))
    assert (first, type(error), last) == (-1, ZeroDivisionError, 1)


@pytest.mark.parametrize(
    ("key_func", "init_func", "reduce_func", "message"),
    [
        (lambda x: x / 2, lambda key: 0, lambda state, x: state, "key_func must return an int"),
        (lambda x: x, lambda key: 0, lambda state, x: 0.5, "it must have the dtypes of"),
        (lambda x: x, lambda key: 0, lambda state, x: (0, 0), "it must have the structure of"),
    ],
)
def test_results_of_other_types_are_refused(key_func, init_func, reduce_func, message):
    with pytest.raises(SpecError, match=message):
        list(Dataset.range(3).group_by_reducer(key_func, Reducer(init_func, reduce_func, lambda state: state)))


def test_a_state_with_the_wrong_number_of_keys_is_refused():
    plan = Dataset.range(5).group_by_reducer(lambda x: x % 2, SUM).plan.source
    _, operator = open_plan(plan)
    operator.pull(1)
    state = operator.save()
    _, other = open_plan(plan)
    with pytest.raises(StateError, match="1 states were saved for 2 keys"):
        other.load(state.after(0, keys=[0, 1]))
