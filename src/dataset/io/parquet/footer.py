"""Footer of a Parquet file: sizes and counts of its column chunks, decoded from Thrift's compact protocol.

pyarrow decodes a footer as well, but not safely: its ``RowGroupMetaData.column()`` and the statistics of a column let
C++ exceptions escape where a footer is damaged, and the process aborts. What the library needs of a column chunk is
decoded here instead. If a footer cannot be decoded here, nothing is known about its chunks.

Opening a file waits for this, so it is written for speed: fields that are not needed are skipped, and nothing is
decoded before it is requested. A declared count or length never allocates: the bytes end before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_INTEGERS = frozenset({4, 5, 6})  # of 16, 32 and 64 bits, all encoded alike
_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 3, 7, 8, 9, 10, 12  # and below 3, the two values of a bool

# The fields that are decoded, by number: None for an integer, a dict for a struct, a list for a list of structs.
_STATISTICS = {3: None}
_COLUMN_METADATA = {5: None, 6: None, 9: None, 11: None, 12: _STATISTICS}
_ROW_GROUP = {1: [{3: _COLUMN_METADATA}]}
_ROW_GROUPS = 4  # the field of FileMetaData


class ColumnChunk(NamedTuple):
    """Metadata of one column in one row group.

    Attributes:
        values: the number of values, including nulls.
        nbytes: the size of its pages before compression.
        offset: the offset of its first page in the file.
        nulls: the number of nulls; None if the writer did not store it.
    """

    values: int
    nbytes: int
    offset: int
    nulls: int | None


class Footer:
    """The column chunks of a file, decoded row group by row group as they are requested.

    Args:
        content: the Thrift message ``FileMetaData``.
    """

    def __init__(self, content: bytes) -> None:
        self._groups: list[list[ColumnChunk]] = []
        self._more = _row_groups(content)

    def chunks(self, group: int) -> list[ColumnChunk]:
        """Return the chunks of a row group in the order of the columns; an empty list if they are unknown."""
        while len(self._groups) <= group:
            try:
                self._groups.append(next(self._more))
            except (ValueError, LookupError, TypeError, RecursionError, StopIteration):
                return []
        return self._groups[group]


def _row_groups(data: bytes) -> Iterator[list[ColumnChunk]]:
    at = field = 0
    while head := data[at]:
        field, at = (field + (head >> 4), at + 1) if head > 15 else _integer(data, at + 1)
        kind = head & 15
        if field == _ROW_GROUPS and kind == _LIST:
            count, kind, at = _list_header(data, at)
            for _ in range(count if kind == _STRUCT else 0):
                group, at = _struct(data, at, _ROW_GROUP)
                yield [_column_chunk(chunk[3]) for chunk in group[1]]
            return
        at = _skip(data, at, kind) if kind >= _BYTE else at


def _column_chunk(metadata: dict[int, Any]) -> ColumnChunk:
    first = metadata.get(11) or metadata[9]  # the dictionary page is before the data pages
    return ColumnChunk(metadata[5], metadata[6], first, metadata.get(12, {}).get(3))


def _struct(data: bytes, at: int, wanted: dict[int, Any]) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct that are in ``wanted``, and where the struct ends."""
    found: dict[int, Any] = {}
    field = 0
    while head := data[at]:
        field, at = (field + (head >> 4), at + 1) if head > 15 else _integer(data, at + 1)
        kind = head & 15
        if kind < _BYTE:  # a bool, whose value is its type
            continue
        if field not in wanted:
            at = _skip(data, at, kind)
            continue
        spec = wanted[field]
        if spec is None and kind in _INTEGERS:
            found[field], at = _integer(data, at)
        elif type(spec) is dict and kind == _STRUCT:
            found[field], at = _struct(data, at, spec)
        elif type(spec) is list and kind == _LIST:
            found[field], at = _structs(data, at, spec[0])
        else:
            raise ValueError(f"field {field} has the unexpected type {kind}")
    return found, at + 1


def _structs(data: bytes, at: int, wanted: dict[int, Any]) -> tuple[list[dict[int, Any]], int]:
    count, kind, at = _list_header(data, at)
    if kind != _STRUCT:
        raise ValueError(f"expected a list of structs, got items of type {kind}")
    found = []
    for _ in range(count):
        item, at = _struct(data, at, wanted)
        found.append(item)
    return found, at


def _skip(data: bytes, at: int, kind: int) -> int:
    """Return where a value ends."""
    if kind in _INTEGERS:
        while data[at] > 0x7F:
            at += 1
        return at + 1
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind == _STRUCT:
        return _struct(data, at, {})[1]
    if kind in {_LIST, _SET}:
        count, kind, at = _list_header(data, at)
        for _ in range(count):
            at = _skip(data, at, kind)
            if at > len(data):
                raise IndexError(at)
        return at
    if kind == _DOUBLE:
        return at + 8
    if 0 < kind <= _BYTE:
        return at + 1
    raise ValueError(f"unknown type {kind} in the footer")


def _list_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the number and the type of the items of a list, and where they begin."""
    head = data[at]
    if head < 0xF0:
        return head >> 4, head & 15, at + 1
    count, at = _varint(data, at + 1)
    return count, head & 15, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return number >> 1 ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    result, shift = byte & 0x7F, 7
    while byte > 0x7F and shift < 70:
        at += 1
        byte = data[at]
        result |= (byte & 0x7F) << shift
        shift += 7
    return result, at + 1
