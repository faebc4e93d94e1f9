"""Layouts: the structure shared by most records of a file; learned from one record, compared with many at once.

A writer puts the same keys in the same order into each record, and lengths seldom change so much that their varints
take more bytes. A layout consists of the keys, their kinds and order, and the width of each length. If a record follows
it, its structure only has to be confirmed, which takes half the work of the walk in wire.py:

- the length of each list, at a known distance from the start of its entry, leads to the next entry: a short chain;
- then all constant bytes (tags, keys) of all entries are compared, masked, eight at a time;
- then all lengths are compared with the values implied by the length of the list that they enclose.

A record that differs in any of these does not follow the layout and is left to other methods. So a layout never causes
a wrong result, only a slow one. This module knows positions and bytes, like wire.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Entry", "ExampleLayout", "entries_of", "length_field"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_ENTRIES_MAX = 1024  # a record with more is left to protobuf, which is faster than a Python loop


@dataclass(frozen=True, slots=True)
class Entry:
    """Entry of the map in one record, with the structure described in wire.py.

    Attributes:
        key: the key's bytes.
        kind: the list's field number in Feature: 1 bytes, 2 float, 3 int64.
        at: the entry's first byte, its tag.
        content: the list message's first byte.
        end: the byte after the list, which is also the byte after the entry.
        widths: bytes taken by the lengths of the entry, the Feature and the list.
        payload: where the content of the list's only field begins; None if the list is not a single field.
    """

    key: bytes
    kind: int
    at: int
    content: int
    end: int
    widths: tuple[int, int, int]
    payload: int | None


def _read_length(record: bytes, at: int) -> tuple[int, int]:
    """Read the length at ``at``; return it and the position after it.

    Raises IndexError at the end, ValueError if the length takes more than four bytes.
    """
    size = record[at]
    if size < 0x80:
        return size, at + 1
    size &= 0x7F
    for width in range(1, 4):
        octet = record[at + width]
        size |= (octet & 0x7F) << 7 * width
        if octet < 0x80:
            return size, at + width + 1
    raise ValueError


def _expect(record: bytes, at: int, tag: int, end: int | None) -> tuple[int, int]:
    """Return where the content of a length-delimited field begins and ends. ValueError for another tag or end."""
    size, first = _read_length(record, at + 1)
    if record[at] != tag or (end is not None and first + size != end):
        raise ValueError
    return first, first + size


def _entry(record: bytes, at: int) -> Entry:
    """Return the entry at ``at``."""
    entry, end = _expect(record, at, 0x0A, None)
    key, key_end = _expect(record, entry, 0x0A, None)
    feature, _ = _expect(record, key_end, 0x12, end)
    tag = record[feature]
    content, _ = _expect(record, feature, tag, end)
    if tag not in {0x0A, 0x12, 0x1A} or key_end - key > 0x7F:
        raise ValueError
    widths = (entry - at - 1, feature - key_end - 1, content - feature - 1)
    return Entry(record[key:key_end], tag >> 3, at, content, end, widths, _payload(record, content, end))


def _payload(record: bytes, content: int, end: int) -> int | None:
    """Return where the content of a list's only field begins; None if the list is not a single field."""
    try:
        return _expect(record, content, 0x0A, end)[0] if content < end else None
    except (IndexError, ValueError):
        return None


def entries_of(record: bytes) -> list[Entry] | None:
    """Return the entries of a record that is regular as defined in wire.py, with distinct keys; None otherwise."""
    try:
        at, end = _expect(record, 0, 0x0A, len(record))
        entries: list[Entry] = []
        while at < end and len(entries) <= _ENTRIES_MAX:
            entries.append(_entry(record, at))
            at = entries[-1].end
    except (IndexError, ValueError):
        return None
    distinct = len({entry.key for entry in entries}) == len(entries)
    return entries if at == end and entries and distinct else None


