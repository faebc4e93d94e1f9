"""Chunks: runs of consecutive elements, the unit that operators hand to each other.

A chunk has one or both of two forms. *Columns*: per component an array with a leading axis of ``length``, or a list of
``length`` values where those have no common shape; below a batch a RaggedColumn may stand for such a list. *Rows*: a
list of elements. It turns from one form into the other only when asked, and remembers both, because per-element work in
Python is what costs.

Below a streaming shuffle a chunk may say of its elements where they can be read again (provenance.py). Parts of it say
so, too; a chunk of new elements does not.

A chunk is never changed after it is made. Values in it are canonical (normalization.py).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.plan.packed import is_packed
from dataset.plan.structure import Structure
from dataset.plan.values import RaggedTensor, SparseTensor, frozen_view
from dataset.runtime.chunks.provenance import References

Array: TypeAlias = npt.NDArray[Any]
Column: TypeAlias = Array | list[Any]


class Chunk:
    """``length`` consecutive elements of one structure. Give ``columns``, ``rows`` or both.

    Attributes:
        references: where the elements can be read again; set by who makes the chunk, None where nobody knows.
    """

    __slots__ = ("_columns", "_rows", "length", "references", "structure")

    def __init__(
        self,
        structure: Structure,
        length: int,
        columns: Sequence[Column] | None = None,
        rows: list[Any] | None = None,
    ) -> None:
        self.structure = structure
        self.length = length
        self._columns = columns
        self._rows = rows
        self.references: References | None = None

    def __len__(self) -> int:
        return self.length

    def columns(self) -> Sequence[Column]:
        """The components, one column each."""
        if self._columns is None:
            assert self._rows is not None  # one of the two forms is there
            self._columns = [pack(column) for column in self.structure.columns(self._rows)]
        return self._columns

    def rows(self) -> list[Any]:
        """The elements."""
        if self._rows is None:
            assert self._columns is not None
            rows = self.structure.rows(self._columns, self.length)
            if not self.structure.is_immutable:
                return rows  # made anew each time: who is given a dict may change it
            self._rows = rows
        return self._rows

    def only(self) -> Any:
        """The element, of a chunk of one."""
        if self._rows is not None:
            return self._rows[0]
        assert self._columns is not None
        return self.structure.unflatten([column[0] for column in self._columns])

    def slice(self, start: int, stop: int) -> Chunk:
        """Elements ``start`` to ``stop``, sharing memory with this chunk."""
        if start == 0 and stop == self.length:
            return self
        columns = None if self._columns is None else [column[start:stop] for column in self._columns]
        rows = None if self._rows is None else self._rows[start:stop]
        part = Chunk(self.structure, stop - start, columns, rows)
        if self.references is not None:
            part.references = self.references.slice(start, stop)
        return part

    def stride(self, start: int, step: int) -> Chunk:
        """Every ``step``-th element from ``start`` on."""
        picked = [column[start::step] for column in self.columns()]
        part = Chunk(self.structure, len(range(start, self.length, step)), picked)
        if self.references is not None:
            part.references = self.references.slice(start, None, step)
        return part

    def take(self, indices: npt.NDArray[np.intp]) -> Chunk:
        """The elements at ``indices``, in that order, as a chunk with memory of its own."""
        length = len(indices)
        if self._columns is None:
            assert self._rows is not None
            taken = Chunk(self.structure, length, rows=take_list(self._rows, indices))
        else:
            taken = Chunk(self.structure, length, [take_column(column, indices) for column in self._columns])
        if self.references is not None:
            taken.references = self.references.take(indices)
        return taken

    def read_only(self) -> Chunk:
        """The same elements, their arrays handed out as read-only views, for what the library will read again."""
        return Chunk(self.structure, self.length, [read_only(column) for column in self.columns()])

    @property
    def is_packed(self) -> bool:
        """Whether a column is no list though it stands for one."""
        return self._columns is not None and any(map(is_packed, self._columns))

    def unpacked(self) -> Chunk:
        """The same elements, for those to whom a list must be one."""
        columns = [list(column) if is_packed(column) else column for column in self.columns()]
        return Chunk(self.structure, self.length, columns)

    @property
    def nbytes(self) -> int:
        """Bytes held by the components, as far as they tell."""
        if self._columns is None:
            assert self._rows is not None
            return sum(map(_column_bytes, self.structure.columns(self._rows)))  # not packed for that
        return sum(map(_column_bytes, self._columns))

    @staticmethod
    def concatenate(chunks: Sequence[Chunk]) -> Chunk:
        """The chunks one after another; a single one is returned as it is. All have the same structure."""
        if len(chunks) == 1:
            return chunks[0]
        structure, length = chunks[0].structure, sum(chunk.length for chunk in chunks)
        if all(chunk._columns is None for chunk in chunks):  # noqa: SLF001  # its own class
            joined = Chunk(structure, length, rows=[row for chunk in chunks for row in chunk.rows()])
        else:
            parts = zip(*(chunk.columns() for chunk in chunks), strict=True)
            joined = Chunk(structure, length, [concatenate_columns(part) for part in parts])
        joined.references = references_of(chunks)
        return joined

    def __repr__(self) -> str:
        form = "rows" if self._columns is None else "columns"
        return f"Chunk({self.structure!r}, length={self.length}, {form})"


Outcome: TypeAlias = Chunk | BaseException
"""Elements, or an exception in the place of one."""


def nbytes_of(outcome: Outcome) -> int:
    """Bytes held by elements, as far as they tell; none by an exception."""
    return outcome.nbytes if isinstance(outcome, Chunk) else 0


class Remainder:
    """A chunk that is handed out in pieces; the rest is not copied each time."""

    __slots__ = ("_chunk", "_given")

    def __init__(self, chunk: Chunk | None = None) -> None:
        self._chunk = chunk
        self._given = 0

    def __bool__(self) -> bool:
        return self._chunk is not None

    def give(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements; None where nothing is left."""
        chunk = self._chunk
        if chunk is None:
            return None
        start, stop = self._given, self._given + n
        if stop >= chunk.length:
            self._chunk = None
            return chunk.slice(start, chunk.length)
        self._given = stop
        return chunk.slice(start, stop)

    def rest(self) -> Chunk | None:
        """All that is left, still to be given."""
        return None if self._chunk is None else self._chunk.slice(self._given, self._chunk.length)


