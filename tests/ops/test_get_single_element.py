"""get_single_element: the element of a dataset of one."""

import pytest

from dataset import Dataset
from dataset.testing import no_leaks
from support.op_cases import fail_at


@pytest.mark.parametrize(("count", "what"), [(0, "is empty"), (2, "has more than one"), (9, "has more than one")])
def test_needs_one(count, what):
    assert Dataset.range(7, 8).get_single_element() == 7
    with pytest.raises(ValueError, match=rf"get_single_element\(\): the dataset of range\({count}\) from test_get"):
        Dataset.range(count).get_single_element()
    with pytest.raises(ValueError, match=f"named 'only'.* must have one element, but {what}"):
        Dataset.range(count).get_single_element(name="only")


def test_requests_two_and_leaves_nothing_open():
    taken = []
    with no_leaks(), pytest.raises(ValueError, match="more than one"):
        Dataset.range(10).map(lambda x: taken.append(x) or x).prefetch(1).get_single_element()
    assert len(taken) <= 3
    with pytest.raises(ValueError, match="more than one"):
        Dataset.range(3).repeat().get_single_element()
    with no_leaks(), pytest.raises(ValueError, match="bad 0"):
        Dataset.range(1).map(fail_at(0)).get_single_element()
