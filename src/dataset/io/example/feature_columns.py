"""Decoders from positions in bytes to arrays of values: one Column per key, for a batch and for a single record.

A Column holds the concatenated values of one key, and their number in each record. assemble.py shapes the values,
locate.py finds them in the bytes, and varints.py unpacks int64 lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io import example, libraries
from dataset.io.example.locate import Lists
from dataset.io.example.problem import Problem
from dataset.io.example.record_layout import length_field
from dataset.io.example.varints import unpack_varints
from dataset.io.example.wire import WALKERS_MIN
from dataset.plan.spec import BYTES

__all__ = [
    "COUNTED_KINDS",
    "Column",
    "column",
    "column_of_messages",
    "counted",
    "decode_one",
    "kind_of",
    "object_array",
]

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

_Read = tuple[Ints, Array, int]  # counts, values, each: see Column
_NONE = np.zeros(0, np.int64)
_KIND_NAMES = {1: "bytes", 2: "float32", 3: "int64"}
_LISTS = {1: "BytesList", 2: "FloatList", 3: "Int64List"}


@dataclass(slots=True)
class Column:
    """Column: the values of one key in n records.

    Attributes:
        present: bool (n,), whether the record has the key with a list; None if all have.
        counts: int64 (n,), the number of values in each record.
        values: all values, concatenated; bytes as an object array.
        each: the number of values in every record, if known without inspecting ``counts``; otherwise -1.
    """

    present: npt.NDArray[np.bool_] | None
    counts: Ints
    values: Array
    each: int = -1

    def copy(self) -> Column:
        """Return a copy that does not share values."""
        return replace(self, values=self.values.copy())


def kind_of(dtype: np.dtype[Any]) -> int:
    """Return the field number in Feature of lists of ``dtype``."""
    return 1 if dtype == BYTES else 2 if dtype.kind == "f" else 3


def wrong_kind(row: int, kind: int, wanted: int) -> Problem:
    """Return the problem of a record that holds another kind of list."""
    held, asked = _KIND_NAMES[kind], _KIND_NAMES[wanted]
    return Problem(row, f"holds {held}, but {asked} was requested. Request {held}")


def column(lists: Lists, wanted: int, readers: Mapping[int, Callable[[Lists], _Read]] | None = None) -> Column:
    """Return the values of one key, whose lists must be of kind ``wanted``.

    Raises:
        Problem: for the first record whose list is of another kind, or damaged.
    """
    readers = _READERS if readers is None else readers
    if isinstance(lists.kind, int):
        if lists.kind not in {0, wanted}:
            raise wrong_kind(0, lists.kind, wanted)
        present = None if lists.kind else np.zeros(len(lists.start), np.bool_)
    else:
        present = lists.kind != 0
        wrong = present & (lists.kind != wanted)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise wrong_kind(row, int(lists.kind[row]), wanted)
        present = None if present.all() else present
    counts, values, each = readers[wanted](lists)
    return Column(present, counts, values, each)


def counted(lists: Lists, wanted: int) -> Column:
    """Do the same with the same errors, but mostly without values: for a key that is checked but not used."""
    return column(lists, wanted, _COUNTERS)


def column_of_messages(found: Sequence[tuple[int, Any]], wanted: int) -> Column:
    """Return the values of one key from each record's kind and list message; faster than NumPy for few records.

    Raises:
        Problem: for the first record whose list is of another kind.
    """
    flat: list[Any] = []
    counts = []
    for row, (kind, message) in enumerate(found):
        if kind not in {0, wanted}:
            raise wrong_kind(row, kind, wanted)
        flat.extend(message.value if kind else ())
        counts.append(len(message.value) if kind else 0)
    present = None if all(kind for kind, _ in found) else np.array([kind > 0 for kind, _ in found], np.bool_)
    values = object_array(flat) if wanted == 1 else np.array(flat, np.float32 if wanted == 2 else np.int64)
    return Column(present, np.array(counts, np.int64), values)


def object_array(items: Sequence[Any]) -> Array:
    """Return a 1-D object array of ``items``, even if they are sequences."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _message(lists: Lists, row: int, kind: int) -> Any:
    """Return the list message of one record, read by protobuf; for lists that are not a single plain field."""
    try:
        return getattr(example.messages, _LISTS[kind]).FromString(
            lists.buffer.data[int(lists.start[row]) : int(lists.end[row])]
        )
    except libraries.protobuf.DecodeError:
        raise _damaged(row, kind) from None


def _irregular(lists: Lists) -> list[int]:
    """Return the records whose list is neither empty nor a single field."""
    if lists.sole is None:
        return []
    rows: list[int] = np.flatnonzero(~lists.sole & (lists.end > lists.start)).tolist()
    return rows


def _pieces(lists: Lists) -> list[bytes]:
    """Return the content of each record's only field; empty if there is not exactly one."""
    data = lists.buffer.data
    first = lists.first if lists.sole is None else np.where(lists.sole, lists.first, lists.end)
    return [data[start:end] for start, end in zip(first.tolist(), lists.end.tolist(), strict=True)]


def _read_bytes(lists: Lists) -> _Read:
    if lists.sole is None or lists.sole.all():
        values = _pieces(lists)
        return np.ones(len(values), np.int64), object_array(values), 1
    rows, first, end, left = _walk_values(lists)
    data = lists.buffer.data
    values = [data[a:b] for a, b in zip(first.tolist(), end.tolist(), strict=True)]
    for row in left.tolist():
        found = _message(lists, row, 1).value
        values.extend(found)
        rows = np.append(rows, np.full(len(found), row))
    order = np.argsort(rows, kind="stable")  # the walk yields values by step, not by record
    counts = np.bincount(rows, minlength=len(lists.start)).astype(np.int64, copy=False)
    return counts, object_array(values)[order], -1


