"""from_tensors: one element, as it was given."""

import dataclasses
from collections import OrderedDict, namedtuple

import attrs
import numpy as np
import pytest

from dataset import Dataset, RaggedTensor, RaggedTensorSpec, SparseTensor, SparseTensorSpec, TensorSpec
from dataset.testing import assert_elements_equal, check_operator

Point = namedtuple("Point", "x y")  # noqa: PYI024  # both kinds of named tuple must work


@dataclasses.dataclass(frozen=True)
class Record:
    image: object
    label: object


@attrs.frozen
class Sample:
    image: object
    _label: object


RAGGED = RaggedTensor.from_rows([[1, 2], [], [3]])
SPARSE = SparseTensor([[0, 1], [1, 0]], [5.0, 6.0], [2, 2])


@pytest.mark.parametrize(
    ("given", "expected", "spec"),
    [
        (7, np.int64(7), TensorSpec((), np.int64)),
        (2**63, np.uint64(2**63), TensorSpec((), np.uint64)),
        (True, np.True_, TensorSpec((), np.bool_)),
        (1.5, np.float64(1.5), TensorSpec((), np.float64)),
        (1j, np.complex128(1j), TensorSpec((), np.complex128)),
        (np.float16(1.5), np.float16(1.5), TensorSpec((), np.float16)),
        (np.array(3, np.uint8), np.uint8(3), TensorSpec((), np.uint8)),
        ("grün", "grün".encode(), TensorSpec((), bytes)),
        (b"a\x00\x00", b"a\x00\x00", TensorSpec((), bytes)),
        (bytearray(b"a\x00"), b"a\x00", TensorSpec((), bytes)),
        ([1, 2, 3], np.array([1, 2, 3]), TensorSpec((3,), np.int64)),
        ([[1], [2]], np.array([[1], [2]]), TensorSpec((2, 1), np.int64)),
        (["a", "bc\x00"], np.array([b"a", b"bc\x00"], object), TensorSpec((2,), bytes)),
        ([b"a\x00", b""], np.array([b"a\x00", b""], object), TensorSpec((2,), bytes)),
        (np.array(["a", "b"]), np.array([b"a", b"b"], object), TensorSpec((2,), bytes)),
        (
            np.datetime64("2024-01-02", "D"),
            np.datetime64("2024-01-02", "D"),
            TensorSpec((), np.dtype("datetime64[D]")),
        ),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32), TensorSpec((0, 3), np.float32)),
        (RAGGED, RAGGED, RaggedTensorSpec((3, None), np.int64)),
        (SPARSE, SPARSE, SparseTensorSpec((2, 2), np.float64)),
        ((1, (2.0, "a")), (np.int64(1), (np.float64(2.0), b"a")), None),
        ((1,), (np.int64(1),), (TensorSpec((), np.int64),)),
        ((1, None), (np.int64(1), None), (TensorSpec((), np.int64), None)),
        ({"b": 1, "a": [2]}, {"b": np.int64(1), "a": np.array([2])}, None),
        (OrderedDict(b=1, a=2), OrderedDict(b=np.int64(1), a=np.int64(2)), None),
        (Point(1, 2), Point(np.int64(1), np.int64(2)), None),
        (Record(1, "a"), Record(np.int64(1), b"a"), None),
        (Sample(1, "a"), Sample(np.int64(1), b"a"), None),
    ],
    ids=repr,
)
def test_gives_the_value_once_in_its_structure(given, expected, spec):
    check_operator(lambda: Dataset.from_tensors(given), [expected])
    if spec is not None:
        assert Dataset.from_tensors(given).element_spec == spec


def test_keeps_the_order_in_which_a_dict_was_filled():
    (element,) = Dataset.from_tensors({"b": 1, "a": 2})
    assert list(element) == ["b", "a"]


def test_passes_any_python_object_through():
    thing = object()
    assert list(Dataset.from_tensors((thing, 1))) == [(thing, np.int64(1))]
    assert Dataset.from_tensors(thing).element_spec == TensorSpec((), object)


def test_counts_one_element():
    dataset = Dataset.from_tensors([1, 2])
    assert dataset.cardinality() == len(dataset) == 1


def test_hands_out_arrays_that_cannot_be_written_to():
    mine = np.zeros(3)
    array, nested = next(iter(Dataset.from_tensors((mine, {"a": mine}))))
    for given in (array, nested["a"]):
        with pytest.raises(ValueError, match="read-only"):
            given[0] = 1
    mine[0] = 1  # the user's own array stays writable


@pytest.mark.parametrize(
    ("value", "arrays"),
    [
        (RAGGED, lambda value: [value.values, value.row_splits]),
        (SPARSE, lambda value: [value.values, value.indices, value.dense_shape]),
    ],
    ids=["ragged", "sparse"],
)
def test_hands_out_ragged_and_sparse_values_that_cannot_be_written_to(value, arrays):
    (given,) = Dataset.from_tensors(value)
    assert not any(array.flags.writeable for array in arrays(given))


@pytest.mark.parametrize("empty", [None, (), (None, None), {}])
def test_refuses_an_element_without_components(empty):
    with pytest.raises(ValueError, match=r"from_tensors\(\).*component"):
        Dataset.from_tensors(empty)


def test_refuses_an_int_of_more_than_64_bits():
    with pytest.raises(ValueError, match="64 bits"):
        Dataset.from_tensors(2**64)


def test_refuses_nested_lists_of_different_lengths():
    with pytest.raises(ValueError, match=r"inhomogeneous|shape"):
        Dataset.from_tensors([[1, 2], [3]])


def test_refuses_a_dict_whose_keys_cannot_be_sorted():
    with pytest.raises(TypeError, match="sortable"):
        Dataset.from_tensors({1: 1, "a": 2})


def test_gives_equal_elements_to_each_iterator():
    dataset = Dataset.from_tensors({"a": [1, 2]})
    assert_elements_equal(list(dataset), list(dataset))
