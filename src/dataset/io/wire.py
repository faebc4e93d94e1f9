"""The wire format of an Example, read for many records at once: where in the bytes each feature's values lie.

What is here knows bytes, positions and keys; it makes no arrays of values (columns.py) and knows no feature
specifications (features.py). The protobuf encoding is described at protobuf.dev/programming-guides/encoding.

How it works. All records are joined into one buffer, and one cursor per record walks over it in lock step: each step
loads eight bytes at every cursor as one integer per record (``Buffer.words``), and takes tag and length apart with a
few NumPy operations on vectors. So the cost of a step hardly depends on the number of records.

    Example   0a <size> Features
    Features  0a <size> entry, again and again             walked in lock step: a step per entry  (_walk)
    entry     0a <size> key, 12 <size> Feature             all entries of all records at once     (_match)
    Feature   0a|12|1a <size> list                         1 bytes, 2 float, 3 int64
    list      0a <size> payload                            the only value, or packed numbers      (locate)

Guarantees. Fields may stand in any order that the format allows, may be repeated, split, unknown or unpacked: all that
is rare, so this decoder does not try. It takes what looks exactly as above, and a record with anything else is
*irregular*: protobuf reads it (reference.py), and what it finds is appended to the buffer in the regular form.
Nobody's bytes are trusted: each length is compared with the end of what holds it before it is used, and positions that
are not yet compared are off by less than the padding behind the buffer. Features that nobody asked for are not looked
into, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.layout import Layout, entries_of
from dataset.io.reference import regular_lists
from dataset.io.template import Templates

__all__ = ["Buffer", "KeyTable", "Lists", "Locator"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PADDING = bytes(
    256
)  # the farthest look past the end: a key of 127 bytes, three lengths of up to 5, an eight-byte load
_WALKERS_MIN = 16  # fewer cursors than this in step are slower than protobuf, and a hostile record could be long
_LAYOUT_MIN = 8  # for fewer records, protobuf is as fast
_LAYOUTS_MAX = 6  # each that does not fit costs some 0.2 us a record
_KEY_WORDS_MAX = 16  # keys of 128 bytes or more have a two-byte length: irregular


class Buffer:
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

    def find(self, buffer: Buffer, at: Ints, lengths: Ints) -> Ints:
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


@dataclass(slots=True)
class Lists:
    """Where the lists of one key lie in n records.

    Attributes:
        buffer: what the positions point into.
        kind: the lists' field number in Feature, 1 bytes, 2 float, 3 int64, 0 none: one for all, or int8 (n,).
        start: int64 (n,): each list message's first byte.
        end: int64 (n,): the byte after it.
        first: int64 (n,): where the content of its first field begins.
        sole: whether the list is just one length-delimited field, one value of bytes or packed numbers, from ``first``
            to ``end``: bool (n,), or None where that is so in all records.
    """

    buffer: Buffer
    kind: int | npt.NDArray[np.int8]
    start: Ints
    end: Ints
    first: Ints
    sole: Bools | None


class Locator:
    """Finds the lists of a few keys in records; prepared once, and wiser with each batch.

    The ways, each for the records that the one before has left: the layouts that recent records had, the walk, protobuf.
    Threads may share a locator: the layouts are a tuple that is replaced as a whole.
    """

    def __init__(self, keys: Sequence[str], single: Collection[str] = ()) -> None:
        self._keys = list(keys)
        self._index = {key.encode(): i for i, key in enumerate(keys)}
        self._single = {key.encode() for key in single}
        self._table = KeyTable(list(self._index))
        self._templates = Templates(self._index)
        self._layouts: tuple[_KnownLayout, ...] = ()

    def locate(self, records: Sequence[bytes]) -> list[Lists]:
        """Where the lists of the keys lie in ``records``: one Lists per key.

        Raises:
            ParseError: if a record is no Example, with its position.
        """
        buffer = Buffer(records)
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        ends = np.cumsum(lengths)
        starts = ends - lengths
        if len(records) >= _LAYOUT_MIN and (lengths == lengths[0]).all():
            lists = self._by_template(buffer, records, starts)
            if lists is not None:
                return lists
        found = _Found(len(self._keys), len(records))
        rest = np.arange(len(records))
        for known in self._layouts:
            if len(rest) < _LAYOUT_MIN:
                break
            ok, content, end = known.layout.apply(buffer.words, starts[rest], ends[rest])
            if len(rest) == len(records) and ok.all():
                return known.lists(buffer, content, end)
            found.put(known, rest[ok], content[:, ok], end[:, ok])
            rest = rest[~ok]
        if len(rest) >= _WALKERS_MIN:
            self._learn(records[rest[0]])
            rest = rest[~_scan(buffer, starts[rest], ends[rest], self._table, rest, found)]
        rest = np.array(
            [row for row in rest.tolist() if not found.put_one(records[row], row, starts, self._index)], int
        )
        if len(rest):
            buffer = _append_irregular(buffer, records, self._keys, rest, found)
        return found.lists(buffer)

    def _by_template(self, buffer: Buffer, records: Sequence[bytes], starts: Ints) -> list[Lists] | None:
        """What a template finds in records of one length; None if they don't follow it."""
        length = len(records[0])
        template = self._templates.get(length)
        if template is None or not template.fits(records[-1]):
            template = self._templates.learn(records[-1]) if self._templates.worth_learning(length) else None
        if template is None or not template.fits_all(buffer.octets[: length * len(records)], len(records)):
            return None
        lists = []
        for key in self._index:
            kind, _, first, end = template.places.get(key, (0, 0, 0, 0))
            at = starts + first
            lists.append(Lists(buffer, kind, at, starts + end, at, None if kind else np.zeros(len(records), np.bool_)))
        return lists

    def _learn(self, record: bytes) -> None:
        """Remember the layout of a record that followed none, in front of the others."""
        entries = entries_of(record)
        if entries is not None:
            learned = _KnownLayout(Layout(entries, self._single), self._index)
            self._layouts = (learned, *self._layouts)[:_LAYOUTS_MAX]


