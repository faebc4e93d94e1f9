"""Rows of a block of CSV text: read by the native kernels (native/csv.c) if they are in use, otherwise by their twins.

A row with a malformed, missing or invalid field is left out of all columns and reported as a ``RowError``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from ctypes import Structure, addressof, c_char_p, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from dataset.io.csv.fields import RowError, convert_field, unescaped
from dataset.io.csv.layout import TEXT, Array, CsvLayout
from dataset.io.csv.row_parser import ScannedRow, scan_row
from dataset.native.library import kernels

_WIDTH_MAX = 64  # bytes of a text; longer ones are cheaper to slice one by one
_IN_NUMBERS = b"0123456789+-.eE "  # delimiters that do not end every number
_KINDS = {"S": 0, "int32": 1, "int64": 2, "float32": 3, "float64": 4}
_DOUBLED, _ENDS_IN_ZERO, _MISSING = 1, 2, 4  # flags of a column of texts


@dataclass
class CsvRows:
    """Consecutive rows of a block.

    Attributes:
        starts: where each row begins, including bad rows, and where the next row begins.
        columns: one array per column, of the values of the good rows.
        problems: the errors of the other rows, in row order.
    """

    starts: Sequence[int] | Array
    columns: list[Array]
    problems: list[RowError]


def read_rows(block: bytes, start: int, layout: CsvLayout) -> CsvRows:
    """Return complete rows of a block, from ``start`` on; no rows only if none is complete."""
    native = kernels()
    if native is None or b'"' in layout.na_value:
        return parse_rows(block, start, layout)
    if getattr(_kept, "layout", None) is not layout:
        _kept.kernel, _kept.layout = _RowsKernel(native, layout), layout
    kernel: _RowsKernel = _kept.kernel
    return kernel.read(block, start)


def parse_rows(block: bytes, start: int, layout: CsvLayout) -> CsvRows:
    """Do the work of ``read_rows`` in Python."""
    starts, good, problems = [start], [], []
    while len(starts) <= layout.rows_max and (row := scan_row(block, starts[-1], layout)).end >= 0:
        try:
            good.append(values_of(row, layout, "row"))
        except RowError as problem:
            problems.append(problem.at(len(starts) - 1))
        starts.append(row.end)
    return CsvRows(starts, arrays_of(good, layout), problems)


def values_of(row: ScannedRow, layout: CsvLayout, kind: str) -> list[Any]:
    """Return the values of the columns of a row; ``kind`` is the word for "row" in messages.

    Raises:
        RowError: the row is malformed, has too few or too many fields, or a field can't be converted.
    """
    if row.words:
        raise RowError(row.words, field=row.field)
    count = len(row.fields)
    if not layout.fields_min <= count <= layout.fields_max:
        raise RowError(f"the {kind} has {count} field{'s' if count != 1 else ''}, expected {layout.wanted()}")
    return [convert_field(row.fields[field], index, layout) for index, field in enumerate(layout.indices)]


def arrays_of(rows: Sequence[Sequence[Any]], layout: CsvLayout) -> list[Array]:
    """Return the values of the rows as an array for each column."""
    dtypes = [object if column.dtype == TEXT else column.dtype for column in layout.columns]
    columns = zip(*rows, strict=True) if rows else [()] * len(dtypes)
    return [np.fromiter(values, dtype, len(rows)) for values, dtype in zip(columns, dtypes, strict=True)]


def cut_texts(block: bytes, places: Array, *, is_doubled: bool) -> list[bytes]:
    """Return the texts at pairs of begin and length. A length of -1 means an empty text."""
    texts = [block[begin : begin + max(length, 0)] for begin, length in places.tolist()]
    return list(map(unescaped, texts)) if is_doubled else texts


class _Layout(Structure):
    """The structure ``csv_layout`` of csv.c."""

    _fields_ = (
        *((name, c_int64) for name in ("delimiter", "quotes", "is_direct")),
        ("na_value", c_char_p),
        ("na_size", c_int64),
        ("columns", c_void_p),
        *((name, c_int64) for name in ("count", "fields_min", "fields_max", "rows_max")),
        *((name, c_void_p) for name in ("starts", "places", "summaries")),
    )


_kept = threading.local()
"""The kernel of a thread, for the last layout. New arrays for each block would cost a page fault per page."""


class _RowsKernel:
    """The kernels, prepared for a layout: their structure and the arrays for their results."""

    def __init__(self, native: Any, layout: CsvLayout) -> None:
        self.native, self.layout = native, layout
        count, rows_max = len(layout.columns), layout.rows_max
        self.columns = np.zeros((count, 4), np.int64)  # field, kind, has_default, initial
        for row, index, column in zip(self.columns, layout.indices, layout.columns, strict=True):
            row[:3] = index, _KINDS[column.dtype.name if column.dtype != TEXT else "S"], column.default is not None
            if column.dtype != TEXT and column.default is not None:
                row[3:].view(column.dtype)[0] = column.default
        self.starts = np.empty(rows_max + 1, np.int64)
        self.places = np.empty((count, rows_max, 2), np.int64)
        self.summaries = np.empty((count, 2), np.int64)  # longest, flags
        self.spec = _Layout(ord(layout.delimiter), layout.quotes, layout.delimiter not in _IN_NUMBERS, layout.na_value)
        self.spec.na_size, self.spec.count, self.spec.rows_max = len(layout.na_value), count, rows_max
        self.spec.fields_min, self.spec.fields_max = layout.fields_min, layout.fields_max
        for name in ("columns", "starts", "places", "summaries"):
            setattr(self.spec, name, getattr(self, name).ctypes.data)
        self.address = addressof(self.spec)

    def read(self, block: bytes, start: int) -> CsvRows:
        """Return the same as ``parse_rows``."""
        layout, problems = self.layout, {}
        values: list[tuple[int, int, Any]] = []  # row, column and value of the rows that the kernel does not read
        self.summaries[:] = 0
        row = self.native.read_rows(block, len(block), start, 0, self.address)
        while row < layout.rows_max and (bad := scan_row(block, int(self.starts[row]), layout)).end >= 0:
            try:
                values += [(row, index, value) for index, value in enumerate(values_of(bad, layout, "row"))]
            except RowError as problem:
                problems[row] = problem.at(row)
            row = self.native.read_rows(block, len(block), bad.end, row + 1, self.address)
        columns = [self._column(block, index, row) for index in range(len(layout.columns))]
        for number, index, value in values:
            columns[index][number] = value
        if problems:
            columns = [np.delete(column, list(problems)) for column in columns]
        return CsvRows(self.starts[: row + 1].copy(), columns, list(problems.values()))

    def _column(self, block: bytes, index: int, count: int) -> Array:
        column, places = self.layout.columns[index], self.places[index]
        if column.dtype != TEXT:
            numbers: Array = places.reshape(-1).view(column.dtype)[:count].copy()
            return numbers
        longest, flags = self.summaries[index].tolist()
        width = max(-(-longest // 8) * 8, 8)
        if width > _WIDTH_MAX or flags & _ENDS_IN_ZERO:
            found = cut_texts(block, places[:count], is_doubled=bool(flags & _DOUBLED))
            texts = np.fromiter(found, object, count)
        else:
            strings = np.empty(count, f"S{width}")
            address = strings.ctypes.data
            self.native.copy_texts(block, len(block), places.ctypes.data, count, width, flags & _DOUBLED, address)
            texts = strings.astype(object)
        if flags & _MISSING:
            texts[places[:count, 1] < 0] = column.default
        return texts
