"""``decode_csv``: converts records in memory to columns. reader.py reads files."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.io.csv.convert import FieldError, convert_field, convert_rows
from dataset.io.csv.cut import PADDING, CsvRows, cut_rows, joined_rows
from dataset.io.csv.layout import TEXT, CsvLayout, layout_of
from dataset.io.csv.row_parser import RowError, scan_record

__all__ = ["decode_csv"]

Array: TypeAlias = npt.NDArray[Any]

_FEW = 32  # up to this many records are faster to convert one by one than as columns
_IMMUTABLE = (type, np.dtype, np.generic, str, bytes, int, float, type(None))


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: str | None = None,
) -> list[Any]:
    """Convert CSV records to one array per column.

    A record is one row without its line end; a quoted field may contain line ends. The function accepts a whole chunk
    of records, so ``map(functools.partial(io.decode_csv, record_defaults=...))`` calls it with many records at once.

    Args:
        records: a ``bytes`` or str, or an array or list of them, of any shape.
        record_defaults: a dtype or a default value for each column, as in ``CsvDataset``.
        field_delim: the field delimiter; one byte.
        use_quote_delim: whether quotation marks have a special meaning.
        na_value: a text that counts as empty, in addition to the empty field.
        select_cols: the indices of the columns to read, ascending. Default: all.
        name: a label, without effect.

    Returns:
        For each column an array of the shape of ``records``; for one record, scalars. Text is ``bytes``.

    Raises:
        ParseError: a record has the wrong number of fields, a misplaced quotation mark, an empty required field or a
            field that is not a number. The message names the first one.
        ValueError: an argument has an invalid value.
        TypeError: an argument has the wrong type, or the records are not text.

    >>> decode_csv(["1,one", ",two"], [np.int64(7), bytes])
    [array([1, 7]), array([b'one', b'two'], dtype=object)]
    >>> decode_csv('0.5,"a, b"', [np.float32, bytes])
    [np.float32(0.5), b'a, b']
    """
    del name
    layout = _layout(record_defaults, (field_delim, use_quote_delim, na_value), select_cols)
    texts, shape = _texts(records)
    columns = _few(texts, layout) if len(texts) <= _FEW else _many(texts, layout)
    if not shape:
        return [column[0] for column in columns]
    return [_array(values, column.dtype).reshape(shape) for values, column in zip(columns, layout.columns, strict=True)]


# Operators read this attribute: they may call this function once per chunk instead of once per element.
decode_csv.__dataset_vectorized__ = True  # type: ignore[attr-defined]


_recent: tuple[list[Any], CsvLayout] | None = None
"""The arguments of the last call and their layout: a function in ``map`` passes the same arguments on every call."""


def _layout(record_defaults: Any, dialect: tuple[Any, Any, Any], select_cols: Any) -> CsvLayout:
    global _recent  # noqa: PLW0603  # replaced as a whole, so threads see one or the other
    select = select_cols.tolist() if isinstance(select_cols, np.ndarray) else select_cols
    given = [*record_defaults] if isinstance(record_defaults, list | tuple) else [record_defaults]
    given += [*dialect, *select] if isinstance(select, list | tuple) else [*dialect, select]
    recent = _recent
    if recent is not None and len(recent[0]) == len(given) and all(map(operator.is_, recent[0], given)):
        return recent[1]
    layout = layout_of("decode_csv", record_defaults, *dialect, select_cols)
    if select_cols is not None and not layout.select:
        raise ValueError("decode_csv(): select_cols must name at least one column, got none")
    # Identity of the arguments implies equality only if they are immutable.
    if isinstance(record_defaults, list | tuple) and all(isinstance(value, _IMMUTABLE) for value in given):
        _recent = given, layout
    return layout


def _texts(records: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """Return the records as a flat list, and their shape."""
    if isinstance(records, bytes):
        return [records], ()
    array = np.asarray(records, object)
    texts = [text.encode() if isinstance(text, str) else text for text in array.ravel().tolist()]
    for index, text in enumerate(texts):
        if not isinstance(text, bytes):
            raise TypeError(
                f"decode_csv(): records must be bytes or str, got {text!r:.60} of type {type(text).__name__} in record "
                f"{index}"
            )
    return texts, array.shape


def _array(values: Any, dtype: np.dtype[Any]) -> Array:
    """Return a column as an array."""
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, object if dtype == TEXT else dtype, len(values))


def _few(texts: list[bytes], layout: CsvLayout) -> list[list[Any]]:
    """Return the columns, converted field by field."""
    columns: list[list[Any]] = [[] for _ in layout.columns]
    for index, text in enumerate(texts):
        fields = _fields(index, text, texts, layout)
        for number, (field, column) in enumerate(zip(fields, layout.columns, strict=True)):
            try:
                columns[number].append(convert_field(field, column, layout.na_value))
            except FieldError as error:
                raise _error(index, f", {layout.column_name(number)}", str(error), texts) from None
    return columns


def _many(texts: list[bytes], layout: CsvLayout) -> list[Array]:
    """Return the columns, each converted at once."""
    columns, problems = convert_rows(_rows_of(texts, layout), layout)
    if problems:
        problem = problems[0]
        column = "" if problem.column is None else f", {layout.column_name(problem.column)}"
        raise _error(problem.row, column, problem.words, texts)
    return columns


def _rows_of(texts: list[bytes], layout: CsvLayout) -> CsvRows:
    """Return the records as rows; split at once if each record would be one row in a file as well."""
    if b"" not in texts:
        joined = b"\n".join(texts)
        # The grammar of files differs from that of records if there are line ends. On errors, scan_record decides.
        if joined.count(b"\n") == len(texts) - 1 and b"\r" not in joined:
            rows = cut_rows(PADDING + joined + b"\n", layout)
            if len(rows) == len(texts) and not rows.problems:
                return rows
    return joined_rows([_fields(index, text, texts, layout) for index, text in enumerate(texts)], len(layout.columns))


def _fields(index: int, text: bytes, texts: list[bytes], layout: CsvLayout) -> list[bytes]:
    """Return the requested fields of a record."""
    try:
        fields = scan_record(text, layout)
    except RowError as error:
        raise _error(index, f", column {error.field}", error.words, texts) from None
    if not layout.fits(len(fields)):
        words = f"the record has {len(fields)} field{'s' if len(fields) != 1 else ''}, expected {layout.wanted()}"
        raise _error(index, "", words, texts)
    return [fields[column] for column in layout.indices]


def _error(index: int, column: str, words: str, texts: list[bytes]) -> ParseError:
    return ParseError(f"decode_csv(): record {index}{column}: {words}; the record is {texts[index]!r:.100}")