class _KnownLayout:
    """A layout, and which of its entries are asked for."""

    def __init__(self, layout: Layout, index: Mapping[bytes, int]) -> None:
        self.layout = layout
        by_key = {key: i for i, key in enumerate(layout.keys)}
        self._entry_of = [by_key.get(key) for key in index]
        present = [(k, i) for k, i in enumerate(self._entry_of) if i is not None]
        self.keys = np.array([k for k, _ in present], np.int64)
        self.entries = np.array([i for _, i in present], np.int64)
        self.kinds = np.array([layout.kinds[i] for _, i in present], np.int8)[:, None]

    def lists(self, buffer: Buffer, content: Ints, end: Ints) -> list[Lists]:
        """The lists of all keys where all records follow the layout."""
        missing = np.zeros(content.shape[1:], np.int64)
        return [
            Lists(buffer, 0, missing, missing, missing, missing > 0)
            if i is None
            else self._lists_of(i, buffer, content[i], end[i])
            for i in self._entry_of
        ]

    def _lists_of(self, i: int, buffer: Buffer, content: Ints, end: Ints) -> Lists:
        kind, payload = self.layout.kinds[i], self.layout.payload[i]
        if payload:
            return Lists(buffer, kind, content, end, content + payload, None)
        ok, first, size = _length_field(buffer.words, content, 0x0A)
        return Lists(buffer, kind, content, end, first, ok & (first + size == end))


class _Found:
    """Kind, start and end of the list of each of k keys in each of n records; kind 0 at first."""

    def __init__(self, keys: int, records: int) -> None:
        self.kind = np.zeros((keys, records), np.int8)
        self.start = np.zeros((keys, records), np.int64)
        self.end = np.zeros((keys, records), np.int64)

    def put(self, known: _KnownLayout, rows: Ints, content: Ints, end: Ints) -> None:
        """Take what a layout found in the records ``rows``."""
        at = np.ix_(known.keys, rows)
        self.kind[at] = known.kinds
        self.start[at] = content[known.entries]
        self.end[at] = end[known.entries]

    def put_one(self, record: bytes, row: int, starts: Ints, index: Mapping[bytes, int]) -> bool:
        """Take what is in one record, if that is regular; False if not."""
        entries = entries_of(record)
        if entries is None:
            return False
        self.kind[:, row] = 0
        start = int(starts[row])
        for entry in entries:
            key = index.get(entry.key)
            if key is not None:
                self.kind[key, row] = entry.kind
                self.start[key, row], self.end[key, row] = start + entry.content, start + entry.end
        return True

    def lists(self, buffer: Buffer) -> list[Lists]:
        """The lists of each key."""
        ok, first, size = _length_field(buffer.words, self.start.ravel(), 0x0A)
        first = first.reshape(self.kind.shape)
        sole = ok.reshape(self.kind.shape) & (first + size.reshape(self.kind.shape) == self.end)
        columns = zip(self.kind, self.start, self.end, first, sole, strict=True)
        return [Lists(buffer, *column) for column in columns]


