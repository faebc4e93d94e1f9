"""from_list: the items of a list. tests/oracle compares structures and dtypes with tf.data's."""

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, TensorSpec
from dataset.testing import check_operator


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([(1, "a"), (2, "b")], [(np.int64(1), b"a"), (np.int64(2), b"b")]),
        ([[1], [2, 3]], [np.array([1]), np.array([2, 3])]),
        ([{1}, {2}], [{1}, {2}]),
    ],
    ids=repr,
)
def test_gives_the_items(given, expected):
    check_operator(lambda: Dataset.from_list(given), expected)
    shuffled = list(Dataset.from_list(given).shuffle(2, seed=1))
    check_operator(lambda: Dataset.from_list(given).shuffle(2, seed=1).skip(1), shuffled[1:])


def test_knows_spec_length_and_each_element():
    elements = Dataset.from_list([(1, [1, 2]), (2, [3, 4]), (3, [5])])
    assert elements.element_spec == (TensorSpec((), np.int64), TensorSpec((None,), np.int64))
    assert len(elements) == 3
    assert elements[-1][1].tolist() == [5]
    ragged = Dataset.from_list([RaggedTensor.from_rows([[1]]), RaggedTensor.from_rows([[1], [2]])])
    assert ragged.element_spec == RaggedTensorSpec((None, None), np.int64)


def test_fingerprints_depend_on_the_elements():
    prints = {Dataset.from_list(elements).fingerprint() for elements in ([1, 2], [1, 3], [[1], [2]], [[1], [2, 3]])}
    assert len(prints) == 4
    assert Dataset.from_list([[1], [2, 3]]).fingerprint() in prints