class ExampleLayout:
    """Layout of one record.

    Args:
        entries: the entries of the record.
        single: keys with a single requested value; a list of bytes with exactly one value is then part of the layout.
            Lists of numbers are always one field, unless they are empty.

    Attributes:
        keys: the keys, in order.
        kinds: the kinds of their lists.
        payload: the distance from the start of each list to the content of its only field; 0 if the layout does not
            require that there is only one.
    """

    def __init__(self, entries: Sequence[Entry], single: Collection[bytes] = ()) -> None:
        self.keys = [entry.key for entry in entries]
        self.kinds = [entry.kind for entry in entries]
        self.payload = [
            entry.payload - entry.content if entry.payload and (entry.kind != 1 or entry.key in single) else 0
            for entry in entries
        ]
        self._steps = [(entry.content - entry.at - entry.widths[2], entry.widths[2]) for entry in entries]
        self._plan_constants(entries)
        self._plan_lengths(entries)

    def _plan_constants(self, entries: Sequence[Entry]) -> None:
        """Plan the words with tags and keys: their entry, distance from its start, mask, and expected value."""
        rows: list[tuple[int, int, int, int]] = []
        for i, (entry, payload) in enumerate(zip(entries, self.payload, strict=True)):
            of_entry, of_feature, of_list = map(bytes, entry.widths)  # zero bytes, which the mask excludes
            fixed = b"\x0a" + of_entry + b"\x0a" + bytes([len(entry.key)]) + entry.key + b"\x12"
            fixed += of_feature + bytes([entry.kind << 3 | 2])
            known = b"\xff" + of_entry + b"\xff" * (len(entry.key) + 3) + of_feature + b"\xff"
            if payload:
                fixed, known = fixed + of_list + b"\x0a", known + of_list + b"\xff"
            rows.extend((i, at, _word(known[at : at + 8]), _word(fixed[at : at + 8])) for at in range(0, len(fixed), 8))
        table = np.array(rows, np.int64)
        self._constant_of = table[:, 0]
        self._constant_at, self._constant_mask, self._constant_value = table.T[1:, :, None]

    def _plan_lengths(self, entries: Sequence[Entry]) -> None:
        """Plan the lengths in each entry: distance from its start, excess over the list's length, and width."""
        rows: list[tuple[int, int, int, int]] = []
        for i, (entry, payload) in enumerate(zip(entries, self.payload, strict=True)):
            of_entry, of_feature, of_list = entry.widths
            content = entry.content - entry.at
            rows.append((i, 1, content - 1 - of_entry, of_entry))
            rows.append((i, content - of_list - 1 - of_feature, 1 + of_list, of_feature))
            rows.append((i, content - of_list, 0, of_list))
            if payload:
                rows.append((i, content + 1, -payload, payload - 1))
        table = np.array(rows, np.int64)
        self._length_of = table[:, 0]
        self._length_at, self._length_more, width = table.T[1:, :, None]
        self._lengths = _Varints(width)

    def apply(self, words: Ints, starts: Ints, ends: Ints) -> tuple[Bools, Ints, Ints]:
        """Return which of n records follow the layout, and where the lists of the k entries begin and end (k, n).

        For records that do not follow it, the positions are meaningless.
        """
        shape = (len(self._steps), len(starts))
        at, content, end = np.empty(shape, np.int64), np.empty(shape, np.int64), np.empty(shape, np.int64)
        ok, cursor, features = length_field(words, starts, 0x0A)
        ok &= cursor + features == ends
        for i, (distance, width) in enumerate(self._steps):
            np.minimum(cursor, ends, out=at[i])  # unconfirmed positions must stay inside the buffer
            np.add(at[i], distance + width, out=content[i])
            cursor = np.add(content[i], _decode(words[distance:], at[i], width), out=end[i])
        ok &= cursor == ends
        ok &= ((words[at[self._constant_of] + self._constant_at] & self._constant_mask) == self._constant_value).all(0)
        lengths = (end - content)[self._length_of] + self._length_more
        ok &= self._lengths.stand_in(words[at[self._length_of] + self._length_at], lengths).all(0)
        return ok, content, end


def _word(octets: bytes) -> int:
    """Return up to eight bytes as the low bytes of an int64."""
    return int.from_bytes(octets, "little", signed=len(octets) == 8)


class _Varints:
    """Varints of known widths, compared in encoded form, which is cheaper than decoding the input."""

    def __init__(self, width: Ints) -> None:
        self._mask = (np.int64(1) << 8 * width) - 1
        self._limit = np.int64(1) << 7 * width
        self._going_on = 0x80808080 & (self._mask >> 8)  # the top bit of every byte but the last
        self._widest = int(width.max())

    def stand_in(self, words: Ints, lengths: Ints) -> Bools:
        """Return whether each word begins with the varint of its length."""
        expected = (lengths & 0x7F) | self._going_on
        if self._widest > 1:
            expected |= (lengths & 0x3F80) << 1
        if self._widest > 2:
            expected |= (lengths & 0x1FC000) << 2 | (lengths & 0xFE00000) << 3
        result: Bools = (words & self._mask) == expected
        result &= lengths < self._limit
        return result


def length_field(words: Ints, at: Ints, tag: int) -> tuple[Bools, Ints, Ints]:
    """Read tag and length at each position; return whether the tag is ``tag``, the start of the content, its length.

    Lengths of one to four bytes are supported. The lowest clear top bit ends the varint; ``used`` covers the bytes up
    to it. If four bytes don't suffice, ``used`` is -1, whose bit count is 1 in NumPy.
    """
    word = words[at]
    ok = (word & 0xFF) == tag
    word >>= 8
    stop = ~word & 0x80808080
    used = stop ^ (stop - 1)
    width = np.bitwise_count(used) >> 3
    word &= used
    size = (word & 0x7F) | (word >> 1 & 0x3F80) | (word >> 2 & 0x1FC000) | (word >> 3 & 0xFE00000)
    return ok & (width > 0), at + 1 + width, size


def _decode(words: Ints, at: Ints, width: int) -> Ints:
    """Decode the varint of ``width`` bytes at each position, if there is one. Shifted ``words`` save an addition."""
    word: Ints = words[at]
    if width == 1:
        return word & 0xFF
    size = (word & 0x7F) | (word >> 1 & 0x3F80)
    return size if width == 2 else size | (word >> 2 & 0x1FC000) | (word >> 3 & (0xFE00000 if width == 4 else 0))
