"""reduce: all elements combined into one value. tests/oracle compares states and elements with tf.data's."""

import re

import numpy as np
import pytest

from dataset import Dataset, SpecError
from dataset.testing import no_leaks
from support.op_cases import fail_at


def test_the_state_may_change_its_shape_and_be_text_or_an_object():
    assert Dataset.range(3).reduce(np.zeros(0, np.int64), np.append).tolist() == [0, 1, 2]
    assert Dataset.from_tensor_slices(["a", "b\x00"]).reduce("", lambda text, x: text + x) == b"ab\x00"
    assert Dataset.range(3).reduce(frozenset(), lambda seen, x: seen | {int(x)}) == {0, 1, 2}


def test_another_structure_or_dtype_is_an_error():
    with pytest.raises(SpecError, match=r"reduce\(<lambda>\): .*initial_state") as caught:
        Dataset.range(3).reduce(0, lambda state, x: (state, x))
    assert re.fullmatch(r"in reduce\(<lambda>\) from test_reduce.py:\d+, element 0", caught.value.__notes__[0])
    with pytest.raises((SpecError, TypeError), match=r"dtype|type"):
        Dataset.range(3).reduce(np.int32(0), lambda state, x: np.float64(1.5))


def test_leaves_nothing_behind_when_it_fails():
    with no_leaks(), pytest.raises(ValueError, match="bad 3"):
        Dataset.range(100).prefetch(2).reduce(0, lambda state, x: fail_at(3)(x))


def test_the_initial_state_of_the_user_is_not_changed():
    mine = np.zeros(2)

    def add(state, x):
        state += x
        return state

    assert Dataset.range(3).reduce(mine, add).tolist() == [3, 3]
    nested = Dataset.range(3).reduce({"total": mine}, lambda state, x: {"total": add(state["total"], x)})
    assert nested["total"].tolist() == [3, 3]
    assert not mine.any()
