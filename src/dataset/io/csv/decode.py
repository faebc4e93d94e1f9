"""``decode_csv``: converts records in memory to columns. reader.py reads files."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from dataset.errors import ParseError
from dataset.io.csv.layout import TEXT, Array, CsvLayout, as_bytes, layout_of
from dataset.io.csv.row_parser import RowError, scan_record, values_of
from dataset.io.csv.rows import read_rows

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
    columns = (_many(texts, layout) if len(texts) > _FEW else None) or _one_by_one(texts, layout)
    return [column.reshape(shape) if shape else column[0] for column in columns]


# Operators read this attribute: they may call this function once per chunk instead of once per element.
decode_csv.__dataset_vectorized__ = True  # type: ignore[attr-defined]


_recent: tuple[list[Any], Any] = ([], None)
"""The arguments of the last call and their layout: a function in ``map`` passes the same arguments on every call."""


def _layout(record_defaults: Any, dialect: tuple[Any, Any, Any], select_cols: Any) -> CsvLayout:
    global _recent  # noqa: PLW0603  # replaced as a whole, so threads see one or the other
    given = [*dialect]
    for argument in (record_defaults, select_cols):
        given += [*argument, None] if isinstance(argument, list | tuple) else [argument]
    recent, layout = _recent
    if len(recent) == len(given) and all(map(operator.is_, recent, given)):
        return layout  # type: ignore[no-any-return]
    layout = layout_of("decode_csv", record_defaults, *dialect, select_cols)
    if select_cols is not None and not len(select_cols):
        raise ValueError("decode_csv(): select_cols must name at least one column, got none")
    if all(isinstance(value, _IMMUTABLE) for value in given):  # identity implies equality
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
            as_bytes("decode_csv", f"record {index}", text)  # raises
    return texts, array.shape


def _one_by_one(texts: list[bytes], layout: CsvLayout) -> list[Array]:
    """Return the columns of records that are read one at a time."""
    rows = []
    for index, text in enumerate(texts):
        values = values_of(scan_record(text, layout), layout, "record")
        if isinstance(values, RowError):
            place = f"record {index}{layout.place(values.field)}"
            raise ParseError(f"decode_csv(): {place}: {values.words}; the record is {text!r:.100}")
        rows.append(values)
    dtypes = [object if dtype == TEXT else dtype for dtype, _ in layout.columns]
    columns = zip(*rows, strict=True) if rows else [()] * len(dtypes)
    return list(map(np.array, columns, dtypes))


def _many(texts: list[bytes], layout: CsvLayout) -> list[Array] | None:
    """Return the columns, read as the rows of a file; None if a record is not one row of a file without errors."""
    parts = []
    for first in range(0, len(texts), layout.rows_max):
        part = texts[first : first + layout.rows_max]
        block = b"\n".join(part) + b"\n"
        rows = read_rows(block, 0, layout)
        # The grammar of files differs from that of records if there are line ends or empty records.
        is_other = block.count(b"\n") > len(part) or b"\r" in block or b"" in part
        if is_other or rows.errors or len(rows.starts) <= len(part):
            return None
        parts.append(rows.columns)
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]
