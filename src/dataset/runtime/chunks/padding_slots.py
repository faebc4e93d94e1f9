"""Elements that are missing in a process's share, and the zeros that stand in for them (ops/shard/)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunks.chunk import Chunk, object_column


class AbsentError(Exception):
    """Internal: takes the place of an element that is not there, like an exception, until zeros are put there.

    It never comes out. Here is a class of its own, and not in errors.py, since no user can catch it.

    Attributes:
        example_follows: whether the next element is not one of the sequence, but shows what the zeros are like.
    """

    def __init__(self, *, example_follows: bool) -> None:
        super().__init__(int(example_follows))

    @property
    def example_follows(self) -> bool:
        """Whether the next element only shows what the zeros are like."""
        return bool(self.args[0])


def zeros_like(element: Chunk) -> Chunk:
    """An element, in a chunk of one, with the shapes and dtypes of that in ``element``.

    Text is empty, times are 1970 or no time at all; an object of a user's own class is None.
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
