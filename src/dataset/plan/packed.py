"""Packed columns: arrays or sparse tensors of different lengths, stored contiguously.

Parsing many records at once produces values in this form, which a RaggedTensor has, too, and a batch needs them in this
form. So they are split into arrays only on access. Only a map directly upstream of an op that batches passes such
columns on, if the optimizer allows it (parser_and_batch_fusion). Their consumers use them like any sequence of n
values. from_tensor_slices keeps the rows of a ragged tensor in this form, also for sorting them by length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeGuard, overload

import numpy as np
import numpy.typing as npt

from dataset import plan
from dataset.plan.values import SparseTensor, row_offsets

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class RaggedColumn(Sequence[Any]):
    """Sequence of n arrays: the i-th is ``values[splits[i]:splits[i + 1]]``.

    Args:
        values: the values of all arrays, contiguous.
        splits: int64 of shape (n + 1,), ascending.
        sparse: whether each is a SparseTensor with one dimension and a value in every cell, instead of an array.
    """

    __slots__ = ("sparse", "splits", "values")

    def __init__(self, values: Array, splits: Ints, *, sparse: bool = False) -> None:
        self.values = values
        self.splits = splits
        self.sparse = sparse

    def __len__(self) -> int:
        return len(self.splits) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return one array, or for a slice a column that shares memory with this one."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return list(self)[index]
            return type(self)(self.values, self.splits[start : max(start, stop) + 1], sparse=self.sparse)
        at = range(len(self))[index]
        return self._value(int(self.splits[at]), int(self.splits[at + 1]))

    def __iter__(self) -> Iterator[Any]:
        splits = self.splits.tolist()
        return self._cut(splits[:-1], splits[1:])

    def chosen(self, indices: npt.NDArray[np.intp]) -> list[Any]:
        """Return the arrays at ``indices`` as a list."""
        return list(self._cut(self.splits[indices].tolist(), self.splits[1:][indices].tolist()))

    def taken(self, indices: npt.NDArray[np.intp]) -> RaggedColumn:
        """Return the arrays at ``indices`` as a column with its own values."""
        splits = row_offsets(self.lengths[indices])
        values = np.empty((splits[-1], *self.values.shape[1:]), self.values.dtype)
        plan.copy_rows(self.values, self.splits, values, indices)
        return RaggedColumn(values, splits, sparse=self.sparse)

    def _cut(self, starts: list[int], stops: list[int]) -> Iterator[Any]:
        if self.sparse:
            return map(self._value, starts, stops)
        return map(self.values.__getitem__, map(slice, starts, stops))

    def _value(self, start: int, stop: int) -> Any:
        values = self.values[start:stop]
        return SparseTensor(np.arange(stop - start)[:, None], values, [stop - start]) if self.sparse else values

    @property
    def lengths(self) -> Ints:
        """The number of values of each array."""
        lengths: Ints = self.splits[1:] - self.splits[:-1]  # np.diff takes three times as long for short arrays
        return lengths

    @property
    def flat(self) -> Array:
        """The values of the arrays in this column, without any others in the buffer."""
        return self.values[self.splits[0] : self.splits[-1]]

    @property
    def nbytes(self) -> int:
        """The size of the values in bytes; for objects, the sum of their lengths."""
        flat = self.flat
        return flat.nbytes if flat.dtype != object else sum(map(len, flat.ravel().tolist()))

    def stacked(self) -> Array | SparseTensor | None:
        """Return the column as one batch: an array, or a SparseTensor; None if arrays differ in length."""
        lengths = self.lengths
        if self.sparse:
            return self.sparse_batch()
        if (lengths != lengths[0]).any():
            return None
        return self.flat.reshape(len(self), int(lengths[0]), *self.values.shape[1:])

    def sparse_batch(self) -> SparseTensor:
        """Return a SparseTensor with a row for each array, as wide as the longest."""
        flat, lengths = self.flat, self.lengths
        indices = np.empty((len(flat), 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
        indices[:, 1] = np.arange(len(flat)) - np.repeat(self.splits[:-1] - self.splits[0], lengths)
        return SparseTensor(indices, flat, [len(lengths), lengths.max(initial=0)])

    def goes_with(self, other: object) -> bool:
        """Return whether ``other`` is a column of the same kind of values."""
        return (
            isinstance(other, RaggedColumn)
            and other.sparse == self.sparse
            and other.values.dtype == self.values.dtype
            and other.values.shape[1:] == self.values.shape[1:]
        )

    def copy(self) -> RaggedColumn:
        """Return a copy with its own values."""
        return RaggedColumn(self.flat.copy(), self.splits - self.splits[0], sparse=self.sparse)

    @staticmethod
    def joined(parts: Sequence[Any]) -> RaggedColumn:
        """Concatenate columns of the same kind of values."""
        splits = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)]).cumsum()
        return RaggedColumn(np.concatenate([part.flat for part in parts]), splits, sparse=parts[0].sparse)


def is_packed(column: object) -> TypeGuard[RaggedColumn]:
    """Return whether a column is a RaggedColumn."""
    return isinstance(column, RaggedColumn)
