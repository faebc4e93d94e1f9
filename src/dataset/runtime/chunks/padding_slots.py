"""Padding slots: elements missing in a process's share, and the zeros that replace them (ops/shard/)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dataset.plan.values import RaggedTensor, SparseTensor, object_column
from dataset.runtime.chunks.chunk import Chunk


class AbsentError(Exception):
    """Internal: takes the place of a missing element, like an exception, until it is replaced by zeros.

    It is never raised to the user, and therefore not part of errors.py.
    """


def zeros_like(element: Chunk) -> Chunk:
    """Return a chunk of one element of zeros with the shapes and dtypes of the element in ``element``.

    Text is empty, datetimes are 1970-01-01 or NaT, and objects of user classes are None.
    """
    return Chunk(element.structure, 1, [[_zeros(column[0])] for column in element.columns()])


def _zeros(value: Any) -> Any:
    if isinstance(value, bytes):
        return b""
    if isinstance(value, np.ndarray):
        return np.zeros(value.shape, value.dtype) if value.dtype != object else _zero_objects(value)
    if isinstance(value, np.generic):
        return np.zeros((), value.dtype)[()]
    if isinstance(value, RaggedTensor):
        return RaggedTensor.from_nested_row_splits(_zeros(value.flat_values), value.nested_row_splits)
    if isinstance(value, SparseTensor):
        return SparseTensor(value.indices[:0], value.values[:0], value.dense_shape)
    return None


def _zero_objects(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    zeros = [_zeros(value) for value in values.ravel().tolist()]
    return object_column(zeros).reshape(values.shape)