def _walk_values(lists: Lists) -> tuple[Ints, Ints, Ints, Ints]:
    """Walk all lists of bytes in lockstep, as wire.py walks entries; return each value's record, start and end.

    The fourth item is the records left to protobuf: irregular ones, and those that are longer than nearly all others.
    """
    left = np.flatnonzero(lists.end > lists.start)
    rows, cursor, stop = left, lists.start[left], lists.end[left]
    steps = [(_NONE, _NONE, _NONE)]
    odd = [_NONE]
    while len(rows) >= WALKERS_MIN:
        ok, first, size = length_field(lists.buffer.words, cursor, 0x0A)
        cursor = first + size
        ok &= cursor <= stop
        odd.append(rows[~ok])
        steps.append((rows[ok], first[ok], cursor[ok]))
        more = ok & (cursor < stop)
        rows, cursor, stop = rows[more], cursor[more], stop[more]
    left = np.concatenate([*odd, rows])
    row, first, end = (np.concatenate(column) for column in zip(*steps, strict=True))
    if len(left):
        kept = ~np.isin(row, left)
        row, first, end = row[kept], first[kept], end[kept]
    return row, first, end, left


def _read_floats(lists: Lists) -> _Read:
    pieces = _pieces(lists)
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    odd = [*_irregular(lists), *np.flatnonzero(sizes & 3).tolist()]  # protobuf will reject the latter
    for row in odd:
        pieces[row] = np.array(_message(lists, row, 2).value, "<f4").tobytes()
        sizes[row] = len(pieces[row])
    values = np.frombuffer(bytearray().join(pieces), "<f4")  # a bytearray makes the array writable
    return sizes >> 2, values.astype(np.float32, copy=False), -1


def _read_ints(lists: Lists) -> _Read:
    if lists.sole is None or lists.sole.all():
        few = _read_short_ints(lists)
        if few is not None:
            return np.ones(len(few), np.int64), few, 1
    pieces = _pieces(lists)
    for row in _irregular(lists):
        packed = example.messages.Int64List(value=_message(lists, row, 3).value).SerializeToString()
        pieces[row] = packed[-_payload_size(packed) :] if packed else b""
    return (*unpack_varints(pieces), -1)


def _read_short_ints(lists: Lists) -> Ints | None:
    """Return the values if each record has exactly one, of at most four bytes: labels, sizes, counts. Else None."""
    sizes = lists.end - lists.first
    longest = int(sizes.max(initial=0))
    if longest > 4 or not sizes.all():
        return None
    if longest == 1:
        values = lists.buffer.octets[lists.first].astype(np.int64)
        return values if (values < 0x80).all() else None
    last = np.int64(0x80) << 8 * (sizes - 1)  # the bit that must be clear in the last byte and set in the others
    words = lists.buffer.words[lists.first] & ((last << 1) - 1)
    if (words & 0x80808080 != (last - 1) & 0x80808080).any():
        return None
    values = (words & 0x7F) | (words >> 1 & 0x3F80)
    return values if longest == 2 else values | (words >> 2 & 0x1FC000) | (words >> 3 & 0xFE00000)


def _payload_size(packed: bytes) -> int:
    """Return the payload length declared by the field in ``packed``: tag, length and payload."""
    size = shift = 0
    for octet in packed[1:6]:
        size |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            break
    return size


_READERS: dict[int, Callable[[Lists], _Read]] = {1: _read_bytes, 2: _read_floats, 3: _read_ints}


def _count_bytes(lists: Lists) -> _Read:
    one_each = lists.sole is None or bool(lists.sole.all())
    return (np.ones(len(lists.start), np.int64), _NONE, 1) if one_each else _read_bytes(lists)


def _count_floats(lists: Lists) -> _Read:
    sizes = lists.end - (lists.first if lists.sole is None else np.where(lists.sole, lists.first, lists.end))
    return _read_floats(lists) if (sizes & 3).any() or _irregular(lists) else (sizes >> 2, _NONE, -1)


_COUNTERS: dict[int, Callable[[Lists], _Read]] = {1: _count_bytes, 2: _count_floats, 3: _read_ints}

COUNTED_KINDS = frozenset({1, 2})
"""The kinds for which counting is cheaper than decoding. Packed varints have to be read completely in both cases."""


def decode_one(kind: int, record: bytes, start: int, first: int, end: int) -> Array | Sequence[Any]:
    """Return the values of one list that is a plain field: the list at ``start``, the field's content at ``first``.

    For a single list of varints, protobuf is faster than NumPy.

    Raises:
        Problem: the list is damaged.
    """
    if kind == 1:
        return [record[first:end]]
    if kind == 2 and not (end - first) & 3:
        return np.frombuffer(record, "<f4", (end - first) >> 2, first).astype(np.float32)
    try:
        values: Sequence[Any] = getattr(example.messages, _LISTS[kind]).FromString(record[start:end]).value
    except libraries.protobuf.DecodeError:
        raise _damaged(0, kind) from None
    return values


def _damaged(row: int, kind: int) -> Problem:
    return Problem(row, f"is damaged: its list of {_KIND_NAMES[kind]} can't be parsed")
