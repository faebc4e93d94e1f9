"""Chunks: runs of consecutive elements, the unit passed between operators.

A chunk has one or both of two forms. *Columns*: for each component, an array with a leading axis of ``length``, or a
list of ``length`` values without a common shape. A RaggedColumn below a batch, and a BytesColumn below a parser, may
take the place of such a list.
*Rows*: a list of elements. A form is computed from the other only on request and then kept, because per-element work in
Python is expensive.

A chunk has up to two hidden columns, which its parts keep. Below a streaming shuffle, references tell where elements
can be read again (provenance.py); chunks of new elements have none. If provenance is recorded, the lineage tells from
which records they are made (lineage.py); chunks of new elements may inherit it.

A chunk is immutable. Its values are canonical (normalization.py).
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.amounts import LARGE_ELEMENT_BYTES
from dataset.plan.packed import BytesColumn, RaggedColumn, WindowColumn, is_packed
from dataset.plan.structure import LEAF, Structure, is_tuple
from dataset.plan.values import RaggedTensor, SparseTensor, frozen_view
from dataset.runtime.chunks.lineage import Lineage, or_unknown
from dataset.runtime.chunks.provenance import References

Array: TypeAlias = npt.NDArray[Any]
Column: TypeAlias = Array | list[Any]
_PACKED = frozenset([RaggedColumn, BytesColumn, WindowColumn])


class Chunk:
    """A run of ``length`` consecutive elements of one structure, given as ``columns``, ``rows`` or both.

    Attributes:
        references: where the elements can be read again; set by the creator of the chunk, None if unknown.
        lineage: the source records of the elements; set by the creator of the chunk, None if unknown or not recorded.
    """

    __slots__ = ("_columns", "_rows", "length", "lineage", "references", "structure")

    def __init__(
        self,
        structure: Structure,
        length: int,
        columns: Sequence[Column] | None = None,
        rows: list[Any] | None = None,
        lineage: Lineage | None = None,
        references: References | None = None,
    ) -> None:
        self.structure = structure
        self.length = length
        self._columns = columns
        self._rows = rows
        self.lineage = lineage
        self.references = references

    def __len__(self) -> int:
        return self.length

    def columns(self) -> Sequence[Column]:
        """Return the components, one column each."""
        if self._columns is None:
            assert self._rows is not None  # at least one of the two forms exists
            self._columns = [pack(column) for column in self.structure.columns(self._rows)]
        return self._columns

    def rows(self) -> list[Any]:
        """Return the elements."""
        if self._rows is None:
            assert self._columns is not None
            rows = self.structure.rows(self._columns, self.length)
            if not self.structure.is_immutable:
                return rows  # created for each call: the caller may modify a dict
            self._rows = rows
        return self._rows

    def arguments(self) -> list[Any]:
        """Return the values of each argument of a function that is called for each element.

        The arguments are the items of a tuple, otherwise the element.
        """
        if not is_tuple(self.structure):
            return [self.rows()]
        if all(child is LEAF for child in self.structure.children):
            return list(self.columns())
        return list(zip(*self.rows(), strict=True))

    def only(self) -> Any:
        """Return the element of a chunk of one."""
        if self._rows is not None:
            return self._rows[0]
        assert self._columns is not None
        return self.structure.unflatten([column[0] for column in self._columns])

    def slice(self, start: int, stop: int) -> Chunk:
        """Return elements ``start`` to ``stop``, sharing memory with this chunk."""
        if start == 0 and stop == self.length:
            return self
        columns = None if self._columns is None else [column[start:stop] for column in self._columns]
        rows = None if self._rows is None else self._rows[start:stop]
        lineage = None if self.lineage is None else self.lineage[start:stop]
        references = None if self.references is None else self.references[start:stop]
        return Chunk(self.structure, stop - start, columns, rows, lineage, references)

    def stride(self, start: int, step: int) -> Chunk:
        """Return every ``step``-th element from ``start`` on."""
        columns = None if self._columns is None else [column[start::step] for column in self._columns]
        rows = None if self._rows is None else self._rows[start::step]
        lineage = None if self.lineage is None else self.lineage[start::step]
        references = None if self.references is None else self.references[start::step]
        return Chunk(self.structure, len(range(start, self.length, step)), columns, rows, lineage, references)

    def take(self, indices: npt.NDArray[np.intp]) -> Chunk:
        """Return the elements at ``indices``, in that order, as a chunk with memory of its own."""
        columns = None if self._columns is None else [take_column(column, indices) for column in self._columns]
        rows = take_list(self.rows(), indices) if columns is None else None
        lineage = None if self.lineage is None else take_column(self.lineage, indices)
        references = None if self.references is None else self.references[indices]
        return Chunk(self.structure, len(indices), columns, rows, lineage, references)

    def read_only(self) -> Chunk:
        """Return the chunk with read-only views of its arrays, if the library will read them again."""
        columns = [read_only(column) for column in self.columns()]
        return Chunk(self.structure, self.length, columns, lineage=self.lineage)

    def with_lineage(self, lineage: Lineage | None) -> Chunk:
        """Return the same elements with another lineage, as a chunk of its own."""
        chunk = copy.copy(self)
        chunk.lineage = lineage
        return chunk

    @property
    def holds_lists(self) -> bool:
        """Whether all columns are lists, not arrays or packed columns, without references and lineage."""
        is_plain = self._columns is not None and self.references is None and self.lineage is None
        return is_plain and all(type(column) is list for column in self.columns())

    @property
    def holds_rows(self) -> bool:
        """Whether the elements are not divided into columns yet."""
        return self._columns is None

    @property
    def is_packed(self) -> bool:
        """Whether a column is a RaggedColumn, BytesColumn or WindowColumn in the place of a list."""
        return self._columns is not None and not _PACKED.isdisjoint(map(type, self._columns))

    def unpacked(self) -> Chunk:
        """Return the chunk with plain lists in the place of packed columns."""
        columns = [list(column) if type(column) in _PACKED else column for column in self.columns()]
        return Chunk(self.structure, self.length, columns, lineage=self.lineage, references=self.references)

    @property
    def nbytes(self) -> int:
        """The size of the components in bytes, as far as known."""
        if self._columns is None:
            assert self._rows is not None
            return sum(map(_column_bytes, self.structure.columns(self._rows)))  # packing is not worth it here
        return sum(map(_column_bytes, self._columns))

    @staticmethod
    def concatenate(chunks: Sequence[Chunk]) -> Chunk:
        """Concatenate chunks of the same structure; a single chunk is returned as it is."""
        if len(chunks) == 1:
            return chunks[0]
        structure, length = chunks[0].structure, sum(chunk.length for chunk in chunks)
        if all(chunk._columns is None for chunk in chunks):  # noqa: SLF001  # its own class
            joined = Chunk(structure, length, rows=[row for chunk in chunks for row in chunk.rows()])
        else:
            parts = zip(*(chunk.columns() for chunk in chunks), strict=True)
            joined = Chunk(structure, length, [concatenate_columns(part) for part in parts])
        joined.references = references_of(chunks)
        joined.lineage = lineage_of(chunks)
        return joined

    def __repr__(self) -> str:
        form = "rows" if self._columns is None else "columns"
        return f"Chunk({self.structure!r}, length={self.length}, {form})"


def descended(output: Chunk | None, inputs: Chunk) -> Chunk | None:
    """Return the output of an op for these inputs, with their lineage if each of its elements is made from one."""
    if output is not None and output.lineage is None and output.length == inputs.length:
        output.lineage = inputs.lineage
    return output


Outcome: TypeAlias = Chunk | BaseException
"""A chunk, or an exception in the place of one element."""


def nbytes_of(outcome: Outcome) -> int:
    """Return the size of the elements in bytes, as far as known; 0 for an exception."""
    return outcome.nbytes if isinstance(outcome, Chunk) else 0


class Remainder:
    """A chunk that is handed out in pieces without copying the rest each time."""

    __slots__ = ("_chunk", "_given")

    def __init__(self, chunk: Chunk | None = None) -> None:
        self._chunk = chunk
        self._given = 0

    def __bool__(self) -> bool:
        return self._chunk is not None

    def __len__(self) -> int:
        chunk = self._chunk  # read once: other threads may count what the consumer takes
        return 0 if chunk is None else chunk.length - self._given

    def give(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements, or None if nothing is left."""
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
        """Return all that is left, without removing it."""
        return None if self._chunk is None else self._chunk.slice(self._given, self._chunk.length)


