"""Schema inference: column names from the headers of CSV files, and column types from their first rows.

A column is int64 if all inspected fields are integers, else float64 if all are finite numbers, else text. Empty fields
are ignored. This is tf.data's rule, with 64 bits for all numbers.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dataset.errors import ParseError
from dataset.io.csv.fields import parse_int
from dataset.io.csv.layout import TEXT, CsvColumn, CsvLayout
from dataset.io.csv.reader import CsvFile
from dataset.redaction import redacted

_INT64 = np.dtype(np.int64)
_DECIMAL = re.compile(rb"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?\s*", re.IGNORECASE)
_ROWS_AT_ONCE = 1024

# By how many kinds of text a column can hold; see _width.
_COLUMNS = (CsvColumn(_INT64, np.int64(0)), CsvColumn(np.dtype(np.float64), np.float64(0)), CsvColumn(TEXT, b""))
_UNKNOWN, _WIDEST = -1, 2


def infer_names(paths: Sequence[str], open_file: Callable[[str], CsvFile], encoding: str) -> list[str]:
    """Return the names in the first row, which must be the same in all files.

    Args:
        paths: the files.
        open_file: opens a file with a header.
        encoding: the encoding of the names.

    Raises:
        ValueError: a file has no header, or its header differs or can't be decoded.
    """
    first: list[str] = []
    for path in paths:
        names = []
        with open_file(path) as file:
            header = file.header_names()
        for number, name in enumerate(header):
            try:
                names.append(name.decode(encoding))
            except UnicodeDecodeError as error:
                raise ParseError(
                    f"{redacted(path)}, line 1, column {number}: the name {name!r:.60} is not valid {encoding} "
                    f"({error.reason}); pass the file's encoding, or header=False with column_names"
                ) from None
        first = first or names
        if names != first:
            raise ValueError(
                f"from_csv(): all files must have the same header, got {names} in {redacted(path)} but {first} in "
                f"{redacted(paths[0])}"
            )
    return first


def infer_columns(
    paths: Sequence[str],
    open_file: Callable[[str, CsvLayout], CsvFile],
    layout: CsvLayout,
    names: Sequence[str],
    rows_max: int | None,
    *,
    skip_errors: bool,
) -> tuple[CsvColumn, ...]:
    """Infer the types of the columns. All columns are optional: empty fields become 0 or the empty text.

    Args:
        paths: the files.
        open_file: opens a file with a layout.
        layout: the layout of ``Csv``, whose ``columns`` are ignored.
        names: the names of all columns in the files.
        rows_max: how many rows of all files together to inspect; None for all.
        skip_errors: whether rows that can't be read are skipped.

    Raises:
        ParseError: a row can't be read.
    """
    texts = (CsvColumn(TEXT, b""),) * len(names)
    whole = dataclasses.replace(layout, columns=texts, na_value=b"", select=None, names=None)
    wanted = range(len(names)) if layout.select is None else layout.select
    widths = dict.fromkeys(wanted, _UNKNOWN)
    for columns in _first_rows((open_file(path, whole) for path in paths), rows_max, skip_errors):
        for index in wanted:
            for text in columns[index].tolist():
                if widths[index] < _WIDEST and text not in {b"", layout.na_value}:
                    widths[index] = max(widths[index], _width(text))
    return tuple(_COLUMNS[width] for width in widths.values())  # the last one if it is unknown


def _first_rows(files: Iterator[CsvFile], rows_max: int | None, skip_errors: bool) -> Iterator[list[Any]]:
    """Yield the columns of the first ``rows_max`` rows of all files together, in blocks."""
    left = np.inf if rows_max is None else rows_max
    for file in files:
        with file:
            while left > 0:
                try:
                    columns = file.columns(int(min(left, _ROWS_AT_ONCE)))
                except ParseError:
                    if not skip_errors:
                        raise
                    continue
                if columns is None:
                    break
                left -= len(columns[0])
                yield columns


def _width(text: bytes) -> int:
    """Return the index in ``_COLUMNS`` of the first column that can hold a text."""
    try:
        parse_int(text, _INT64)
    except ValueError:
        return 1 if _DECIMAL.fullmatch(text) and abs(float(text)) < np.inf else _WIDEST
    return 0