def _scan(buffer: Buffer, starts: Ints, ends: Ints, table: KeyTable, rows: Ints, found: _Found) -> Bools:
    """Fill ``found`` from the regular ones among the records ``rows``; True for these."""
    regular, row, at, end = _walk(buffer.words, starts, ends)
    _match(buffer, table, regular, (row, at, end), rows, found)
    return regular


def _length_field(words: Ints, at: Ints, tag: int) -> tuple[Bools, Ints, Ints]:
    """Read tag and length at each position: whether the tag is ``tag``, where the content begins, its length.

    Lengths take one to four bytes here. The lowest clear top bit among them ends the varint; ``used`` covers the bytes
    up to there, and is -1, whose bit count NumPy says is 1, where four bytes don't suffice.
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


def _walk(words: Ints, starts: Ints, ends: Ints) -> tuple[Bools, Ints, Ints, Ints]:
    """Walk the entries of every record's Features: which records are regular; each entry's record, start and end."""
    ok, cursor, size = _length_field(words, starts, 0x0A)
    regular = (ok & (cursor + size == ends)) | (starts == ends)  # no bytes at all are an Example without features
    rows = np.flatnonzero(regular & (starts < ends))
    cursor, stops = cursor[rows], ends[rows]
    rows, cursor, stops = _unfinished(rows, cursor, stops)
    steps: list[tuple[Ints, Ints, Ints]] = []
    while len(rows) >= _WALKERS_MIN:
        ok, at, size = _length_field(words, cursor, 0x0A)
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


def _match(
    buffer: Buffer, table: KeyTable, regular: Bools, entries: tuple[Ints, Ints, Ints], rows: Ints, found: _Found
) -> None:
    """Take the entries apart, and put the lists of the table's keys into ``found``.

    An entry that came later overwrites one of the same key: NumPy assigns repeated indices in order.
    """
    row, at, end = entries
    word = buffer.words[at]
    key_size = word >> 8 & 0x7F
    ok = (word & 0x80FF) == 0x0A  # the tag, and a length below 128
    at = at + 2
    key = table.find(buffer, at, key_size)
    tag_ok, feature, size = _length_field(buffer.words, at + key_size, 0x12)
    ok &= tag_ok & (feature + size == end)
    empty = size == 0
    tag = buffer.words[feature] & 0xFF
    _, content, size = _length_field(buffer.words, feature, 0x0A)
    wanted = key >= 0
    ok &= empty | ~wanted | ((content + size == end) & ((tag == 0x0A) | (tag == 0x12) | (tag == 0x1A)))
    if not ok.all():
        regular[row[~ok]] = False
    if not wanted.all():
        key, row, tag, content, size, empty = (x[wanted] for x in (key, row, tag, content, size, empty))
    row = rows[row]
    found.kind[key, row] = np.where(empty, 0, tag >> 3)
    found.start[key, row] = content
    found.end[key, row] = np.where(empty, content, content + size)


def _append_irregular(
    buffer: Buffer, records: Sequence[bytes], keys: Sequence[str], rows: npt.NDArray[Any], found: _Found
) -> Buffer:
    """Let protobuf read the records ``rows``; the buffer with what it found at the end."""
    everything = len(rows) == len(records)
    pieces = [] if everything else [buffer.data]
    end = sum(map(len, pieces))
    for row in rows.tolist():
        for i, (kind, content) in enumerate(regular_lists(records[row], keys, row)):
            found.kind[i, row], found.start[i, row], found.end[i, row] = kind, end, end + len(content)
            pieces.append(content)
            end += len(content)
    return Buffer(pieces)
