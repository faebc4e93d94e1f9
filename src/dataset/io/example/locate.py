"""Where the lists of a few keys lie in a batch of records: the choice among four ways to find them.

    template.py    all records have one length and differ in nothing but values   a few comparisons of the whole batch
    layout.py      the same keys in the same order, lengths of the same widths    confirms what an earlier record had
    wire.py        any order of keys                                              walks all records in lock step
    reference.py   anything that protobuf accepts                                 record by record

Each takes what it knows and leaves the rest to the next; what they find is the same. What is here knows positions, and
no values: these are columns.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataset.io.example.layout import ExampleLayout, entries_of, length_field
from dataset.io.example.reference import regular_lists
from dataset.io.example.template import Templates
from dataset.io.example.wire import WALKERS_MIN, KeyTable, Matches, WireBuffer, scan

__all__ = ["Lists", "Locator"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LAYOUT_MIN = 8  # for fewer records, protobuf is as fast
_MISSES_MAX = 8  # batches
_LAYOUTS_MAX = 6  # each that does not fit costs some 0.2 us a record


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

    buffer: WireBuffer
    kind: int | npt.NDArray[np.int8]
    start: Ints
    end: Ints
    first: Ints
    sole: Bools | None


class Locator:
    """Finds the lists of a few keys in records; prepared once, and wiser with each batch.

    The ways, each for what the one before has left: a template, the layouts of recent records, the walk, protobuf.
    Threads may share a locator: the layouts are a tuple that is replaced as a whole.
    """

    def __init__(self, keys: Sequence[str], single: Collection[str] = ()) -> None:
        self._keys = list(keys)
        self._index = {key.encode(): i for i, key in enumerate(keys)}
        self._single = {key.encode() for key in single}
        self._table = KeyTable(list(self._index))
        self._templates = Templates(self._index)
        self._layouts: tuple[_KnownLayout, ...] = ()
        self._misses = 0  # batches in a row whose records mostly followed no layout

    def locate(self, records: Sequence[bytes]) -> list[Lists]:
        """Where the lists of the keys lie in ``records``: one Lists per key.

        Raises:
            ParseError: if a record is no Example, with its position.
        """
        buffer = WireBuffer(records)
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        ends = np.cumsum(lengths)
        starts = ends - lengths
        if len(records) >= _LAYOUT_MIN and (lengths == lengths[0]).all():
            lists = self._by_template(buffer, records, starts)
            if lists is not None:
                return lists
        found = _Found(len(self._keys), len(records))
        rest, lists = self._by_layout(buffer, starts, ends, found)
        if lists is not None:
            return lists
        self._misses = self._misses + 1 if 2 * len(rest) > len(records) else 0
        if len(rest) >= WALKERS_MIN:
            if self._layouts_pay():
                self._learn(records[rest[0]])
            regular, matches = scan(buffer, starts[rest], ends[rest], self._table)
            found.put_matches(rest, matches)
            rest = rest[~regular]
        odd = rest.tolist()
        if len(odd) < len(records):  # else there is nothing in the buffer that is worth keeping
            odd = [row for row in odd if not found.put_one(records[row], row, int(starts[row]), self._index)]
        if odd:
            buffer = _append_irregular(buffer, records, self._keys, odd, found)
        return found.lists(buffer)

    def _by_template(self, buffer: WireBuffer, records: Sequence[bytes], starts: Ints) -> list[Lists] | None:
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

    def _by_layout(
        self, buffer: WireBuffer, starts: Ints, ends: Ints, found: _Found
    ) -> tuple[Ints, list[Lists] | None]:
        """Put into ``found`` what the known layouts find; the records that follow none.

        Where all records follow one layout, as in most batches, the lists are ready without ``found``.
        """
        rest = np.arange(len(starts))
        for known in self._layouts if self._layouts_pay() else ():
            if len(rest) < _LAYOUT_MIN:
                break
            ok, content, end = known.layout.apply(buffer.words, starts[rest], ends[rest])
            if len(rest) == len(starts) and ok.all():
                self._misses = 0
                return rest[:0], known.lists(buffer, content, end)
            found.put(known, rest[ok], content[:, ok], end[:, ok])
            rest = rest[~ok]
        return rest, None

    def _layouts_pay(self) -> bool:
        """Whether to look for layouts: no longer where keys come in any order, so that most records missed them all."""
        return self._misses < _MISSES_MAX or self._misses % 32 == 0

    def _learn(self, record: bytes) -> None:
        """Remember the layout of a record that followed none, in front of the others."""
        entries = entries_of(record)
        if entries is not None:
            learned = _KnownLayout(ExampleLayout(entries, self._single), self._index)
            self._layouts = (learned, *self._layouts)[:_LAYOUTS_MAX]


class _KnownLayout:
    """A layout, and which of its entries are asked for."""

    def __init__(self, layout: ExampleLayout, index: Mapping[bytes, int]) -> None:
        self.layout = layout
        by_key = {key: i for i, key in enumerate(layout.keys)}
        self._entry_of = [by_key.get(key) for key in index]
        present = [(k, i) for k, i in enumerate(self._entry_of) if i is not None]
        self.keys = np.array([k for k, _ in present], np.int64)
        self.entries = np.array([i for _, i in present], np.int64)
        self.kinds = np.array([layout.kinds[i] for _, i in present], np.int8)[:, None]
        self.payloads = np.array([layout.payload[i] for _, i in present], np.int64)[:, None]

    def lists(self, buffer: WireBuffer, content: Ints, end: Ints) -> list[Lists]:
        """The lists of all keys where all records follow the layout."""
        missing = np.zeros(content.shape[1:], np.int64)
        return [
            Lists(buffer, 0, missing, missing, missing, missing > 0)
            if i is None
            else self._lists_of(i, buffer, content[i], end[i])
            for i in self._entry_of
        ]

    def _lists_of(self, i: int, buffer: WireBuffer, content: Ints, end: Ints) -> Lists:
        kind, payload = self.layout.kinds[i], self.layout.payload[i]
        if payload:
            return Lists(buffer, kind, content, end, content + payload, None)
        ok, first, size = length_field(buffer.words, content, 0x0A)
        return Lists(buffer, kind, content, end, first, ok & (first + size == end))


class _Found:
    """Kind, start and end of the list of each of k keys in each of n records; kind 0 at first.

    ``first`` is where the content of the list's only field begins, or 0 where nobody has looked yet.
    """

    def __init__(self, keys: int, records: int) -> None:
        self.kind = np.zeros((keys, records), np.int8)
        self.start = np.zeros((keys, records), np.int64)
        self.end = np.zeros((keys, records), np.int64)
        self.first = np.zeros((keys, records), np.int64)

    def put(self, known: _KnownLayout, rows: Ints, content: Ints, end: Ints) -> None:
        """Take what a layout found in the records ``rows``."""
        at = np.ix_(known.keys, rows)
        self.kind[at] = known.kinds
        self.start[at] = start = content[known.entries]
        self.end[at] = end[known.entries]
        self.first[at] = np.where(known.payloads, start + known.payloads, 0)

    def put_matches(self, rows: Ints, found: Matches) -> None:
        """Take what the walk found in the records ``rows``. NumPy assigns in order, so that the last list counts."""
        at = found.key, rows[found.row]
        self.kind[at], self.start[at], self.end[at] = found.kind, found.start, found.end

    def put_one(self, record: bytes, row: int, start: int, index: Mapping[bytes, int]) -> bool:
        """Take what is in one record, if that is regular; False if not."""
        entries = entries_of(record)
        if entries is None:
            return False
        self.kind[:, row] = self.start[:, row] = self.end[:, row] = 0
        for entry in entries:
            key = index.get(entry.key)
            if key is not None:
                self.kind[key, row] = entry.kind
                self.start[key, row], self.end[key, row] = start + entry.content, start + entry.end
        return True

    def lists(self, buffer: WireBuffer) -> list[Lists]:
        """The lists of each key."""
        return [self._lists_of(key, buffer) for key in range(len(self.kind))]

    def _lists_of(self, key: int, buffer: WireBuffer) -> Lists:
        kind, start, end, first = self.kind[key], self.start[key], self.end[key], self.first[key]
        if first.all():
            return Lists(buffer, kind, start, end, first, None)
        ok, first, size = length_field(buffer.words, start, 0x0A)
        return Lists(buffer, kind, start, end, first, ok & (first + size == end))


def _append_irregular(
    buffer: WireBuffer, records: Sequence[bytes], keys: Sequence[str], rows: list[int], found: _Found
) -> WireBuffer:
    """Let protobuf read the records ``rows``; the buffer with what it found at the end."""
    everything = len(rows) == len(records)
    pieces = [] if everything else [buffer.data]
    end = sum(map(len, pieces))
    for row in rows:
        for i, (kind, content) in enumerate(regular_lists(records[row], keys, row)):
            found.kind[i, row], found.start[i, row], found.end[i, row] = kind, end, end + len(content)
            pieces.append(content)
            end += len(content)
    return WireBuffer(pieces)
