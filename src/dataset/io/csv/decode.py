"""decode_csv: records that are at hand already, into columns. Files are reader.py's."""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.errors import ParseError
from dataset.io.csv.convert import FieldError, convert_field, convert_rows
from dataset.io.csv.cut import PADDING, CsvRows, cut_rows, joined_rows
from dataset.io.csv.layout import TEXT, CsvLayout, layout_of
from dataset.io.csv.scan import RowError, scan_record

__all__ = ["decode_csv"]

Array: TypeAlias = npt.NDArray[Any]

_FEW = 32  # records, which take less time one by one than as columns
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
    """Take CSV records apart, into one array for each column.

    A record is one row, without its line end; a quoted field may hold line ends. The function takes a whole chunk at
    once, so ``map(functools.partial(io.decode_csv, record_defaults=...))`` calls it with many records.

    Args:
        records: a ``bytes`` or str, or an array or list of them, of any shape.
        record_defaults: as of ``CsvDataset``: a dtype or a default value for each column.
        field_delim: what separates fields; one byte.
        use_quote_delim: whether quotation marks mean anything.
        na_value: a text that counts as empty, beside the empty one.
        select_cols: the indices of the columns to read, ascending; default, all.
        name: a label, without effect.

    Returns:
        For each column an array of the shape of ``records``; for one record, scalars. Text is ``bytes``.

    Raises:
        ParseError: a record has another number of fields, a misplaced quotation mark, a required field that is empty,
            or a field that is no number. The first of them is named.
        ValueError: an argument can't be.
        TypeError: one is of the wrong type, or the records are no text.

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


# Read by the operators: this function may be called once with the column of a chunk instead of once per element.
decode_csv.__dataset_vectorized__ = True  # type: ignore[attr-defined]


_recent: tuple[list[Any], CsvLayout] | None = None
"""The arguments of the last call, and what they came to: a function in ``map`` passes the same again and again."""


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
    # The same objects mean the same only as long as nobody can change them.
    if isinstance(record_defaults, list | tuple) and all(isinstance(value, _IMMUTABLE) for value in given):
        _recent = given, layout
    return layout


def _texts(records: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """The records in a list, and the shape that they stood in."""
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
    """A column as an array."""
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, object if dtype == TEXT else dtype, len(values))


def _few(texts: list[bytes], layout: CsvLayout) -> list[list[Any]]:
    """The columns, field by field."""
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
    """The columns, each at once."""
    columns, problems = convert_rows(_rows_of(texts, layout), layout)
    if problems:
        problem = problems[0]
        column = "" if problem.column is None else f", {layout.column_name(problem.column)}"
        raise _error(problem.row, column, problem.words, texts)
    return columns


def _rows_of(texts: list[bytes], layout: CsvLayout) -> CsvRows:
    """The records as rows; all at once where each of them is one row in a file, too."""
    if b"" not in texts:
        joined = b"\n".join(texts)
        # A file's grammar differs where there are line ends; and where it finds fault, the record's is asked.
        if joined.count(b"\n") == len(texts) - 1 and b"\r" not in joined:
            rows = cut_rows(PADDING + joined + b"\n", layout)
            if len(rows) == len(texts) and not rows.problems:
                return rows
    return joined_rows([_fields(index, text, texts, layout) for index, text in enumerate(texts)], len(layout.columns))


def _fields(index: int, text: bytes, texts: list[bytes], layout: CsvLayout) -> list[bytes]:
    """The fields of a record that are asked for."""
    try:
        fields = scan_record(text, layout)
    except RowError as error:
        raise _error(index, f", column {error.field}", error.words, texts) from None
    if not layout.fits(len(fields)):
        words = f"the record has {len(fields)} field{'s' if len(fields) != 1 else ''}; {layout.wanted()} are wanted"
        raise _error(index, "", words, texts)
    return [fields[column] for column in layout.indices]


def _error(index: int, column: str, words: str, texts: list[bytes]) -> ParseError:
    return ParseError(f"decode_csv(): record {index}{column}: {words}; the record is {texts[index]!r:.100}")
