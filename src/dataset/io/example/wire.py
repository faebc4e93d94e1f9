"""Wire format decoder for many Examples at once: finds each key's list of values in the bytes.

This module knows bytes, positions and keys. It is the general method, for keys in any order; locate.py tries faster
methods first. feature_columns.py decodes the values. The protobuf encoding is described at
protobuf.dev/programming-guides/encoding.

Method: all records are joined into one buffer, and one cursor per record walks over it, all in lockstep. Each step
loads eight bytes at every cursor as one integer per record (``WireBuffer.words``), and extracts tag and length with a
few NumPy vector operations. So the cost of a step hardly depends on the number of records.

    Example   0a <size> Features
    Features  0a <size> entry, repeated                    walked in lockstep: one step per entry (_walk)
    entry     0a <size> key, 12 <size> Feature             all entries of all records at once     (_match)
    Feature   0a|12|1a <size> list                         1 bytes, 2 float, 3 int64
    list      0a <size> payload                            the only value, or packed numbers      (locate.py)

Guarantees: the format also allows fields in other orders, and repeated, split, unknown or unpacked fields. They are
rare, so this decoder does not support them. It accepts only the structure above. A record with anything else is
*irregular*: protobuf reads it (reference.py), and its lists are appended to the buffer in the regular form. The input
is not trusted: each length is compared with the end of the enclosing field before it is used, and positions that are
not yet checked exceed the data by less than the padding after the buffer. Features that were not requested are not
parsed, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.io.example.record_layout import length_field

__all__ = ["WALKERS_MIN", "KeyTable", "Matches", "WireBuffer", "scan"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PADDING = bytes(256)  # reads past the end are limited: a key of 127 bytes, three lengths, and eight more bytes
WALKERS_MIN = 16  # with fewer cursors than this, protobuf is faster, and a malicious record could be long
_KEY_WORDS_MAX = 16  # keys of 128 bytes or more have a two-byte length: irregular


class WireBuffer:
    """Buffer of joined byte strings with padding, for reading at many positions at once.

    Attributes:
        data: the bytes.
        octets: the same as uint8.
        words: int64; item i holds the eight bytes from position i, little-endian.
    """

    __slots__ = ("data", "octets", "words")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.data = b"".join([*pieces, _PADDING])
        self.octets = np.frombuffer(self.data, np.uint8)
        self.words: Ints = np.ndarray(len(self.data) - 7, "<i8", self.data, strides=(1,))


class KeyTable:
    """Lookup table that identifies the keys at many positions.

    A key is compared as words of eight bytes. Their weighted sum finds the only candidate among the sorted sums of all
    keys. Then length and words are compared exactly, so that keys with equal sums are not confused.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        longest = max(map(len, keys))
        self._words_per_key = min(max(-(-longest // 8), 1), _KEY_WORDS_MAX)
        width = 8 * self._words_per_key
        packed = b"".join(key[:width].ljust(width, b"\0") for key in keys)
        words = np.frombuffer(packed, "<i8").reshape(len(keys), self._words_per_key).astype(np.int64)
        lengths = np.array([len(key) for key in keys], np.int64)
        random = np.random.default_rng(0)
        sums = lengths[:0]
        while len(np.unique(sums)) < len(keys):  # nearly always one iteration
            self._weights = random.integers(1 << 62, dtype=np.int64, size=self._words_per_key) | 1
            sums = lengths + (words * self._weights).sum(axis=1)
        self._order = np.argsort(sums)
        self._sums, self._lengths, self._words = sums[self._order], lengths[self._order], words[self._order]

    def find(self, buffer: WireBuffer, at: Ints, lengths: Ints) -> Ints:
        """Return the number of the key with ``lengths`` bytes at each position ``at``; -1 for an unknown key."""
        sums = lengths.copy()
        found = []
        for i, weight in enumerate(self._weights):
            word = buffer.words[at + 8 * i] & _LOW_BYTES[np.clip(lengths - 8 * i, 0, 8)]
            sums += word * weight
            found.append(word)
        candidate = np.minimum(np.searchsorted(self._sums, sums), len(self._sums) - 1)
        same = self._lengths[candidate] == lengths
        for i, word in enumerate(found):
            same &= self._words[candidate, i] == word
        return np.where(same, self._order[candidate], -1)


_NONE = np.zeros(0, np.int64)
_LOW_BYTES = np.array([(1 << 8 * count) - 1 for count in range(8)] + [-1], np.int64)


class Matches(NamedTuple):
    """Lists of requested keys, one per item: numbers of key and record, kind, first byte, end."""

    key: Ints
    row: Ints
    kind: Ints
    start: Ints
    end: Ints


def scan(buffer: WireBuffer, starts: Ints, ends: Ints, table: KeyTable) -> tuple[Bools, Matches]:
    """Return which of n records are regular, and the lists of the table's keys in them, maybe also of other records.

    If a record has two lists of a key, the valid one comes last. Kind 0 means a Feature without a list.
    """
    regular, row, at, end = _walk(buffer.words, starts, ends)
    return regular, _match(buffer, table, regular, (row, at, end))


def _walk(words: Ints, starts: Ints, ends: Ints) -> tuple[Bools, Ints, Ints, Ints]:
    """Walk the entries of all records; return which records are regular, and each entry's record, start and end."""
    ok, cursor, size = length_field(words, starts, 0x0A)
    regular = (ok & (cursor + size == ends)) | (starts == ends)  # empty bytes are an Example without features
    rows = np.flatnonzero(regular & (starts < ends))
    cursor, stops = cursor[rows], ends[rows]
    rows, cursor, stops = _unfinished(rows, cursor, stops)
    steps: list[tuple[Ints, Ints, Ints]] = []
    while len(rows) >= WALKERS_MIN:
        ok, at, size = length_field(words, cursor, 0x0A)
        cursor = at + size
        ok &= cursor <= stops
        if not ok.all():
            regular[rows[~ok]] = False
            rows, at, cursor, stops = rows[ok], at[ok], cursor[ok], stops[ok]
        steps.append((rows, at, cursor))
        rows, cursor, stops = _unfinished(rows, cursor, stops)
    regular[rows] = False
    if not steps:
        return regular, _NONE, _NONE, _NONE
    row, at, end = (np.concatenate(column) for column in zip(*steps, strict=True))
    return regular, row, at, end


def _unfinished(rows: Ints, cursor: Ints, stops: Ints) -> tuple[Ints, Ints, Ints]:
    more = cursor < stops
    return (rows, cursor, stops) if more.all() else (rows[more], cursor[more], stops[more])


def _match(buffer: WireBuffer, table: KeyTable, regular: Bools, entries: tuple[Ints, Ints, Ints]) -> Matches:
    """Decode the entries. Records whose entries are not as expected are marked in ``regular``."""
    row, at, end = entries
    word = buffer.words[at]
    key_size = word >> 8 & 0x7F
    ok = (word & 0x80FF) == 0x0A  # the tag, and a length below 128
    at = at + 2
    key = table.find(buffer, at, key_size)
    tag_ok, feature, size = length_field(buffer.words, at + key_size, 0x12)
    ok &= tag_ok & (feature + size == end)
    empty = size == 0
    tag = buffer.words[feature] & 0xFF
    _, content, size = length_field(buffer.words, feature, 0x0A)
    wanted = key >= 0
    ok &= empty | ~wanted | ((content + size == end) & ((tag == 0x0A) | (tag == 0x12) | (tag == 0x1A)))
    if not ok.all():
        regular[row[~ok]] = False
    if not wanted.all():
        key, row, tag, content, size, empty = (x[wanted] for x in (key, row, tag, content, size, empty))
    return Matches(key, row, np.where(empty, 0, tag >> 3), content, np.where(empty, content, content + size))
