"""Reader of columns with the native kernels (native/example.c): finds the lists of a few keys, and decodes them.

The kernels refuse a record that is damaged or unusual. Protobuf then reads it, and raises the error or returns the same
features in the regular form, which takes the place of the record.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.example.columns import Column, object_array, wrong_kind
from dataset.io.example.reference import read_lists, regular_record
from dataset.native.library import kernels

_ROWS = 4  # of the table of a key: kind, start, end, count
_SEVERAL = 4  # added to the kind of a list that is not a single field
_SUMMARY = 5  # of a key: kinds, each, total, octets, width
_WIDTH_MAX = 1 << 12  # of values that are copied twice, which is faster for short ones
_HEADER = bytes.__basicsize__ - 1  # the bytes of an object before its content
_NO_VALUES = np.zeros(0, np.int64)
_Octets = ctypes.c_char * 0

Array = npt.NDArray[Any]


class _Batch(ctypes.Structure):
    """The structure ``batch`` of example.c."""

    _fields_ = (
        ("base", ctypes.c_ssize_t),
        ("offsets", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        ("type", ctypes.c_void_p),
        ("records", ctypes.c_int64),
        ("key_octets", ctypes.c_char_p),
        ("key_ends", ctypes.c_void_p),
        ("keys", ctypes.c_int64),
        ("table", ctypes.c_void_p),
        ("summary", ctypes.c_void_p),
    )


def _address(array: Any) -> int:
    """Return the address of an array; much faster than ``array.ctypes.data``."""
    return ctypes.addressof(_Octets.from_buffer(array))


def kernels_for_strings() -> Any:
    """Return the kernels if they are in use and objects of type ``bytes`` have the layout that they expect, or None."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    probe = b"layout"
    content = id(probe) + _HEADER
    head = [ctypes.c_int64.from_address(content - distance).value for distance in (24, 16)]
    return kernels() if head == [id(bytes), len(probe)] and ctypes.string_at(content, 6) == probe else None


class KernelReader:
    """Reader of the lists of a few keys, prepared once. Thread-safe."""

    def __init__(self, library: Any, keys: Sequence[str]) -> None:
        self.find, self.decode_features = library.find_features, library.decode_features
        self.keys = list(keys)
        encoded = [key.encode() for key in keys]
        self.sorted_keys = sorted(encoded, key=lambda key: (len(key), key))
        self.places = [self.sorted_keys.index(key) for key in encoded]  # in the table
        self.kept = threading.local()  # the scratch of each thread for single records, and for many

    def read_one(self, record: bytes) -> list[tuple[int, Any]]:
        """Return the same as ``read_lists``."""
        try:
            scratch = self.kept.single
        except AttributeError:
            scratch = self.kept.single = _Scratch(self, 1)
        scratch.first[0] = id(record)
        if not self.find(scratch.address, 0):
            return read_lists(record, self.keys)
        found: list[tuple[int, Any]] = []
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
                kind %= _SEVERAL
                found.append((kind, self.decode(scratch, place, kind, count, end - start)))
            else:
                found.append((0, None))
        return found

    def decode(self, scratch: _Scratch, place: int, kind: int, total: int, octets: int, width: int = 0) -> Array:
        """Return the ``total`` values of a key; of bytes, at most ``octets`` in all, and ``width`` in each if not 0."""
        if kind != 1:
            numbers = np.empty(total, np.float32 if kind == 2 else np.int64)
            self.decode_features(scratch.address, place, kind, _address(numbers), numbers.nbytes, None, 0)
            return numbers
        joined, ends = np.empty(octets, np.uint8), np.empty(total, np.int64)
        self.decode_features(scratch.address, place, kind, _address(joined), octets, _address(ends), total)
        if width:
            return joined.view(f"V{width}").astype(object)
        content = joined.tobytes()
        return object_array([content[a:b] for a, b in itertools.pairwise([0, *ends.tolist()])])


class _Scratch:
    """The kernel's structure and tables for a number of records."""

    def __init__(self, reader: KernelReader, records: int) -> None:
        keys = len(reader.keys)
        self._octets = b"".join(reader.sorted_keys)
        self._ends = np.array([0, *itertools.accumulate(map(len, reader.sorted_keys))], np.int64)
        self.table, self.summary = np.empty((keys, _ROWS, records), np.int64), np.empty((keys, _SUMMARY), np.int64)
        self.batch = _Batch(_HEADER, None, None, id(bytes), records, self._octets, _address(self._ends), keys)
        self.batch.table, self.batch.summary = _address(self.table), _address(self.summary)
        self.address = ctypes.addressof(self.batch)
        self.first, self.rows = np.empty(1, np.int64), self.table.reshape(keys, -1)  # for a single record
        self.batch.offsets = _address(self.first)


class KernelColumns:
    """Columns of records that the kernels have read; the same as ``MessageColumns``.

    The columns' counts are valid until the thread reads other records.

    Args:
        reader: the reader of the keys.
        strings: the records, which no other thread may replace.
    """

    def __init__(self, reader: KernelReader, strings: Array) -> None:
        self._reader = reader
        self._strings = strings
        scratch = getattr(reader.kept, "many", None)
        if scratch is None or scratch.batch.records != len(strings):
            scratch = reader.kept.many = _Scratch(reader, len(strings))
        self._scratch = scratch
        scratch.batch.offsets = _address(strings)
        row = reader.find(scratch.address, 0)
        while row < len(strings):
            strings[row] = regular_record(strings[row], reader.keys, row)
            row = reader.find(scratch.address, row)
        self._summary = scratch.summary.tolist()

    def column(self, place: int, wanted: int, *, decoded: bool = True) -> Column:
        """Return the values of the key at ``place``; the column has no values unless ``decoded``.

        Raises:
            Problem: for the first record whose list is not of kind ``wanted``.
        """
        place = self._reader.places[place]
        kind, start, end, counts = self._scratch.table[place]
        kinds, each, total, octets, width = self._summary[place]
        sole, several = 1 << wanted, 1 << wanted + _SEVERAL
        if kinds & ~(1 | sole | several):
            row = int(np.flatnonzero((kind % _SEVERAL != wanted) & (kind != 0))[0])
            raise wrong_kind(row, int(kind[row] % _SEVERAL), wanted)
        present = kind != 0 if kinds & 1 else None
        if not decoded:
            values = _NO_VALUES
        elif wanted == 1 and kinds == sole and not 0 < width <= _WIDTH_MAX:
            found = zip(self._strings.tolist(), start.tolist(), end.tolist(), strict=True)
            values = object_array([record[a:b] for record, a, b in found])
        else:
            width = width if kinds == sole else 0
            values = self._reader.decode(self._scratch, place, wanted, total, octets, width)
        return Column(present, counts, values, each)
