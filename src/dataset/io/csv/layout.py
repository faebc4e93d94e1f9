"""Layout of a CSV file as given by arguments: delimiter, quotes, the columns to read and their types.

This module checks the arguments that ``CsvDataset`` and ``decode_csv`` share. It does not read files.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.plan.checks import require_bool

Array: TypeAlias = npt.NDArray[Any]

TEXT = np.dtype("S")
NUMBERS = (np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32), np.dtype(np.float64))

_FIELDS_MAX = 1 << 15  # of the rows that are read at once


@dataclass(frozen=True)
class CsvColumn:
    """The type and the default value of a column.

    Attributes:
        dtype: one of NUMBERS, or TEXT.
        default: the value of an empty field; None if fields must not be empty.
    """

    dtype: np.dtype[Any]
    default: Any = None


@dataclass(frozen=True)
class CsvLayout:
    """The layout of a CSV file.

    Attributes:
        columns: the columns that are read, in the order of the file.
        delimiter: one byte.
        quotes: whether fields may be in double quotation marks.
        na_value: a text that counts as empty, in addition to the empty field.
        select: the indices of the columns that are read; None for all columns except those in ``exclude``.
        exclude: the indices of columns that are not read.
        names: the names of the columns that are read.
    """

    columns: tuple[CsvColumn, ...]
    delimiter: bytes = b","
    quotes: bool = True
    na_value: bytes = b""
    select: tuple[int, ...] | None = None
    exclude: tuple[int, ...] = ()
    names: tuple[str, ...] | None = None

    @functools.cached_property
    def indices(self) -> tuple[int, ...]:
        """The indices in a row of the columns that are read."""
        if self.select is not None:
            return self.select
        count = len(self.columns)
        left_out = set(self.exclude)
        return tuple([i for i in range(count + len(left_out)) if i not in left_out][:count])

    @functools.cached_property
    def fields_min(self) -> int:
        """The minimum number of fields of a row."""
        return self.indices[-1] + 1

    @functools.cached_property
    def fields_max(self) -> int:
        """The maximum number of fields of a row. Only columns that are not read may be missing at its end."""
        most = sys.maxsize if self.select is not None else self.fields_min
        while most in self.exclude:
            most += 1
        return most

    @functools.cached_property
    def rows_max(self) -> int:
        """How many rows are read at once."""
        return max(1, _FIELDS_MAX // len(self.columns))

    def wanted(self) -> str:
        """Return a description of the number of fields that a row must have."""
        if self.select is not None:
            return f"more than {self.select[-1]} because column {self.select[-1]} is selected"
        besides = f" in addition to the {len(self.exclude)} excluded" if self.exclude else ""
        return f"{len(self.columns)}{besides}"

    def column_name(self, number: int) -> str:
        """Return the name for messages of a column, given its index among the columns that are read."""
        named = f" ({self.names[number]!r})" if self.names else ""
        return f"column {self.indices[number]}{named}"


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
    columns = columns_of(op, record_defaults)
    select = _indices(op, "select_cols", select_cols)
    exclude = _indices(op, "exclude_cols", exclude_cols)
    if select and exclude:
        raise ValueError(f"{op}(): give select_cols or exclude_cols, not both")
    if select and len(select) != len(columns):
        raise ValueError(
            f"{op}(): record_defaults must have one entry for each of select_cols, got {len(columns)} for {len(select)}"
        )
    delimiter = _as_bytes(op, "field_delim", field_delim)
    if len(delimiter) != 1:
        raise ValueError(f"{op}(): field_delim must be one byte, got {field_delim!r:.100}")
    if delimiter in b'\r\n"' and (quotes or delimiter != b'"'):
        raise ValueError(f"{op}(): field_delim must not be a line end or a quotation mark, got {field_delim!r}")
    na_bytes = _as_bytes(op, "na_value", na_value)
    return CsvLayout(columns, delimiter, quotes, na_bytes, select or None, exclude)


def columns_of(op: str, record_defaults: Any, argument: str = "record_defaults") -> tuple[CsvColumn, ...]:
    """Return the columns that a list of dtypes and default values describes."""
    if isinstance(record_defaults, str | bytes) or not isinstance(record_defaults, Iterable):
        raise TypeError(
            f"{op}(): {argument} must be a list of a dtype or a default value for each column, got "
            f"{record_defaults!r:.100}"
        )
    columns = tuple(_column(op, f"{argument}[{number}]", given) for number, given in enumerate(record_defaults))
    if not columns:
        raise ValueError(f"{op}(): {argument} must name at least one column")
    return columns


def _column(op: str, argument: str, given: Any) -> CsvColumn:
    values = np.zeros(0)
    if isinstance(given, type | np.dtype):
        dtype = np.dtype(given)
    else:
        values = np.asarray(given, object if isinstance(given, str | bytes) else None)
        if values.ndim > 1 or values.size > 1:
            raise ValueError(f"{op}(): {argument} must be a dtype, one value, or an empty array, got {given!r:.100}")
        is_text = values.dtype == object and all(isinstance(value, str | bytes) for value in values.flat)
        dtype = TEXT if is_text else values.dtype
    dtype = TEXT if dtype.kind in "SU" else dtype.newbyteorder("=")
    if dtype not in (TEXT, *NUMBERS):
        raise TypeError(
            f"{op}(): {argument} must be np.int32, np.int64, np.float32, np.float64, bytes or a value of one of these, "
            f"got {given!r:.100}"
        )
    default = next(iter(values.ravel()), None)
    if isinstance(default, str | bytes):
        default = default.encode() if isinstance(default, str) else bytes(default)
    return CsvColumn(dtype, default)


def _indices(op: str, argument: str, given: Any) -> tuple[int, ...]:
    """Return strictly ascending indices. An empty list means the same as None, as in tf.data."""
    if given is None:
        return ()
    values = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"{op}(): {argument} must be a list of column indices, got {given!r:.100}")
    for value in values:
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
            raise TypeError(f"{op}(): {argument} must hold ints, got {value!r} of type {type(value).__name__}")
    indices = tuple(map(int, values))
    if any(index < 0 for index in indices):
        raise ValueError(f"{op}(): {argument} must hold indices of at least 0, got {list(indices)}")
    if any(a >= b for a, b in pairwise(indices)):
        raise ValueError(f"{op}(): {argument} must be strictly ascending, got {list(indices)}")
    return indices


def _as_bytes(op: str, argument: str, given: Any) -> bytes:
    if not isinstance(given, str | bytes):
        raise TypeError(f"{op}(): {argument} must be text, got {given!r:.100} of type {type(given).__name__}")
    return given.encode() if isinstance(given, str) else given
