"""take: the first elements, then the end. tests/oracle compares counts, structures and failures with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, StateError
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at, ints
from support.resuming import resealed


@pytest.mark.parametrize("count", [0, 3, 9, -5, np.int32(2)])
def test_gives_the_first_elements(count):
    left = min(int(count), 5) if count >= 0 else 5
    check_operator(lambda: Dataset.range(5).take(count), ints(*range(left)))
    assert len(Dataset.range(5).take(count)) == left


def test_takes_what_it_gives_and_nothing_to_find_its_end():
    check_laziness(lambda numbers: numbers.take(10), lambda k: k)
    check_laziness(lambda numbers: numbers.take(-1), lambda k: k)
    check_laziness(lambda numbers: numbers.take(0), lambda k: 0)


def test_gives_count_elements_beside_those_that_fail_as_in_tf_data():
    expected = [np.int64(0), ValueError("bad 1"), np.int64(2), np.int64(3)]
    check_operator(lambda: Dataset.range(6).map(fail_at(1)).take(3), expected)


@pytest.mark.parametrize("remaining", [-2, -1, 6])
def test_a_state_with_more_elements_left_than_were_to_come_or_fewer_than_none_is_refused(remaining):
    """Below 0, fewer elements than none were requested from the input, which returned some without end."""
    dataset = Dataset.counter().filter(lambda x: x >= 0).take(5)
    state = iter(dataset).state_dict()
    place = {**state["operator"], "own": {"remaining": remaining}}
    with iter(dataset) as iterator, pytest.raises(StateError, match=r"elements remain|state is damaged"):
        iterator.load_state_dict(resealed(state, operator=place))