def pack(values: Sequence[Any]) -> Column:
    """A list of NumPy scalars of one type as an array; anything else as a list."""
    if isinstance(values, np.ndarray):
        return values
    first = values[0]
    if isinstance(first, np.generic) and first.dtype.kind not in "OVMm" and len(set(map(type, values))) == 1:
        return np.fromiter(values, first.dtype, len(values))
    return values if isinstance(values, list) else list(values)


def object_column(values: Sequence[Any] | Array) -> Array:
    """A one-dimensional object array of ``values``, whatever they are.

    ``np.array`` would make a matrix of equally long values.
    """
    return np.fromiter(values, object, len(values))


def take_list(values: list[Any], indices: npt.NDArray[np.intp]) -> list[Any]:
    """``[values[i] for i in indices]``, at the speed of C."""
    if is_packed(values):
        return values.chosen(indices)
    if len(indices) == 1:
        return [values[indices[0]]]
    return list(operator.itemgetter(*indices.tolist())(values)) if len(indices) else []


def take_column(column: Column, indices: npt.NDArray[np.intp]) -> Column:
    """The values at ``indices``; ``ndarray.take`` is twice as fast as indexing for rows of bytes."""
    return column.take(indices, axis=0) if isinstance(column, np.ndarray) else take_list(column, indices)


_COPIED_BYTES = 8192  # what is smaller is copied in less time than it takes to look at addresses


def references_of(chunks: Sequence[Chunk]) -> References | None:
    """Where the elements of all chunks can be read again; None if that is known of none."""
    return References.concatenate([chunk.references for chunk in chunks], [chunk.length for chunk in chunks])


def concatenate_columns(parts: Sequence[Column]) -> Column:
    """Columns one after another: an array where all are arrays of one dtype and row shape, else a list."""
    first = parts[0]
    if isinstance(first, np.ndarray) and all(
        isinstance(part, np.ndarray) and part.dtype == first.dtype and part.shape[1:] == first.shape[1:]
        for part in parts
    ):
        worth_a_look = first.base is not None and first.nbytes >= _COPIED_BYTES
        joined = _joined_rows(parts) if worth_a_look else None  # type: ignore[arg-type]  # just tested
        return np.concatenate(parts) if joined is None else joined
    if is_packed(first) and all(map(first.goes_with, parts)):
        return first.joined(parts)  # type: ignore[return-value]  # it stands for a list
    return [value for part in parts for value in part]


def _joined_rows(parts: Sequence[Array]) -> Array | None:
    """The parts as one view, where they are neighbouring rows of one array; None where they are not."""
    whole = parts[0].base
    if not isinstance(whole, np.ndarray) or whole.shape[1:] != parts[0].shape[1:] or whole.dtype != parts[0].dtype:
        return None
    if not whole.flags.c_contiguous or not whole.nbytes:
        return None
    row_bytes = whole.nbytes // len(whole)
    start = _address(parts[0])
    following = start
    for part in parts:
        if part.base is not whole or not (part.flags.c_contiguous and part.flags.writeable):
            return None  # what is read-only must not become writable, nor the other way round
        if _address(part) != following:
            return None
        following += part.nbytes
    first, odd = divmod(start - _address(whole), row_bytes)
    return None if odd else whole[first : first + (following - start) // row_bytes]


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def read_only(column: Column) -> Column:
    """The column's values, through which nobody can write."""
    if isinstance(column, np.ndarray):
        return frozen_view(column)
    return [read_only_component(value) for value in column]


def read_only_component(value: Any) -> Any:
    """One component, through which nobody can write; objects of the user's own classes are what they are."""
    if isinstance(value, np.ndarray):
        return frozen_view(value)
    return value.read_only() if isinstance(value, RaggedTensor | SparseTensor) else value


_NUMBERS = (np.number, np.bool_)


def _column_bytes(column: Sequence[Any] | Array) -> int:
    if is_packed(column) or (isinstance(column, np.ndarray) and column.dtype != object):
        return column.nbytes
    values = column.ravel().tolist() if isinstance(column, np.ndarray) else column
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind is bytes:
            return sum(map(len, values))
        if issubclass(kind, _NUMBERS):
            return int(values[0].itemsize) * len(values)
    return sum(map(_value_bytes, values))


def _value_bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return _column_bytes(value) if value.dtype == object else value.nbytes
    if isinstance(value, bytes):
        return len(value)
    try:
        return int(getattr(value, "nbytes", 8))
    except Exception:  # noqa: BLE001  # an object of the user's own, which means something else by it
        return 8