def pack(values: Sequence[Any]) -> Column:
    """Convert a list of NumPy scalars of one type to an array; return anything else as a list."""
    if isinstance(values, np.ndarray):
        return values
    first = values[0]
    if isinstance(first, np.generic) and first.dtype.kind not in "OVMm" and len(set(map(type, values))) == 1:
        return np.fromiter(values, first.dtype, len(values))
    return values if isinstance(values, list) else list(values)


def take_list(values: list[Any], indices: npt.NDArray[np.intp]) -> list[Any]:
    """Return ``[values[i] for i in indices]``, computed in C."""
    if is_packed(values):
        return values.chosen(indices)
    if len(indices) == 1:
        return [values[indices[0]]]
    return list(operator.itemgetter(*indices.tolist())(values)) if len(indices) else []


def take_column(column: Column, indices: npt.NDArray[np.intp]) -> Column:
    """Return the values at ``indices``; ``ndarray.take`` is twice as fast as indexing for rows of bytes."""
    if isinstance(column, np.ndarray):
        return column.take(indices, axis=0)
    return column.taken(indices) if isinstance(column, BytesColumn) else take_list(column, indices)


def references_of(chunks: Sequence[Chunk]) -> References | None:
    """Return where the elements of all chunks can be read again, or None if no chunk has references."""
    return References.concatenate([chunk.references for chunk in chunks], [chunk.length for chunk in chunks])


