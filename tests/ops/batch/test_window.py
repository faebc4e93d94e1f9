"""window: datasets of consecutive elements. tests/oracle compares windows, cardinalities and failures with tf.data."""

import itertools

import numpy as np
import pytest

from dataset import Dataset, DatasetSpec, TensorSpec
from dataset.testing import assert_elements_equal, check_laziness, check_operator, outcomes
from support.op_cases import fail_at, ints
from support.pipelines import Record

SHAPES = [
    {"size": 3},
    {"size": 3, "shift": 1},
    {"size": 2, "shift": 5},
    {"size": 3, "shift": 2, "stride": 2},
    {"size": 9, "shift": 4},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bad", [(), (3, 4), (0, 9)], ids=str)
def test_keeps_the_contract_of_operators(shape, bad):
    check_operator(lambda: Dataset.range(10).map(fail_at(*bad)).window(**shape))


def test_reads_no_further_than_the_windows_reach():
    check_laziness(lambda numbers: numbers.window(3), lambda k: 3 * k)
    check_laziness(lambda numbers: numbers.window(3, shift=1, drop_remainder=True), lambda k: k and k + 2)
    check_laziness(lambda numbers: numbers.window(2, shift=5), lambda k: k and 5 * (k - 1) + 2)
    check_laziness(lambda numbers: numbers.window(2, stride=4, shift=1), lambda k: k and k + 4)


def test_a_window_can_be_read_at_any_time_again_and_from_a_state():
    calls = []
    with iter(Dataset.range(7).map(lambda x: calls.append(int(x)) or x * 10).window(3, shift=2)) as iterator:
        first, second = next(iterator), next(iterator)
        assert_elements_equal(list(first), ints(0, 10, 20))
        third = next(iterator)
    assert_elements_equal(list(second), ints(20, 30, 40))
    assert_elements_equal(list(third), ints(40, 50, 60))
    assert_elements_equal(list(first.batch(2)), [np.array([0, 10]), np.array([20])])
    assert calls == [0, 1, 2, 3, 4, 5, 6]
    assert (len(first), first.element_spec) == (3, TensorSpec((), np.int64))
    check_operator(lambda: third, ints(40, 50, 60))
    check_operator(lambda: third.shuffle(2, seed=1).batch(3))


class OddError(Exception):
    """One whose constructor does not take its args."""

    def __init__(self, *, number):
        super().__init__(f"odd {number}")
        self.number = number


def test_each_of_the_windows_fails_with_the_users_own_exception():
    def fail(x):
        if x == 3:
            raise OddError(number=int(x))
        return x

    found = outcomes(iter(Dataset.range(6).map(fail).window(3, shift=1)))
    errors = [one for one in found if isinstance(one, Exception)]
    assert [(type(error), str(error), error.number) for error in errors] == [(OddError, "odd 3", 3)] * 3
    assert len({id(error) for error in errors}) == 3
    assert [len(error.__notes__) for error in errors] == [1, 1, 1]
    assert errors[0].__notes__[0].startswith("in map(")
    assert errors[0].__traceback__.tb_next is not None  # the function's own lines are shown where it is met


def test_every_component_has_its_own_dataset():
    records = Dataset.range(5).map(lambda x: Record(x, {"deep": np.full(2, x)}))
    check_operator(lambda: records.window(2, shift=1))


def test_takes_objects_of_user_classes():
    class Thing:
        plan = "of its own"  # as a Dataset has

    things = [Thing() for _ in range(4)]
    found = list(Dataset.range(4).map(lambda x: things[int(x)]).window(2))
    assert [list(window) for window in found] == [things[:2], things[2:]]


def test_windows_share_memory_and_are_read_only():
    images = Dataset.from_tensor_slices(np.arange(40 * 64).reshape(40, 8, 8) // 64).take(40)
    batches = list(images.window(10, shift=1, drop_remainder=True).flat_map(lambda window: window.batch(10)))
    shared = sum(np.shares_memory(a, b) for a, b in itertools.pairwise(batches))
    assert shared > 0.8 * len(batches)
    assert not any(batch.flags.writeable for batch in batches)
    made = Dataset.range(9).map(lambda x: np.full((8, 8), x))
    first, second = (list(window) for window in made.window(3, shift=1).take(2))
    assert [np.shares_memory(a, b) for a, b in zip(first[1:], second[:2], strict=True)] == [True, True]
    assert not any(row.flags.writeable for row in first + second)


def test_knows_its_spec_without_running_anything():
    row, number = TensorSpec((None,), np.int64), TensorSpec((), np.int64)
    assert Dataset.range(9).window(2).window(3).element_spec == DatasetSpec(DatasetSpec(number))
    for window in Dataset.range(5).batch(2).window(2):
        assert window.element_spec == row  # that of the input, not of these elements
