"""get_single_element: the element of a dataset of one."""

import numpy as np
import pytest

from dataset import Dataset
from dataset.testing import no_leaks


def test_gives_the_element():
    assert Dataset.range(7, 8).get_single_element() == 7
    element = Dataset.from_tensors({"a": (1, None), "b": "x"}).get_single_element()
    assert element == {"a": (np.int64(1), None), "b": b"x"}
    assert Dataset.range(4).batch(4).get_single_element().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("count", "what"), [(0, "is empty"), (2, "has more than one"), (9, "has more than one")])
def test_needs_one(count, what):
    with pytest.raises(ValueError, match=rf"get_single_element\(\): the dataset of range\({count}\) from test_get"):
        Dataset.range(count).get_single_element()
    with pytest.raises(ValueError, match=f"named 'only'.* must have one element, but {what}"):
        Dataset.range(count).get_single_element(name="only")


def test_asks_for_two_and_leaves_nothing_open():
    taken = []

    def numbers():
        for i in range(10):
            taken.append(i)
            yield i

    with no_leaks(), pytest.raises(ValueError, match="more than one"):
        Dataset.from_generator(numbers).prefetch(1).get_single_element()
    assert len(taken) <= 3
    with pytest.raises(ValueError, match="more than one"):
        Dataset.range(3).repeat().get_single_element()


def test_an_element_that_fails_raises():
    def fail(x):
        raise KeyError("bad")

    with pytest.raises(KeyError, match="bad"):
        Dataset.range(1).map(fail).get_single_element()
