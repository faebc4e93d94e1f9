"""from_tensors: one element, as it was given. tests/oracle compares structures and dtypes with tf.data's."""

from collections import OrderedDict

import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, SparseTensor, TensorSpec
from dataset.testing import check_operator
from support.op_cases import Sample
from support.pipelines import Record

RAGGED = RaggedTensor.from_rows([[1, 2], [], [3]])
SPARSE = SparseTensor([[0, 1], [1, 0]], [5.0, 6.0], [2, 2])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (bytearray(b"a\x00"), b"a\x00"),
        (np.datetime64("2024-01-02", "D"), np.datetime64("2024-01-02", "D")),
        (OrderedDict(b=1, a=2), OrderedDict(b=np.int64(1), a=np.int64(2))),
        (Record(1, "a"), Record(np.int64(1), b"a")),
        (Sample(1, RAGGED), Sample(np.int64(1), RAGGED)),
    ],
    ids=repr,
)
def test_gives_the_value_once_in_its_structure(given, expected):
    check_operator(lambda: Dataset.from_tensors(given), [expected])


def test_passes_any_python_object_through():
    thing = object()
    assert list(Dataset.from_tensors((thing, 1))) == [(thing, np.int64(1))]
    assert Dataset.from_tensors(thing).element_spec == TensorSpec((), object)


def test_returns_arrays_that_cannot_be_written_to():
    mine = np.zeros(3)
    array, nested, ragged, sparse = next(iter(Dataset.from_tensors((mine, {"a": mine}, RAGGED, SPARSE))))
    arrays = [array, nested["a"], ragged.values, ragged.row_splits, sparse.values, sparse.indices, sparse.dense_shape]
    assert not any(array.flags.writeable for array in arrays)
    mine[0] = 1  # the user's own array stays writable
