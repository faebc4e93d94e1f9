"""Reader of columns with the native kernels (native/example.c): finds the lists of a few keys, and decodes them.

The kernels refuse a record that is damaged or unusual. Protobuf then reads it, and raises the error or returns the same
features in the regular form, which takes the place of the record.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.example.columns import Column, MessageReader, Steps, wrong_kind
from dataset.io.example.reference import List, regular_record
from dataset.native.library import address_of, kernels
from dataset.plan.packed import BytesColumn
from dataset.plan.values import object_column
from dataset.world import threading

_KIND, _START, _END, _COUNT, _ROWS = range(5)  # of the table of a key
_SEVERAL = 4  # added to the kind of a list that is not a single field
_SUMMARY = 5  # of a key: kinds, each, total, octets, width
_ADDRESSES = 1  # the place of the addresses of the records in the structure ``batch`` of example.c
_WIDTH_MAX = 1 << 12  # of values that are copied twice, which is faster for short ones
_HEADER = bytes.__basicsize__ - 1  # the bytes of an object before its content

Array = npt.NDArray[Any]


def kernels_for_strings() -> Any:
    """Return the kernels if they are in use and objects of type ``bytes`` have the layout that they expect, or None."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    probe = b"layout"
    content = id(probe) + _HEADER
    head = [ctypes.c_int64.from_address(content - distance).value for distance in (24, 16)]
    return kernels() if head == [id(bytes), len(probe)] and ctypes.string_at(content, 6) == probe else None


def reader_of(keys: Sequence[str], *, in_lists: bool = False) -> KernelReader | MessageReader:
    """Return a reader of the keys of Examples, or of the feature lists of SequenceExamples if they are ``in_lists``."""
    library = kernels_for_strings()
    return MessageReader(keys) if library is None else KernelReader(library, keys, in_lists=in_lists)


class KernelReader:
    """Reader of a few keys of Examples, or of SequenceExamples if they are ``in_lists``; the same as ``MessageReader``.

    It is thread-safe.
    """

    def __init__(self, library: Any, keys: Sequence[str], *, in_lists: bool = False) -> None:
        self.library, self.keys, self.in_lists = library, list(keys), in_lists
        encoded = [key.encode() for key in keys]
        self.sorted_keys = sorted(set(encoded), key=lambda key: (len(key), key))
        self.places = [self.sorted_keys.index(key) for key in encoded]  # in the table
        self.kept = threading.local()  # the scratch of each thread for single records, and for many

    def read_one(self, record: bytes) -> list[List]:
        """Return the list of each key in an Example, as ``list_of``."""
        try:
            scratch = self.kept.single
        except AttributeError:
            scratch = self.kept.single = _Scratch(self.library, self.sorted_keys, 1)
        scratch.batch[-1] = id(record)
        if not self.library.find_features(scratch.address, 0):
            return MessageReader(self.keys).read_one(record)
        found: list[List] = []
        table = scratch.rows.tolist()
        for place in self.places:
            kind, start, end, count = table[place]
            if kind == 1:
                found.append((1, [record[start:end]]))
            elif kind == 3 and end - start == 1:
                found.append((3, [record[start]]))
            elif kind == 2 and count:
                found.append((2, np.frombuffer(record, "<f4", count, start).astype(np.float32)))
            elif kind:
                found.append((kind % _SEVERAL, scratch.decode(place, kind % _SEVERAL, count, end - start)))
            else:
                found.append((0, None))
        return found

    def columns(self, strings: Array | BytesColumn) -> KernelColumns:
        """Return the columns of Examples, which no other thread may replace, for the keys in their order.

        Raises:
            ParseError: as ``regular_record``.
        """
        return KernelColumns(self._find(strings), strings, self.places)

    def steps(self, strings: Array) -> list[Steps]:
        """Return the steps of SequenceExamples, as ``columns`` does.

        Raises:
            ParseError: as ``regular_record``.
        """
        lists, found = self._find(strings), []
        for place in self.places:
            kind, _, _, counts = lists.table[place]
            records = strings.repeat(counts)
            scratch = _Scratch(self.library, [b""], len(records))
            scratch.refer_to(records)
            self.library.find_steps(lists.address, place, scratch.address)
            found.append(Steps(kind != 0, counts, KernelColumns(scratch, records, [0])))
        return found

    def _find(self, strings: Array | BytesColumn) -> _Scratch:
        """Find the keys in records. The result is valid until the next call."""
        scratch = getattr(self.kept, "many", None)
        if scratch is None or scratch.records != len(strings):
            scratch = self.kept.many = _Scratch(self.library, self.sorted_keys, len(strings), in_lists=self.in_lists)
        scratch.refer_to(strings)
        row = self.library.find_features(scratch.address, 0)
        while row < len(strings):
            strings[row] = regular_record(strings[row], self.keys, row, in_lists=self.in_lists)
            row = self.library.find_features(scratch.address, row)
        return scratch


