"""Rows of a block of CSV text: read by the native kernels (native/csv.c) if they are in use.

The kernels leave any row that they can't read to row_parser.py. Without kernels, it reads all rows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from ctypes import c_int64
from typing import Any, NamedTuple

import numpy as np

from dataset.io.csv.layout import DTYPES, TEXT, Array, CsvLayout
from dataset.io.csv.row_parser import RowError, scan_row, values_of
from dataset.native.library import kernels
from dataset.world import threading

_WIDTH_MAX = 64  # bytes of a text; longer ones are cheaper to slice one by one
_IN_NUMBERS = b"0123456789+-.eE "  # delimiters that do not end every number
_DOUBLED, _ENDS_IN_ZERO, _MISSING = 1, 2, 4  # flags of a column of texts


class CsvRows(NamedTuple):
    """Consecutive rows of a block.

    Attributes:
        starts: where each row begins, and where the next row begins.
        columns: one array per column, of the values of the rows; those of a row with an error are unspecified.
        errors: the errors by row, in order. Rows are malformed, or have missing or invalid fields.
    """

    starts: Sequence[int] | Array
    columns: list[Array]
    errors: dict[int, RowError]


def read_rows(block: bytes, start: int, layout: CsvLayout) -> CsvRows:
    """Return complete rows of a block, from ``start`` on; no rows only if none is complete."""
    native = None if b'"' in layout.na_value else kernels()
    return _reader_of(native, layout).read(block, start)


def parse_rows(block: bytes, start: int, layout: CsvLayout) -> CsvRows:
    """Do the work of ``read_rows`` without kernels."""
    return _reader_of(None, layout).read(block, start)


def cut_texts(block: bytes, places: Array, *, is_doubled: bool) -> list[bytes]:
    """Return the texts at pairs of begin and length. A length of -1 means an empty text."""
    texts = [block[begin : begin + max(length, 0)] for begin, length in places.tolist()]
    return [text.replace(b'""', b'"') for text in texts] if is_doubled else texts


class _RowsReader(threading.local):
    """Reader of rows of a layout: the structure for the kernels, and the arrays of a thread for their results.

    New arrays for each block would cost a page fault per page.

    Args:
        native: the kernels; None to read all rows in Python.
        layout: the layout.
    """

    def __init__(self, native: Any | None, layout: CsvLayout) -> None:
        self.native, self.layout = native, layout
        count, rows_max = len(layout.columns), layout.rows_max
        columns = np.zeros((count, 4), np.int64)  # field, kind, has_default, initial
        for row, index, (dtype, default) in zip(columns, layout.indices, layout.columns, strict=True):
            row[:3] = index, DTYPES.index(dtype), default is not None
            if dtype != TEXT and default is not None:
                row[3:].view(dtype)[0] = default
        self.starts = np.empty(rows_max + 1, np.int64)
        self.places = np.zeros((count, rows_max, 2), np.int64)
        self.summaries = np.empty((count, 2), np.int64)  # longest, flags
        na_value = np.frombuffer(layout.na_value + b"\0", np.uint8)
        self.arrays = na_value, columns, self.starts, self.places, self.summaries  # the structure refers to them
        grammar = ord(layout.delimiter), layout.quotes, layout.delimiter not in _IN_NUMBERS, len(layout.na_value)
        numbers = *grammar, count, layout.indices[-1] + 1, layout.fields_max, rows_max
        self.spec = (c_int64 * 13)(*numbers, *[array.ctypes.data for array in self.arrays])  # csv_layout of csv.c

    def read(self, block: bytes, start: int) -> CsvRows:
        """Return the rows as ``read_rows`` does."""
        others: dict[int, list[Any] | RowError] = {}  # the values of rows that the kernel leaves to Python
        errors: dict[int, RowError] = {}
        self.summaries[:] = 0
        row, end = 0, start
        while True:
            self.starts[row] = end
            if self.native is not None:
                row = self.native.read_rows(block, len(block), end, row, self.spec)
            if row == self.layout.rows_max:
                break
            fields, end = scan_row(block, int(self.starts[row]), self.layout)
            if end < 0:
                break
            others[row] = values_of(fields, self.layout, "row")
            row += 1
        columns = [self._column(block, index, row) for index in range(len(self.places))]
        for number, values in others.items():
            if isinstance(values, RowError):
                errors[number] = values
            else:
                for column, value in zip(columns, values, strict=True):
                    column[number] = value
        return CsvRows(self.starts[: row + 1].copy(), columns, errors)

    def _column(self, block: bytes, index: int, count: int) -> Array:
        (dtype, default), places = self.layout.columns[index], self.places[index]
        if dtype != TEXT:
            return np.array(places.reshape(-1).view(dtype)[:count])
        longest, flags = self.summaries[index].tolist()
        width = max(-(-longest // 8) * 8, 8)
        if self.native is None or width > _WIDTH_MAX or flags & _ENDS_IN_ZERO:
            texts = np.array(cut_texts(block, places[:count], is_doubled=bool(flags & _DOUBLED)), object)
        else:
            strings = np.empty(count, f"S{width}")
            address = strings.ctypes.data
            self.native.copy_texts(block, len(block), places.ctypes.data, count, width, flags & _DOUBLED, address)
            texts = strings.astype(object)
        if flags & _MISSING:
            texts[places[:count, 1] < 0] = default
        return texts


_reader_of = functools.lru_cache(maxsize=4)(_RowsReader)
