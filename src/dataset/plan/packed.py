"""Packed columns: arrays or sparse tensors of different lengths, stored contiguously; byte strings in larger blocks.

Parsing many records at once produces values in this form, which a RaggedTensor has, too, and a batch needs them in this
form. So they are split into arrays only on access. Only a map directly upstream of an op that batches passes such
columns on, if the optimizer allows it (parser_and_batch_fusion). Their consumers use them like any sequence of n
values. from_tensor_slices keeps the rows of a ragged tensor in this form, also for sorting them by length.

Records stay in the blocks that were read if a parser of whole columns reads them (BytesColumn): creating and shuffling
one object for each takes as long as parsing them. Windows stay slices of columns for flat_map (WindowColumn).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self, TypeGuard, overload

import numpy as np
import numpy.typing as npt

from dataset import plan
from dataset.plan.values import SparseTensor, row_offsets

TAKES_BLOCKS = "__dataset_takes_blocks__"
"""Attribute that is True in functions of whole columns that take a BytesColumn in the place of an array of objects."""

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


class BytesColumn(Sequence[bytes]):
    """Sequence of n byte strings that are parts of larger blocks; each becomes an object only on access.

    Args:
        places: int64 of shape (n, 2), the address and the length of each.
        blocks: the blocks by their addresses. All strings lie in them.
    """

    __slots__ = ("blocks", "places")

    def __init__(self, places: Ints, blocks: dict[int, bytes]) -> None:
        self.places = places
        self.blocks = blocks

    @classmethod
    def of_block(cls, block: bytes, edges: npt.ArrayLike) -> BytesColumn:
        """Return the column of ``block[begin:end]`` for the pairs in ``edges``, which the caller has checked."""
        address: int = np.frombuffer(block, np.uint8).__array_interface__["data"][0]
        places = np.array(edges, np.int64)
        places[:, 1] -= places[:, 0]
        places[:, 0] += address
        return cls(places, {address: block})

    @classmethod
    def takes(cls, column: Any) -> bool:
        """Return whether a column is a BytesColumn or a list of byte strings."""
        return type(column) is cls or (type(column) is list and set(map(type, column)) == {bytes})

    @classmethod
    def of(cls, column: Any) -> BytesColumn:
        """Return a BytesColumn, or that of a list of byte strings, which are copied to a block of their own."""
        if type(column) is cls:
            return column
        ends = np.array([0, *itertools.accumulate(map(len, column))])
        return cls.of_block(b"".join(column), np.column_stack([ends[:-1], ends[1:]]))

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> BytesColumn: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return one string, or for a slice a column of the same blocks."""
        if isinstance(index, slice):
            return self.taken(index)
        return self.taken(np.array([index])).tolist()[0]

    def __setitem__(self, index: int, value: bytes) -> None:
        """Replace one string."""
        other = self.of([value])
        self.places[index] = other.places[0]
        self.blocks = self.blocks | other.blocks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.tolist())

    def tolist(self) -> list[bytes]:
        """Return the strings as objects."""
        bases, owners = self._owners()
        starts = self.addresses - bases[owners]
        blocks = [self.blocks[base] for base in bases.tolist()]
        places = zip(owners.tolist(), starts.tolist(), (starts + self.lengths).tolist(), strict=True)
        return [blocks[owner][start:stop] for owner, start, stop in places]

    def _owners(self) -> tuple[Ints, npt.NDArray[np.intp]]:
        """Return the addresses of the blocks, and the index of the block of each string among them."""
        bases = np.array(sorted(self.blocks), np.int64)
        return bases, bases.searchsorted(self.addresses, "right") - 1

    def taken(self, indices: npt.NDArray[np.intp] | slice) -> BytesColumn:
        """Return the strings at ``indices``, in the same blocks."""
        return BytesColumn(self.places[indices], self.blocks)

    def parts(self, starts: Ints, stops: Ints) -> BytesColumn:
        """Return the column of ``string[start:stop]``, with a pair of positions in each string."""
        return BytesColumn(np.column_stack([self.addresses + starts, stops - starts]), self.blocks)

    def copy(self) -> BytesColumn:
        """Return a column whose strings may be replaced; its addresses are contiguous, and so are its lengths."""
        return BytesColumn(self.places.copy("F"), self.blocks)

    @property
    def addresses(self) -> Ints:
        """Where each string begins."""
        return self.places[:, 0]

    @property
    def lengths(self) -> Ints:
        """The length of each string."""
        return self.places[:, 1]

    @property
    def nbytes(self) -> int:
        """The sum of the lengths."""
        return int(self.lengths.sum())

    @property
    def block_bytes(self) -> int:
        """The size of the blocks."""
        return sum(map(len, self.blocks.values()))

    def without_unused(self, bytes_max: int) -> BytesColumn:
        """Return the column without blocks that contain no string of it.

        If the others are twice as large as its strings, and larger than ``bytes_max``, copy the strings to a new block.
        """
        bases, owners = self._owners()
        column = BytesColumn(self.places, {base: self.blocks[base] for base in bases[np.unique(owners)].tolist()})
        if column.block_bytes <= max(bytes_max, 2 * self.nbytes):
            return column
        low = min(column.blocks)
        edges = column.places - low
        edges[:, 1] = edges[:, 0] + self.lengths
        # An array of all memory from the first block to the last string, of which only the strings are read.
        memory = {"data": (low, True), "shape": (int(edges.max()),), "typestr": "|u1", "version": 3}
        out = np.empty(self.nbytes, np.uint8)
        of_strings = np.arange(0, edges.size, 2)  # the other rows lie between a string and the next
        plan.copy_rows(np.asarray(SimpleNamespace(__array_interface__=memory)), edges.ravel(), out, of_strings)
        ends = self.lengths.cumsum()
        return self.of_block(out.tobytes(), np.column_stack([ends - self.lengths, ends]))

    @staticmethod
    def joined(parts: Sequence[BytesColumn]) -> BytesColumn:
        """Concatenate columns."""
        blocks = {base: block for part in parts for base, block in part.blocks.items()}
        return BytesColumn(np.concatenate([part.places for part in parts]), blocks)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.tolist(),)


class WindowColumn(Sequence[Any]):
    """Windows of one component: a sequence of datasets, each created when it is read.

    Attributes:
        pieces: the elements of each window.
    """

    __slots__ = ("_make", "pieces")

    def __init__(self, pieces: list[Any], make: Callable[[Any], Any]) -> None:
        self.pieces = pieces
        self._make = make

    def __len__(self) -> int:
        return len(self.pieces)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> WindowColumn: ...
    def __getitem__(self, index: int | slice) -> Any:
        found: Any = self.pieces[index]
        return WindowColumn(found, self._make) if isinstance(index, slice) else self._make(found)

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes, as far as known; windows share them."""
        return sum(getattr(piece, "nbytes", 8 * len(piece)) for piece in self.pieces)


def is_packed(column: object) -> TypeGuard[RaggedColumn]:
    """Return whether a column is a RaggedColumn."""
    return isinstance(column, RaggedColumn)
