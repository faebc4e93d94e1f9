"""The wire format of an Example, read for many records at once: where in the bytes each key's list of values lies.

What is here knows bytes, positions and keys. It is the general way, for records in whatever order their writer put the
keys; locate.py tries faster ones before. Values are decoded in columns.py. The protobuf encoding is described at
protobuf.dev/programming-guides/encoding.

How it works. All records are joined into one buffer, and one cursor per record walks over it in lock step: each step
loads eight bytes at every cursor as one integer per record (``WireBuffer.words``), and takes tag and length apart with
a few NumPy operations on vectors. So the cost of a step hardly depends on the number of records.

    Example   0a <size> Features
    Features  0a <size> entry, again and again             walked in lock step: a step per entry  (_walk)
    entry     0a <size> key, 12 <size> Feature             all entries of all records at once     (_match)
    Feature   0a|12|1a <size> list                         1 bytes, 2 float, 3 int64
    list      0a <size> payload                            the only value, or packed numbers      (locate.py)

Guarantees. Fields may stand in any order that the format allows, may be repeated, split, unknown or unpacked: all that
is rare, so this decoder does not try. It takes what looks exactly as above, and a record with anything else is
*irregular*: protobuf reads it (reference.py), and what it finds is appended to the buffer in the regular form.
Nobody's bytes are trusted: each length is compared with the end of what holds it before it is used, and positions that
are not yet compared are off by less than the padding behind the buffer. Features that nobody asked for are not looked
into, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataset.io.example.layout import length_field

__all__ = ["WALKERS_MIN", "KeyTable", "Matches", "WireBuffer", "scan"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PADDING = bytes(256)  # how far one may look past the end: a key of 127 bytes, three lengths, and eight bytes more
WALKERS_MIN = 16  # fewer cursors than this in step are slower than protobuf, and a hostile record could be long
_KEY_WORDS_MAX = 16  # keys of 128 bytes or more have a two-byte length: irregular


class WireBuffer:
    """Pieces of bytes joined, with padding, to be read at many positions at once.

    Attributes:
        data: the bytes.
        octets: the same as uint8.
        words: int64; item i holds the eight bytes from i on, the first of them lowest.
    """

    __slots__ = ("data", "octets", "words")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.data = b"".join([*pieces, _PADDING])
        self.octets = np.frombuffer(self.data, np.uint8)
        self.words: Ints = np.ndarray(len(self.data) - 7, "<i8", self.data, strides=(1,))


class KeyTable:
    """Finds which of a few keys stands at each of many places.

    A key is compared as words of eight bytes. Their weighted sum finds the one candidate among the sorted sums of all
    keys; then length and words are compared exactly, so that two keys with one sum can't be mistaken.
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
        while len(np.unique(sums)) < len(keys):  # as good as always one turn
            self._weights = random.integers(1 << 62, dtype=np.int64, size=self._words_per_key) | 1
            sums = lengths + (words * self._weights).sum(axis=1)
        self._order = np.argsort(sums)
        self._sums, self._lengths, self._words = sums[self._order], lengths[self._order], words[self._order]

    def find(self, buffer: WireBuffer, at: Ints, lengths: Ints) -> Ints:
        """The number of the key of ``lengths`` bytes at each position ``at``; -1 for a key that is not in the table."""
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
    """Lists of keys that were asked for, one per item: numbers of key and record, kind, first byte, end."""

    key: Ints
    row: Ints
    kind: Ints
    start: Ints
    end: Ints


def scan(buffer: WireBuffer, starts: Ints, ends: Ints, table: KeyTable) -> tuple[Bools, Matches]:
    """Which of n records are regular, and the lists of the table's keys in them; of the others there may be some too.

    Of two lists of one key in one record, the one that counts comes last. Kind 0 stands for a Feature without a list.
    """
    regular, row, at, end = _walk(buffer.words, starts, ends)
    return regular, _match(buffer, table, regular, (row, at, end))


def _walk(words: Ints, starts: Ints, ends: Ints) -> tuple[Bools, Ints, Ints, Ints]:
    """Walk the entries of every record's Features: which records are regular; each entry's record, start and end."""
    ok, cursor, size = length_field(words, starts, 0x0A)
    regular = (ok & (cursor + size == ends)) | (starts == ends)  # no bytes at all are an Example without features
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
    """Take the entries apart. Records whose entries are not as expected are marked in ``regular``."""
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
