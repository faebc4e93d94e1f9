"""Schema inference: column names from the headers of CSV files, and column types from their first rows.

A column is int64 if all inspected fields are integers, else float64 if all are finite numbers, else text. Empty fields
are ignored. This is tf.data's rule, with 64 bits for all numbers.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dataset.errors import ParseError
from dataset.io.csv.fields import parse_int
from dataset.io.csv.layout import TEXT, CsvColumn, CsvLayout
from dataset.io.csv.reader import CsvFile
from dataset.redaction import redacted

__all__ = ["infer_columns", "infer_names"]

_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)
_WIDENING = [_INT64, _FLOAT64, TEXT]
_DECIMAL = re.compile(rb"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?\s*", re.IGNORECASE)
_ROWS_AT_ONCE = 1024


def infer_names(paths: Sequence[str], layout: CsvLayout, compression: str, encoding: str) -> list[str]:
    """Return the names in the first row, which must be the same in all files.

    Args:
        paths: the files.
        layout: specifies the delimiter and the quotes.
        compression: a name from ``compression_name``.
        encoding: the encoding of the names.

    Raises:
        ValueError: a file has no header, or its header differs or can't be decoded.
    """
    names = _names_in(paths[0], layout, compression, encoding)
    for path in paths[1:]:
        others = _names_in(path, layout, compression, encoding)
        if others != names:
            raise ValueError(
                f"from_csv(): all files must have the same header, got {others} in {redacted(path)} but {names} in "
                f"{redacted(paths[0])}"
            )
    return names


def _names_in(path: str, layout: CsvLayout, compression: str, encoding: str) -> list[str]:
    names = []
    with CsvFile(path, layout, compression, header=True) as file:
        header = file.header_names()
    for number, name in enumerate(header):
        try:
            names.append(name.decode(encoding))
        except UnicodeDecodeError as error:
            raise ParseError(
                f"{redacted(path)}, line 1, column {number}: the name {name!r:.60} is not valid {encoding} "
                f"({error.reason}); pass the file's encoding, or header=False with column_names"
            ) from None
    return names


def infer_columns(
    paths: Sequence[str],
    layout: CsvLayout,
    compression: str,
    *,
    count: int,
    header: bool,
    rows_max: int | None,
    skip_errors: bool,
) -> tuple[CsvColumn, ...]:
    """Infer the types of the columns. All columns are optional: empty fields become 0 or the empty text.

    Args:
        paths: the files.
        layout: the layout of ``Csv``, whose ``columns`` are ignored.
        compression: a name from ``compression_name``.
        count: the number of columns in the files.
        header: whether to skip the first row of each file.
        rows_max: how many rows of all files together to inspect; None for all.
        skip_errors: whether rows that can't be read are skipped.

    Raises:
        ParseError: a row can't be read.
    """
    texts = tuple(CsvColumn(TEXT, b"") for _ in range(count))
    whole = dataclasses.replace(layout, columns=texts, na_value=b"", select=None, exclude=(), names=None)
    wanted = layout.indices if layout.select is not None else tuple(range(count))
    found: list[np.dtype[Any] | None] = [None] * len(wanted)
    for columns in _first_rows(paths, whole, compression, header=header, rows_max=rows_max, skip_errors=skip_errors):
        for number, index in enumerate(wanted):
            found[number] = _widened(found[number], columns[index], layout.na_value)
    dtypes = [TEXT if dtype is None else dtype for dtype in found]
    return tuple(CsvColumn(dtype, b"" if dtype == TEXT else dtype.type(0)) for dtype in dtypes)


def _first_rows(
    paths: Sequence[str], layout: CsvLayout, compression: str, *, header: bool, rows_max: int | None, skip_errors: bool
) -> Iterator[list[Any]]:
    """Yield the columns of the first ``rows_max`` rows of all files together, in blocks."""
    left = rows_max
    for path in paths:
        with CsvFile(path, layout, compression, header=header) as file:
            while left is None or left > 0:
                try:
                    columns = file.columns(_ROWS_AT_ONCE if left is None else min(left, _ROWS_AT_ONCE))
                except ParseError:
                    if not skip_errors:
                        raise
                    continue
                if columns is None:
                    break
                left = None if left is None else left - len(columns[0])
                yield columns


def _widened(dtype: np.dtype[Any] | None, texts: Any, na_value: bytes) -> np.dtype[Any] | None:
    """Return ``dtype``, widened so that it holds these fields, too."""
    for text in texts.tolist():
        if dtype == TEXT:
            break
        if text not in {b"", na_value}:
            seen = _type_of(text)
            dtype = seen if dtype is None else max(dtype, seen, key=_WIDENING.index)
    return dtype


def _type_of(text: bytes) -> np.dtype[Any]:
    try:
        parse_int(text, _INT64)
    except ValueError:
        return _FLOAT64 if _DECIMAL.fullmatch(text) and abs(float(text)) < np.inf else TEXT
    return _INT64
