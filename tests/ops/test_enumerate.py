"""enumerate: each element with its number before it."""

import numpy as np
import pytest

from dataset import Dataset, TensorSpec
from dataset.testing import check_laziness, check_operator


def test_numbers_the_elements():
    numbered = [(np.int64(i), text) for i, text in enumerate([b"a", b"b", b"c"])]
    check_operator(lambda: Dataset.from_tensor_slices(["a", "b", "c"]).enumerate(), numbered)
    check_operator(lambda: Dataset.range(0).enumerate(), [])


@pytest.mark.parametrize("start", [5, -3, 0, np.int32(7), 2**62])
def test_starts_where_it_is_told(start):
    check_operator(lambda: Dataset.range(2).enumerate(start), [(np.int64(start + i), np.int64(i)) for i in range(2)])


def test_takes_one_element_for_each():
    check_laziness(lambda numbers: numbers.enumerate(3), lambda k: k)


@pytest.mark.parametrize("value", [(1, 2), {"a": 1}, (1, None), [1, 2]], ids=repr)
def test_leaves_the_element_whole(value):
    (element,) = Dataset.from_tensors(value)
    check_operator(lambda: Dataset.from_tensors(value).enumerate(), [(np.int64(0), element)])


def test_batches_numbers_beside_elements():
    check_operator(
        lambda: Dataset.from_tensor_slices(["a", "b", "c"]).enumerate(1).batch(2),
        [(np.array([1, 2]), np.array([b"a", b"b"], object)), (np.array([3]), np.array([b"c"], object))],
    )


def test_an_element_that_fails_uses_up_its_number():
    def fail(x):
        if x == 1:
            raise ValueError("bad")
        return x

    pairs = [(np.int64(i), np.int64(i)) for i in range(4)]
    pairs[1] = ValueError("bad")
    check_operator(lambda: Dataset.range(4).map(fail).enumerate(), pairs)
    batches = [ValueError("bad"), (np.array([2, 3]), np.array([2, 3]))]
    check_operator(lambda: Dataset.range(4).map(fail).enumerate().batch(2), batches)


def test_knows_spec_and_cardinality():
    scalar = TensorSpec((), np.int64)
    assert Dataset.range(3).batch(2).enumerate().element_spec == (scalar, TensorSpec((None,), np.int64))
    assert Dataset.range(3).enumerate().cardinality() == 3
    assert Dataset.range(3).repeat().enumerate().cardinality() == -1
    assert Dataset.range(3).filter(lambda x: True).enumerate().cardinality() == -2


def test_ends_where_the_numbers_do():
    top = 2**63 - 1
    check_operator(
        lambda: Dataset.range(5).repeat().enumerate(top - 2), [(np.int64(top - 2 + i), np.int64(i)) for i in range(2)]
    )
    for start in (top + 1, -top - 2):
        with pytest.raises(ValueError, match=r"enumerate\(\): start must be at (most|least)"):
            Dataset.range(3).enumerate(start)


@pytest.mark.parametrize("start", [1.0, "0", None, True])
def test_refuses_a_start_that_is_no_int(start):
    with pytest.raises(TypeError, match=r"enumerate\(\): start must be an int"):
        Dataset.range(3).enumerate(start)
