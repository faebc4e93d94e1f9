"""Tests of Position: its plain form, and what of it is refused."""

import numpy as np
import pytest

from dataset import StateError
from dataset.runtime.contract import Operator
from dataset.runtime.position import Position, counts_in, skipping
from dataset.testing import assert_elements_equal
from dataset.testing.check_operator import assert_plain_data

SOURCE = Position("range", 7)
WHOLE = Position(
    "map", 9, (SOURCE, None), {"outbox": [b"x"]}, ((9, 2, 0), (9, 0, 3)), {"ended": True, "mean": np.ones(2)}
)


@pytest.mark.parametrize("position", [SOURCE, WHOLE, Position("prefetch", inputs=(SOURCE,), given=skipping(3))])
def test_the_plain_form_is_plain_data_and_is_read_back_exactly(position):
    plain = position.to_plain()
    assert_plain_data(plain)
    assert_elements_equal([Position.from_plain(plain).to_plain()], [plain])
    assert Position("range").to_plain() == {"op": "range"}


@pytest.mark.parametrize(
    "change",
    [
        *({"op": value} for value in (None, 3, b"map")),
        *({"at": value} for value in (-1, 1 << 64, 1.0, True, None, "1")),
        *({"inputs": value} for value in (None, {}, 3, [3], [{}], [{"op": "range", "at": -1}])),
        *({"held": value} for value in (None, [], 3)),
        *({"own": value} for value in (None, [], 3)),
        *({"given": value} for value in (None, {}, [3], [[1, 2]], [[-1, 1, 0]], [[0, 1, 1.5]], [[5, 1, 0], [4, 1, 0]])),
        {"source": {"op": "range"}},
    ],
    ids=str,
)
def test_what_is_not_a_position_is_refused(change):
    with pytest.raises(StateError, match="the state is damaged"):
        Position.from_plain({**WHOLE.to_plain(), **change})


@pytest.mark.parametrize(
    ("value", "like"), [(-1, 0), (True, 0), (1, False), (1.0, 0), (None, 0), (1 << 64, 0), (-2, -1), (np.int64(3), 0)]
)
def test_an_own_entry_of_another_kind_is_refused(value, like):
    position = Position("take", own={"left": value})
    with pytest.raises(StateError, match=r"'left' of 'take' is"):
        position.like("left", like)
    with pytest.raises(StateError, match=r"'missing' of 'take' is None"):
        position.like("missing", like)


def test_own_entries_and_inputs_that_are_there_are_returned():
    position = Position("take", inputs=(SOURCE, None), own={"left": -1, "ended": True, "count": 4})
    assert position.like("left", -1) == -1
    assert position.like("ended", False) is True
    assert position.count("count") == 4
    assert position.source is SOURCE
    for index in (1, 2):
        with pytest.raises(StateError, match=f"has no position of its input {index}"):
            position.input(index)
    with pytest.raises(StateError, match="'left' or 'count' is not a count"):
        counts_in(position.own, "left", "count")


def test_a_later_position_keeps_what_is_not_changed():
    later = WHOLE.after(3, None, ended=False)
    assert (later.at, later.inputs, later.own["ended"]) == (12, (None,), False)
    assert (later.op, later.held, later.given, WHOLE.at) == ("map", WHOLE.held, WHOLE.given, 9)
    assert WHOLE.after(1).inputs == WHOLE.inputs


def test_an_operator_saves_and_restores_what_it_declares():
    class Counting(Operator):
        op = "counting"
        saved = ("ended", "left")

        def __init__(self):
            self.ended, self.left = False, -1

        def pull(self, n):
            return None

    operator, other = Counting(), Counting()
    operator.at, operator.ended, operator.left = 5, True, 2
    other.load(Position.from_plain(operator.save().to_plain()))
    assert (other.at, other.ended, other.left) == (5, True, 2)
    assert other.advance(other.save(), 1) is None
