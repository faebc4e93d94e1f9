"""Specs in few words."""

import numpy as np
import pytest

from dataset import DatasetSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec
from dataset.plan.drawing.brief import brief_spec
from support.pipelines import Pair, Record

INT = TensorSpec((), np.int64)


@pytest.mark.parametrize(
    ("spec", "brief"),
    [
        (INT, "int64"),
        (TensorSpec((None, 3), bytes), "bytes[?, 3]"),
        (TensorSpec(None, np.float32), "float32[...]"),
        (TensorSpec((), object), "object"),
        (RaggedTensorSpec((2, None), np.int32), "ragged int32[2, ?]"),
        (SparseTensorSpec((4,), np.int8), "sparse int8[4]"),
        (DatasetSpec((INT, INT)), "Dataset of (int64, int64)"),
        ((INT,), "(int64,)"),
        ((INT, None), "(int64, None)"),
        ({"b": INT, "a": (INT, INT)}, "{a: (int64, int64), b: int64}"),
        (Pair(INT, INT), "Pair(x=int64, y=int64)"),
        (Record(INT, {"a": INT}), "Record(image=int64, label={a: int64})"),
    ],
)
def test_a_spec_in_few_words(spec, brief):
    assert brief_spec(spec) == brief
