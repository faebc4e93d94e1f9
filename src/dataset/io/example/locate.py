"""Locator: finds the lists of a few keys in a batch of records with one of four methods.

    template.py    all records have the same length and differ only in values     a few comparisons of the whole batch
    record_layout.py      the same keys in the same order, lengths of the same widths    compares with an earlier record
    wire.py        any order of keys                                              walks all records in lockstep
    reference.py   anything that protobuf accepts                                 record by record

Each method handles the records that it supports and leaves the others to the next one; the results are the same. This
module knows positions but no values, which feature_columns.py decodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataset.io.example.record_layout import ExampleLayout, entries_of, length_field
from dataset.io.example.reference import regular_lists
from dataset.io.example.template import Templates
from dataset.io.example.wire import WALKERS_MIN, KeyTable, Matches, WireBuffer, scan

__all__ = ["Lists", "Locator"]

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LAYOUT_MIN = 8  # for fewer records, protobuf is as fast
_MISSES_MAX = 8  # batches
_LAYOUTS_MAX = 6  # each one that does not fit takes about 0.2 us per record


@dataclass(slots=True)
class Lists:
    """Positions of the lists of one key in n records.

    Attributes:
        buffer: the buffer that the positions refer to.
        kind: the lists' field number in Feature (1 bytes, 2 float, 3 int64, 0 none): one for all, or int8 (n,).
        start: int64 (n,): the first byte of each list message.
        end: int64 (n,): the byte after it.
        first: int64 (n,): where the content of its first field begins.
        sole: whether the list is a single length-delimited field (one value of bytes, or packed numbers) from ``first``
            to ``end``: bool (n,), or None if this is true for all records.
    """

    buffer: WireBuffer
    kind: int | npt.NDArray[np.int8]
    start: Ints
    end: Ints
    first: Ints
    sole: Bools | None


class Locator:
    """Locator of the lists of a few keys in records; prepared once, and learns from each batch.

    The methods, each for the records left by the previous one: a template, the layouts of recent records, the walk,
    protobuf. Thread-safe: the layouts are a tuple that is replaced as a whole.
    """

    def __init__(self, keys: Sequence[str], single: Collection[str] = ()) -> None:
        self._keys = list(keys)
        self._index = {key.encode(): i for i, key in enumerate(keys)}
        self._single = {key.encode() for key in single}
        self._table = KeyTable(list(self._index))
        self._templates = Templates(self._index)
        self._layouts: tuple[_KnownLayout, ...] = ()
        self._misses = 0  # consecutive batches in which most records followed no layout

    def locate(self, records: Sequence[bytes]) -> list[Lists]:
        """Return the positions of the keys' lists in ``records``: one Lists per key.

        Raises:
            ParseError: a record is not an Example; the message has its position.
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
        if len(odd) < len(records):  # otherwise the buffer contains nothing to keep
            odd = [row for row in odd if not found.put_one(records[row], row, int(starts[row]), self._index)]
        if odd:
            buffer = _append_irregular(buffer, records, self._keys, odd, found)
        return found.lists(buffer)

    def _by_template(self, buffer: WireBuffer, records: Sequence[bytes], starts: Ints) -> list[Lists] | None:
        """Locate the lists in records of equal length by a template; return None if they don't follow it."""
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
        """Store the lists that the known layouts find in ``found``; return the records that follow none.

        If all records follow one layout, as in most batches, the lists are returned directly.
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
        """Return whether to try layouts; rarely if most records missed them all because their keys have no order."""
        return self._misses < _MISSES_MAX or self._misses % 32 == 0

    def _learn(self, record: bytes) -> None:
        """Store the layout of a record that followed none, before the others."""
        entries = entries_of(record)
        if entries is not None:
            learned = _KnownLayout(ExampleLayout(entries, self._single), self._index)
            self._layouts = (learned, *self._layouts)[:_LAYOUTS_MAX]


class _KnownLayout:
    """Known layout, and its requested entries."""

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
        """Return the lists of all keys if all records follow the layout."""
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
    """Table of kind, start and end of the list of each of k keys in each of n records; initially of kind 0.

    ``first`` is where the content of the list's only field begins, or 0 if it is not known yet.
    """

    def __init__(self, keys: int, records: int) -> None:
        self.kind = np.zeros((keys, records), np.int8)
        self.start = np.zeros((keys, records), np.int64)
        self.end = np.zeros((keys, records), np.int64)
        self.first = np.zeros((keys, records), np.int64)

    def put(self, known: _KnownLayout, rows: Ints, content: Ints, end: Ints) -> None:
        """Store the lists that a layout found in the records ``rows``."""
        at = np.ix_(known.keys, rows)
        self.kind[at] = known.kinds
        self.start[at] = start = content[known.entries]
        self.end[at] = end[known.entries]
        self.first[at] = np.where(known.payloads, start + known.payloads, 0)

    def put_matches(self, rows: Ints, found: Matches) -> None:
        """Store the lists that the walk found in the records ``rows``. NumPy assigns in order: the last list wins."""
        at = found.key, rows[found.row]
        self.kind[at], self.start[at], self.end[at] = found.kind, found.start, found.end

    def put_one(self, record: bytes, row: int, start: int, index: Mapping[bytes, int]) -> bool:
        """Store the lists of one record; return False if it is not regular."""
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
        """Return the lists of each key."""
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
    """Read the records ``rows`` with protobuf; return a buffer with their lists appended."""
    everything = len(rows) == len(records)
    pieces = [] if everything else [buffer.data]
    end = sum(map(len, pieces))
    for row in rows:
        for i, (kind, content) in enumerate(regular_lists(records[row], keys, row)):
            found.kind[i, row], found.start[i, row], found.end[i, row] = kind, end, end + len(content)
            pieces.append(content)
            end += len(content)
    return WireBuffer(pieces)