class _Scratch:
    """The kernel's structure and tables for a number of records."""

    def __init__(self, library: Any, keys: Sequence[bytes], records: int, *, in_lists: bool = False) -> None:
        self.library, self.records = library, records
        self.table = np.empty((len(keys), _ROWS, records), np.int64)
        self.summary = np.empty((len(keys), _SUMMARY), np.int64)
        self.rows = self.table.reshape(len(keys), _ROWS * records)  # for a single record
        self.keys = bytearray(b"".join(keys)), np.array([0, *itertools.accumulate(map(len, keys))], np.int64)
        octets, ends, table, summary = map(address_of, (*self.keys, self.table, self.summary))
        # The structure of example.c, whose members have eight bytes each, and the address of a single record.
        batch = _HEADER, 0, 0, id(bytes), records, octets, ends, len(keys), in_lists, table, summary, 0
        self.batch = array("q", batch)
        self.address = address_of(self.batch)
        self.batch[_ADDRESSES] = self.address + 8 * (len(batch) - 1)

    def refer_to(self, records: Array | BytesColumn) -> None:
        """Set the records, which the caller keeps alive."""
        if isinstance(records, BytesColumn):
            self.batch[:3] = array("q", (0, address_of(records.addresses), address_of(records.lengths)))
        else:
            self.batch[:3] = array("q", (_HEADER, address_of(records), 0))

    def decode(self, place: int, kind: int, total: int, octets: int) -> Array:
        """Return the ``total`` values of a key; of bytes, at most ``octets`` in all."""
        decode = self.library.decode_features
        if kind != 1:
            numbers = np.empty(total, np.float32 if kind == 2 else np.int64)
            decode(self.address, place, kind, address_of(numbers), numbers.nbytes, None, 0)
            return numbers
        joined, ends = self.join(place, total, octets)
        content = joined.tobytes()
        return object_column([content[a:b] for a, b in itertools.pairwise([0, *ends.tolist()])])

    def join(self, place: int, total: int, octets: int) -> tuple[Array, Array]:
        """Return the ``total`` byte strings of a key one after another, of ``octets`` bytes, and where each ends."""
        joined, ends = np.empty(octets, np.uint8), np.empty(total, np.int64)
        self.library.decode_features(self.address, place, 1, address_of(joined), octets, address_of(ends), total)
        return joined, ends


class KernelColumns:
    """Columns of records, as the kernels have found them.

    The columns' counts are valid until the thread reads other records.

    Args:
        scratch: where the keys were found.
        strings: the records, which no other thread may replace.
        places: where each key is in the tables.
    """

    def __init__(self, scratch: _Scratch, strings: Array | BytesColumn, places: Sequence[int]) -> None:
        self._scratch, self._strings, self._places = scratch, strings, places
        self._summary = scratch.summary.tolist()

    def column(self, place: int, wanted: int, *, decoded: bool = True, void: bool = False) -> Column:
        """Return the values of the key at ``place``; the column has no values unless ``decoded``.

        Byte strings are of void dtype if each record has one, none is empty, all have one length, and ``void`` is set.

        Raises:
            Problem: for the first record whose list is not of kind ``wanted``.
        """
        place = self._places[place]
        table = self._scratch.table[place]
        kinds, each, total, octets, width = self._summary[place]
        sole, several = 1 << wanted, 1 << wanted + _SEVERAL
        if kinds & ~(1 | sole | several):
            held = table[_KIND] % _SEVERAL
            row = int(np.flatnonzero((held != wanted) & (held != 0))[0])
            raise wrong_kind(row, int(held[row]), wanted)
        present = table[_KIND] != 0 if kinds & 1 else None
        if not decoded:
            values = np.zeros(0, np.int64)
        elif wanted != 1 or kinds != sole:
            values = self._scratch.decode(place, wanted, total, octets)
        elif width > 0 and (void or width <= _WIDTH_MAX):
            values = self._scratch.join(place, total, octets)[0].view(f"V{width}")
            values = values if void else values.astype(object)
        elif isinstance(self._strings, BytesColumn):
            values = object_column(self._strings.parts(table[_START], table[_END]).tolist())
        else:
            found = zip(self._strings.tolist(), table[_START].tolist(), table[_END].tolist(), strict=True)
            values = object_column([record[a:b] for record, a, b in found])
        return Column(present, table[_COUNT], values, each)
