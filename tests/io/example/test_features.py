"""Tests of the feature descriptions: what they accept, and the messages for what they reject."""

import numpy as np
import pytest

from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from dataset.plan.spec import BYTES, RaggedTensorSpec, SparseTensorSpec, TensorSpec

NAMES = {
    np.dtype(np.int64): [np.int64, int, "int64"],
    np.dtype(np.float32): [np.float32, "float32"],
    BYTES: [bytes, str, "bytes", "str", "string", np.dtype("S")],
}


@pytest.mark.parametrize("dtype", NAMES)
def test_dtypes_may_be_given_as_types_and_as_names(dtype):
    for given in NAMES[dtype]:
        assert VarLenFeature(given).dtype == RaggedFeature(given).dtype == dtype
        assert FixedLenFeature((), given).dtype == FixedLenSequenceFeature((), given).dtype == dtype


@pytest.mark.parametrize("dtype", [np.int32, np.float64, "uint8", object, None, "nonsense", "S5", bool])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be int64, float32, or bytes"):
        VarLenFeature(dtype)


@pytest.mark.parametrize("shape", [(None,), (2, None), (-1,), None, "ab", ("x",)])
def test_shapes_must_be_known(shape):
    with pytest.raises(ValueError, match="FixedLenFeature: every dimension of shape must be known"):
        FixedLenFeature(shape, np.int64)
    assert FixedLenFeature([2, 3], np.int64).shape == (2, 3)
    assert FixedLenFeature(4, np.int64).shape == (4,)
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


def test_specs_are_those_of_one_element():
    uniform, lengths = RaggedFeature.UniformRowLength(2), RaggedFeature.RowLengths("l")
    for feature, spec in (
        (FixedLenFeature((2,), np.int64), TensorSpec((2,), np.int64)),
        (VarLenFeature(bytes), SparseTensorSpec((None,), bytes)),
        (FixedLenSequenceFeature((3,), np.float32), TensorSpec((None, 3), np.float32)),
        (RaggedFeature(bytes), TensorSpec((None,), bytes)),
        (RaggedFeature(bytes, partitions=[uniform]), TensorSpec((None, 2), bytes)),
        (RaggedFeature(int, partitions=[lengths, uniform]), RaggedTensorSpec((None, None, 2), np.int64, 1)),
        (RaggedFeature(int, partitions=[uniform, lengths]), RaggedTensorSpec((None, None, None), np.int64, 2)),
    ):
        assert feature.spec == spec


def test_wrong_partitions_are_refused():
    with pytest.raises(ValueError, match="partitions must be RaggedFeature"):
        RaggedFeature(np.int64, partitions=["row_splits"])
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        RaggedFeature.UniformRowLength(0)
    with pytest.raises(ValueError, match="row_splits_dtype must be int64"):
        RaggedFeature(np.int64, row_splits_dtype=np.int32)
