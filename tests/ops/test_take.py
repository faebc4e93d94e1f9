"""take: the first elements, then the end."""

import numpy as np
import pytest

from dataset import Dataset, StateError
from dataset.testing import check_laziness, check_operator
from support.op_cases import fail_at
from support.resuming import resealed


@pytest.mark.parametrize(
    ("count", "left"), [(3, 3), (0, 0), (1, 1), (5, 5), (9, 5), (-1, 5), (-5, 5), (np.int32(2), 2)]
)
def test_gives_the_first_elements(count, left):
    check_operator(lambda: Dataset.range(5).take(count), [np.int64(i) for i in range(left)])
    assert len(Dataset.range(5).take(count)) == left


def test_takes_what_it_gives_and_nothing_to_find_its_end():
    check_laziness(lambda numbers: numbers.take(10), lambda k: k)
    check_laziness(lambda numbers: numbers.take(-1), lambda k: k)
    taken = []

    def count():
        for i in range(20):
            taken.append(i)
            yield i

    assert len(list(Dataset.from_generator(count).take(3))) == 3
    assert taken == [0, 1, 2]
    assert list(Dataset.from_generator(count).take(0)) == []
    assert taken == [0, 1, 2]


def test_ends_endless_data():
    check_operator(lambda: Dataset.range(2).repeat().take(5), [np.int64(i % 2) for i in range(5)])


def test_gives_count_elements_beside_those_that_fail_as_in_tf_data():
    expected = [np.int64(0), ValueError("bad 1"), np.int64(2), np.int64(3)]
    check_operator(lambda: Dataset.range(6).map(fail_at(1)).take(3), expected)
    check_operator(lambda: Dataset.range(6).map(fail_at(3)).take(3), [np.int64(i) for i in range(3)])
    check_operator(lambda: Dataset.range(3).map(fail_at(0, 1, 2)).take(0), [])


def test_passes_structures_on():
    element = {"a": (np.int64(1), None), "b": b"x"}
    check_operator(lambda: Dataset.from_tensors({"a": (1, None), "b": "x"}).repeat(3).take(2), [element] * 2)


def test_knows_its_cardinality():
    known, unknown, endless = Dataset.range(3), Dataset.range(3).filter(lambda x: True), Dataset.range(3).repeat()
    table = [(known, 2, 2), (known, 9, 3), (known, -1, 3), (endless, 4, 4), (endless, -1, -1), (endless, 0, 0)]
    table += [(unknown, 2, -2), (unknown, 0, -2), (unknown, -1, -2)]
    for dataset, count, cardinality in table:
        assert dataset.take(count).cardinality() == cardinality
    assert known.take(2).element_spec == known.element_spec


@pytest.mark.parametrize("count", [2.0, "2", None, True, [2]])
def test_refuses_a_count_that_is_no_int(count):
    with pytest.raises(TypeError, match=r"take\(\): count must be an int, got"):
        Dataset.range(3).take(count)


@pytest.mark.parametrize("remaining", [-2, -1, 6])
def test_a_state_with_more_elements_left_than_were_to_come_or_fewer_than_none_is_refused(remaining):
    """Below 0, the input was asked for fewer elements than none, and gave some without end."""
    dataset = Dataset.counter().filter(lambda x: x >= 0).take(5)
    state = iter(dataset).state_dict()
    place = {**state["operator"], "remaining": remaining}
    with iter(dataset) as iterator, pytest.raises(StateError, match="elements remain"):
        iterator.load_state_dict(resealed(state, operator=place))