def lineage_of(chunks: Sequence[Chunk]) -> Lineage | None:
    """Return the lineage of the elements of all chunks, or None if no chunk has any."""
    for chunk in chunks:
        if chunk.lineage is not None:
            return concatenate_columns([or_unknown(part.lineage, part.length) for part in chunks])
    return None


def concatenate_columns(parts: Sequence[Column]) -> Column:
    """Concatenate columns: into an array if all hold arrays of one dtype and shape, but not only lists; else a list."""
    first = parts[0]
    if isinstance(first, np.ndarray) and all(
        isinstance(part, np.ndarray) and part.dtype == first.dtype and part.shape[1:] == first.shape[1:]
        for part in parts
    ):
        worth_a_look = first.base is not None and first.nbytes >= LARGE_ELEMENT_BYTES
        joined = _joined_rows(parts) if worth_a_look else None  # type: ignore[arg-type]  # just tested
        return np.concatenate(parts) if joined is None else joined
    if is_packed(first) and all(map(first.goes_with, parts)):
        return first.joined(parts)  # type: ignore[return-value]  # it takes the place of a list
    if BytesColumn in map(type, parts) and all(map(BytesColumn.takes, parts)):
        return BytesColumn.joined(list(map(BytesColumn.of, parts)))  # type: ignore[return-value]  # in its place
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if arrays and arrays[0].ndim > 1 and all(_holds_rows(part, arrays[0]) for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    values: list[Any] = []
    for part in parts:
        values.extend(part)
    return values


def _holds_rows(part: Column, like: Array) -> bool:
    """Return whether the values are arrays like the rows of another column."""
    if isinstance(part, np.ndarray):
        return (part.dtype, part.shape[1:]) == (like.dtype, like.shape[1:])
    return type(part) is list and all(
        type(value) is np.ndarray
        and (value.dtype, value.shape) == (like.dtype, like.shape[1:])
        and value.flags.c_contiguous
        for value in part
    )


def _joined_rows(parts: Sequence[Array]) -> Array | None:
    """Return the parts as one view if they are adjacent rows of one array, else None."""
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
            return None  # read-only rows must not become writable, nor vice versa
        if _address(part) != following:
            return None
        following += part.nbytes
    first, odd = divmod(start - _address(whole), row_bytes)
    return None if odd else whole[first : first + (following - start) // row_bytes]


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def read_only(column: Column) -> Column:
    """Return the column with read-only views of its values."""
    if isinstance(column, np.ndarray):
        return frozen_view(column)
    return [read_only_component(value) for value in column]


def read_only_component(value: Any) -> Any:
    """Return a read-only view of a component; objects of user classes are returned as they are."""
    if isinstance(value, np.ndarray):
        return frozen_view(value)
    return value.read_only() if isinstance(value, RaggedTensor | SparseTensor) else value


_NUMBERS = (np.number, np.bool_)


_NBYTES = operator.attrgetter("nbytes")
_HAS_OBJECTS = operator.attrgetter("dtype.hasobject")


def _column_bytes(column: Sequence[Any] | Array) -> int:
    if type(column) in _PACKED or (isinstance(column, np.ndarray) and column.dtype != object):
        return column.nbytes  # type: ignore[union-attr]  # not a list
    values = column.ravel().tolist() if isinstance(column, np.ndarray) else column
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        if kind is bytes:
            return sum(map(len, values))
        if kind is np.ndarray and not any(map(_HAS_OBJECTS, values)):
            return sum(map(_NBYTES, values))
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
    except Exception:  # noqa: BLE001  # a user class may use the name for something else
        return 8
