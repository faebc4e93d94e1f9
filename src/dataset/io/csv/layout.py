"""Layout of a CSV file as given by arguments: delimiter, quotes, the columns to read and their types.

This module checks the arguments that ``CsvDataset`` and ``decode_csv`` share. It does not read files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.plan.checks import require_bool, require_ints

Array: TypeAlias = npt.NDArray[Any]

TEXT = np.dtype("S")
DTYPES = (TEXT, *map(np.dtype, (np.int32, np.int64, np.float32, np.float64)))  # in the order of native/csv.c
_NAMES = "np.int32, np.int64, np.float32, np.float64, bytes"

_FIELDS_MAX = 1 << 15  # of the rows that are read at once


class CsvColumn(NamedTuple):
    """The type and the default value of a column.

    Attributes:
        dtype: one of DTYPES.
        default: the value of an empty field; None if fields must not be empty.
    """

    dtype: np.dtype[Any]
    default: Any = None


@dataclass(frozen=True, eq=False)
class CsvLayout:
    """The layout of a CSV file.

    Attributes:
        columns: the columns that are read, in the order of the file.
        indices: their indices among all columns, ascending.
        fields_max: the maximum number of fields of a row; ``sys.maxsize`` if columns are selected.
        delimiter: one byte.
        quotes: whether fields may be in double quotation marks.
        na_value: a text that counts as empty, in addition to the empty field.
        names: the names of the columns that are read.
    """

    columns: tuple[CsvColumn, ...]
    indices: tuple[int, ...]
    fields_max: int
    delimiter: bytes
    quotes: bool
    na_value: bytes
    names: tuple[str, ...] | None = None

    @property
    def rows_max(self) -> int:
        """How many rows are read at once."""
        return max(1, _FIELDS_MAX // len(self.columns))

    def place(self, field: int | None) -> str:
        """Return the part of an error message that names a column, given its index among all columns."""
        names = dict(zip(self.indices, self.names or (), strict=False))
        name = f" ({names[field]!r})" if field in names else ""
        return "" if field is None else f", column {field}{name}"


def layout_of(
    op: str,
    record_defaults: Any,
    field_delim: Any = ",",
    use_quote_delim: Any = True,
    na_value: Any = "",
    select_cols: Any = None,
    exclude_cols: Any = None,
) -> CsvLayout:
    """Check the arguments that describe a file, and return its layout.

    Args:
        op: the name of the function for messages.
        record_defaults: as in ``CsvDataset``, like all other arguments.
        field_delim: the delimiter.
        use_quote_delim: whether quotation marks have a special meaning.
        na_value: a text that counts as empty, in addition to the empty field.
        select_cols: the indices of the columns to read.
        exclude_cols: the indices of the columns not to read.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument has an invalid value.
    """
    quotes = require_bool(op, "use_quote_delim", use_quote_delim)
    columns = columns_of(op, "record_defaults", record_defaults)
    select = require_ints(op, "select_cols", () if select_cols is None else select_cols, minimum=0, ascending=True)
    exclude = require_ints(op, "exclude_cols", () if exclude_cols is None else exclude_cols, minimum=0, ascending=True)
    if select and exclude:
        raise ValueError(f"{op}(): give select_cols or exclude_cols, not both")
    if select and len(select) != len(columns):
        raise ValueError(f"{op}(): record_defaults must have {len(select)} entries, as select_cols, got {len(columns)}")
    delimiter = as_bytes(op, "field_delim", field_delim)
    if len(delimiter) != 1 or (delimiter in b'\r\n"' and (quotes or delimiter != b'"')):
        raise ValueError(f"{op}(): field_delim must be one byte, not a line end or quotation mark, got {field_delim!r}")
    left = sorted({*range(len(columns) + len(exclude))}.difference(exclude))
    indices = select or tuple(left[: len(columns)])
    fields_max = sys.maxsize if select else indices[-1] + 1
    while fields_max in exclude:  # columns that are not read may be missing at the end of a row
        fields_max += 1
    return CsvLayout(columns, indices, fields_max, delimiter, quotes, as_bytes(op, "na_value", na_value))


def columns_of(op: str, argument: str, given: Any) -> tuple[CsvColumn, ...]:
    """Return the columns that a list of dtypes and default values describes."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{op}(): {argument} must be a list of dtypes and default values, got {given!r:.100}")
    columns = tuple(_column(op, f"{argument}[{number}]", column) for number, column in enumerate(given))
    if not columns:
        raise ValueError(f"{op}(): {argument} must name at least one column")
    return columns


def _column(op: str, argument: str, given: Any) -> CsvColumn:
    is_dtype = isinstance(given, type | np.dtype)
    values = np.zeros(0) if is_dtype else np.asarray(given, object if isinstance(given, str | bytes) else None)
    if values.ndim > 1 or values.size > 1:
        raise ValueError(f"{op}(): {argument} must be a dtype, one value, or an empty array, got {given!r:.100}")
    dtype = np.dtype(given) if is_dtype else values.dtype
    is_texts = not is_dtype and dtype.kind == "O" and all(isinstance(value, str | bytes) for value in values.flat)
    dtype = TEXT if is_texts or dtype.kind in "SU" else dtype.newbyteorder("=")
    if dtype not in DTYPES:
        raise TypeError(f"{op}(): {argument} must be {_NAMES} or a value of one of these, got {given!r:.100}")
    default = next(iter(values.ravel()), None)
    return CsvColumn(dtype, as_bytes(op, argument, default) if values.size and dtype == TEXT else default)


def as_bytes(op: str, argument: str, given: Any) -> bytes:
    """Return a text as bytes; TypeError if it is not one."""
    if not isinstance(given, str | bytes):
        raise TypeError(f"{op}(): {argument} must be bytes or str, got {given!r:.100} of type {type(given).__name__}")
    return given.encode() if isinstance(given, str) else bytes(given)
