"""Tests of the feature descriptions: what they accept, and the messages for what they reject."""

import pickle

import numpy as np
import pytest

from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from dataset.plan.spec import BYTES, RaggedTensorSpec, SparseTensorSpec, TensorSpec


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.int64, np.dtype(np.int64)),
        (int, np.dtype(np.int64)),
        ("int64", np.dtype(np.int64)),
        (np.float32, np.dtype(np.float32)),
        ("float32", np.dtype(np.float32)),
        (bytes, BYTES),
        (str, BYTES),
        ("bytes", BYTES),
        ("str", BYTES),
        ("string", BYTES),
        (np.dtype("S"), BYTES),
    ],
)
def test_dtypes_may_be_given_as_types_and_as_names(given, dtype):
    assert VarLenFeature(given).dtype == dtype
    assert FixedLenFeature((), given).dtype == dtype
    assert FixedLenSequenceFeature((), given).dtype == dtype
    assert RaggedFeature(given).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int32, np.float64, "uint8", object, None, "nonsense", "S5", bool])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be int64, float32, or bytes"):
        VarLenFeature(dtype)


@pytest.mark.parametrize("shape", [(None,), (2, None), (-1,), None, "ab", ("x",)])
def test_shapes_must_be_known(shape):
    with pytest.raises(ValueError, match="FixedLenFeature: every dimension of shape must be known"):
        FixedLenFeature(shape, np.int64)


def test_a_shape_may_be_a_list_or_an_int():
    assert FixedLenFeature([2, 3], np.int64).shape == (2, 3)
    assert FixedLenFeature(4, np.int64).shape == (4,)


def test_rows_of_a_sequence_must_hold_values():
    with pytest.raises(ValueError, match="at least one value"):
        FixedLenSequenceFeature((0,), np.int64)


@pytest.mark.parametrize(
    ("shape", "dtype", "default"),
    [((), np.int64, [1, 2]), ((2,), np.int64, 1), ((), np.int64, 1.5), ((), np.int64, "a"), ((), bytes, 1)],
)
def test_defaults_must_fit(shape, dtype, default):
    with pytest.raises(ValueError, match="default_value must hold"):
        FixedLenFeature(shape, dtype, default)


def test_defaults_are_kept_flat():
    assert FixedLenFeature((2, 1), bytes, [["a"], [b"b"]]).default_value == (b"a", b"b")
    assert FixedLenFeature((), np.float32, 1).default_value == (1,)
    assert FixedLenSequenceFeature((), bytes, True, "x").default_value == b"x"


def test_features_are_values():
    one = RaggedFeature(np.int64, partitions=[RaggedFeature.RowSplits("s")])
    assert one == RaggedFeature("int64", partitions=(RaggedFeature.RowSplits("s"),))
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    with pytest.raises(AttributeError):
        one.dtype = np.float32


def test_specs_are_those_of_one_element():
    assert FixedLenFeature((2,), np.int64).spec == TensorSpec((2,), np.int64)
    assert VarLenFeature(bytes).spec == SparseTensorSpec((None,), bytes)
    assert FixedLenSequenceFeature((3,), np.float32).spec == TensorSpec((None, 3), np.float32)
    assert RaggedFeature(bytes).spec == TensorSpec((None,), bytes)
    uniform = RaggedFeature.UniformRowLength(2)
    assert RaggedFeature(bytes, partitions=[uniform]).spec == TensorSpec((None, 2), bytes)
    lengths = RaggedFeature.RowLengths("l")
    assert RaggedFeature(np.int64, partitions=[lengths, uniform]).spec == RaggedTensorSpec((None, None, 2), np.int64, 1)
    assert RaggedFeature(np.int64, partitions=[uniform, lengths]).spec == RaggedTensorSpec(
        (None, None, None), np.int64, 2
    )


def test_wrong_partitions_are_refused():
    with pytest.raises(ValueError, match="partitions must be RaggedFeature"):
        RaggedFeature(np.int64, partitions=["row_splits"])
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        RaggedFeature.UniformRowLength(0)
    with pytest.raises(ValueError, match="row_splits_dtype must be int64"):
        RaggedFeature(np.int64, row_splits_dtype=np.int32)
