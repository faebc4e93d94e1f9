"""Conversion of fields to columns: arrays of numbers and object arrays of ``bytes``.

A row with a missing or invalid field is left out of all columns and reported as a ``CsvProblem``. The rows come from
cut.py; numbers.py parses numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.io.csv.cut import CsvProblem, CsvRows
from dataset.io.csv.layout import TEXT, CsvColumn, CsvLayout
from dataset.io.csv.numbers import parse_float, parse_int, read_floats, read_ints

__all__ = ["FieldError", "convert_field", "convert_rows"]

Array: TypeAlias = npt.NDArray[Any]

_MISSING = (
    "the field is empty, and the column has no default; if fields may be empty, pass a default value instead of the "
    "dtype"
)
_SHOWN_MAX = 60  # bytes of a field in a message


class FieldError(ValueError):
    """Internal error: a field is missing or not a number; the message says which."""


def convert_field(text: bytes, column: CsvColumn, na_value: bytes) -> Any:
    """Return one field as a scalar, with the value that ``convert_rows`` gives it.

    Raises:
        FieldError: the field is missing or not a number.
    """
    if not text or text == na_value:
        if column.default is None:
            raise FieldError(_MISSING)
        return column.default
    if column.dtype == TEXT:
        return text
    try:
        if column.dtype.kind == "i":
            return column.dtype.type(parse_int(text, column.dtype))
        return parse_float(text, column.dtype)
    except ValueError:
        raise FieldError(_no_number(text, column.dtype)) from None


def convert_rows(rows: CsvRows, layout: CsvLayout) -> tuple[list[Array], list[CsvProblem]]:
    """Return the columns of the valid rows, and the problems of the other rows in row order."""
    problems = {problem.row: problem for problem in rows.problems}
    columns = []
    failed: set[int] = set()  # indices among the good rows
    for number, column in enumerate(layout.columns):
        values, wrong = _text_column(rows, number, layout) if column.dtype == TEXT else _numbers(rows, number, layout)
        columns.append(values)
        for index, words in wrong.items():
            failed.add(index)
            row = rows.number_of(index)
            problems.setdefault(row, CsvProblem(row, words, column=number))
    if failed:
        columns = [np.delete(values, list(failed)) for values in columns]
    return columns, [problems[row] for row in sorted(problems)]


def _text_column(rows: CsvRows, number: int, layout: CsvLayout) -> tuple[Array, dict[int, str]]:
    texts = rows.texts(number)
    values = np.fromiter(texts, object, len(texts))
    default = layout.columns[number].default
    if default == b"" and not layout.na_value:
        return values, {}
    missing = _missing(rows, number, layout)
    values[missing] = default
    return values, _unless_default(layout.columns[number], missing)


def _missing(rows: CsvRows, number: int, layout: CsvLayout) -> Array:
    """Return the indices of the good rows whose field is empty or equals ``na_value``."""
    starts, ends = rows.fields(number)
    missing = np.flatnonzero(starts == ends)
    if not layout.na_value:
        return missing
    # Quotation marks may be doubled in the buffer, so only the unescaped text decides.
    likely = np.flatnonzero(ends - starts >= len(layout.na_value))
    likely = likely[ends[likely] - starts[likely] <= 2 * len(layout.na_value)]
    named = [text == layout.na_value for text in rows.texts_at(number, likely)]
    return np.union1d(missing, likely[np.array(named, np.bool_)])


def _unless_default(column: CsvColumn, missing: Array) -> dict[int, str]:
    return {} if column.default is not None else dict.fromkeys(missing.tolist(), _MISSING)


def _numbers(rows: CsvRows, number: int, layout: CsvLayout) -> tuple[Array, dict[int, str]]:
    column = layout.columns[number]
    starts, ends = rows.fields(number)
    missing = _missing(rows, number, layout)
    data = np.frombuffer(rows.data, np.uint8)
    read = read_ints if column.dtype.kind == "i" else read_floats
    if not len(missing):
        values, odd = read(data, starts, ends, column.dtype)
        return values, _read_odd(values, np.flatnonzero(odd), rows, number, column.dtype)
    there = np.delete(np.arange(len(starts)), missing)
    values = np.full(len(starts), 0 if column.default is None else column.default, column.dtype)
    values[there], odd = read(data, starts[there], ends[there], column.dtype)
    wrong = _read_odd(values, there[odd], rows, number, column.dtype)
    return values, {**wrong, **_unless_default(column, missing)}


def _read_odd(values: Array, odd: Array, rows: CsvRows, number: int, dtype: np.dtype[Any]) -> dict[int, str]:
    """Parse the numbers at the indices ``odd`` one by one into ``values``; return the errors by index."""
    if not len(odd):
        return {}
    texts = rows.texts_at(number, odd)
    parse: Callable[[bytes, np.dtype[Any]], Any] = parse_int if dtype.kind == "i" else parse_float
    if dtype == np.float64 and b"_" not in b"".join(texts):
        try:
            values[odd] = np.fromiter(map(float, texts), np.float64, len(texts))
        except ValueError:
            pass  # one of them is not a number, or has a form that Python's float() does not accept
        else:
            return {}
    wrong: dict[int, str] = {}
    for index, text in zip(odd.tolist(), texts, strict=True):
        try:
            values[index] = parse(text, dtype)
        except ValueError:
            wrong[index] = _no_number(text, dtype)
    return wrong


def _no_number(text: bytes, dtype: np.dtype[Any]) -> str:
    shown = repr(text[:_SHOWN_MAX]) + ("..." if len(text) > _SHOWN_MAX else "")
    limits = f" from {np.iinfo(dtype).min} to {np.iinfo(dtype).max}" if dtype.kind == "i" else ""
    kind = "an integer" if dtype.kind == "i" else "a number"
    return (
        f"{shown} is not {kind}{limits}, as the column's dtype {dtype.name} requires; correct the file, or pass "
        "another dtype for the column (bytes accepts any text)"
    )
