"""Columns of arrays, or of sparse tensors, of different lengths that lie end to end.

Who parses many records at once has their values in this form, as has a RaggedTensor, and a batch wants them in this
form; so they are cut apart only where somebody asks for one. Only a map below a batch gives such columns to others,
where the optimizer says that it may (parser_and_batch_fusion). To all of these they are a sequence of n values like any
list. from_tensor_slices keeps the rows of a ragged tensor so for itself, and for who sorts them by their lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeGuard, overload

import numpy as np
import numpy.typing as npt

from dataset.plan.values import SparseTensor

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

_LONG = 128
"""From so many values each on, copying one after the other takes less time than a place for every value."""


class RaggedColumn(Sequence[Any]):
    """n arrays: the i-th is ``values[splits[i]:splits[i + 1]]``.

    Args:
        values: of all, end to end.
        splits: int64 (n + 1,), ascending.
        sparse: whether each is a SparseTensor of one dimension, all of whose cells are there, instead of an array.
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
        """One value, or a column of consecutive ones that shares memory with this one."""
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
        """The values at ``indices``."""
        return list(self._cut(self.splits[indices].tolist(), self.splits[1:][indices].tolist()))

    def taken(self, indices: npt.NDArray[np.intp]) -> RaggedColumn:
        """The same, end to end in values of their own."""
        starts, stops = self.splits[indices], self.splits[1:][indices]
        splits = np.zeros(len(indices) + 1, np.int64)
        np.cumsum(stops - starts, out=splits[1:])
        total = int(splits[-1])
        if total > _LONG * len(indices):
            values = np.concatenate([self.values[a:b] for a, b in zip(starts.tolist(), stops.tolist(), strict=True)])
        else:
            places = np.repeat(starts - splits[:-1], stops - starts)
            places += np.arange(total)
            values = self.values.take(places, axis=0)
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
        """How many values each has."""
        lengths: Ints = self.splits[1:] - self.splits[:-1]  # np.diff takes three times as long for a few
        return lengths

    @property
    def flat(self) -> Array:
        """The values of all, and of no others."""
        return self.values[self.splits[0] : self.splits[-1]]

    @property
    def nbytes(self) -> int:
        """Bytes of the values, as far as they tell."""
        flat = self.flat
        return flat.nbytes if flat.dtype != object else sum(map(len, flat.ravel().tolist()))

    def stacked(self) -> Array | SparseTensor | None:
        """What a batch makes of them: an array, or a SparseTensor; None where arrays differ in length."""
        lengths = self.lengths
        if self.sparse:
            return self.sparse_batch()
        if (lengths != lengths[0]).any():
            return None
        return self.flat.reshape(len(self), int(lengths[0]), *self.values.shape[1:])

    def sparse_batch(self) -> SparseTensor:
        """The cells of all, row by row, with room for the longest."""
        flat, lengths = self.flat, self.lengths
        indices = np.empty((len(flat), 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(len(lengths)), lengths)
        indices[:, 1] = np.arange(len(flat)) - np.repeat(self.splits[:-1] - self.splits[0], lengths)
        return SparseTensor(indices, flat, [len(lengths), lengths.max(initial=0)])

    def goes_with(self, other: object) -> bool:
        """Whether ``other`` is a column of the same kind of values."""
        return (
            isinstance(other, RaggedColumn)
            and other.sparse == self.sparse
            and other.values.dtype == self.values.dtype
            and other.values.shape[1:] == self.values.shape[1:]
        )

    def copy(self) -> RaggedColumn:
        """The same with values of its own."""
        return RaggedColumn(self.flat.copy(), self.splits - self.splits[0], sparse=self.sparse)

    @staticmethod
    def joined(parts: Sequence[Any]) -> RaggedColumn:
        """Columns of the same kind of values, one after another."""
        splits = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)]).cumsum()
        return RaggedColumn(np.concatenate([part.flat for part in parts]), splits, sparse=parts[0].sparse)


def is_packed(column: object) -> TypeGuard[RaggedColumn]:
    """Whether a column, which says that it is a list, is one of these."""
    return isinstance(column, RaggedColumn)
