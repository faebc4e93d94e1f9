"""Plans for datasets of Hugging Face's ``datasets`` library.

Where to read next:

    decoded_columns.py   which columns are requested, their types, and which of them have to be decoded
    decoded_rows.py      datasets with random access whose rows are decoded or transformed in Python
    stream.py            datasets that can only be iterated over

Columns that are neither decoded nor transformed are read directly from their Arrow table, outside of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import datasets
import numpy as np

from dataset.adapters.huggingface.decoded_columns import OP, TableColumns
from dataset.adapters.huggingface.decoded_rows import DecodedRows, TransformedRows
from dataset.adapters.huggingface.stream import RowStream
from dataset.dataset import Dataset

__all__ = ["Makers", "plan_of"]

_PLAIN_FORMATS = (None, "python", "arrow", "pandas", "polars")


class Makers(NamedTuple):
    """Factories for the nodes of a plan.

    Attributes:
        table: makes a node for the rows of a table, from the object that holds the table, the schema, the columns, the
            values that replace nulls, the order of the rows and a fingerprint.
        rows: makes a node for an object with ``__getitem__``.
        stream: makes a node for a function that returns an iterator.
        row_reader: from a schema, columns and the values that replace nulls, makes a function that converts a table
            of one row into an element.
    """

    table: Callable[..., Any]
    rows: Callable[[Any], Any]
    stream: Callable[[Any], Any]
    row_reader: Callable[..., Callable[[Any], dict[str, Any]]]


def plan_of(hf: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any], make: Makers) -> Any:
    """Return the plan for a Hugging Face dataset.

    Raises:
        TypeError: if ``hf`` is not a dataset of Hugging Face.
        ValueError: if a column does not exist.
        SpecError: if the values of a column cannot be represented as a component.
    """
    if isinstance(hf, datasets.IterableDataset):
        return _stream(hf, columns, fill_null, make)
    if not isinstance(hf, datasets.Dataset):
        raise TypeError(_no_dataset(hf))
    if _makes_values(hf.format):
        if columns is not None or fill_null:
            raise ValueError(
                f"{OP}(): hf has the format {hf.format['type']!r}, which computes values in Python, so columns and "
                "fill_null cannot be given; select columns and replace nulls in the format, or in a map()"
            )
        return make.rows(TransformedRows(hf))
    chosen = TableColumns(hf.features, _format_columns(hf) if columns is None else columns)
    fills = chosen.fills(fill_null)
    if not chosen.decoded:
        return _table(hf, chosen, fills, make)
    plain: Dataset[Any] | None = Dataset(_table(hf, chosen, fills, make)) if chosen.plain else None
    return make.rows(DecodedRows(chosen.names, plain, hf.with_format(None, columns=chosen.decoded)))


def _table(hf: Any, chosen: TableColumns, fills: Mapping[str, Any], make: Makers) -> Any:
    """Make a node for the plain columns, with the rows in the order set by hf's ``shuffle``, ``select``, ``filter``."""
    order = None
    if hf._indices is not None:  # noqa: SLF001  # not available publicly
        order = hf._indices.column(0).to_numpy().astype(np.int64)  # noqa: SLF001
    schema = chosen.schema(hf.data.table.schema)
    return make.table(hf.data, schema, chosen.plain, fills, order, hf._fingerprint)  # noqa: SLF001


def _stream(hf: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any], make: Makers) -> Any:
    if hf.features is None:
        if columns is not None or fill_null:
            raise ValueError(
                f"{OP}(): the columns of the stream are not known, so columns and fill_null cannot be given; "
                "declare the columns with hf.cast(features)"
            )
        return make.stream(RowStream(hf))
    chosen = TableColumns(hf.features, columns)
    schema, fills = chosen.schema(hf.features.arrow_schema), chosen.fills(fill_null)
    reader = make.row_reader(schema, chosen.plain, fills) if chosen.plain else None
    return make.stream(RowStream(hf, chosen, reader))


def _makes_values(form: Mapping[str, Any]) -> bool:
    """Return whether the format is a user function, or a format whose arguments may change values."""
    return form["type"] == "custom" or (bool(form["format_kwargs"]) and form["type"] not in _PLAIN_FORMATS)


def _format_columns(hf: Any) -> list[str] | None:
    """Return the columns that ``set_format`` selected; None if it selected all."""
    form = hf.format
    return None if form["output_all_columns"] else form["columns"]


def _no_dataset(hf: Any) -> str:
    if isinstance(hf, datasets.DatasetDict | datasets.IterableDatasetDict):
        return f"{OP}(): hf has several splits, {list(hf)}; select one of them, as in hf[{next(iter(hf), 'train')!r}]"
    kind = type(hf).__name__
    return f"{OP}(): hf must be a datasets.Dataset or datasets.IterableDataset, got {hf!r:.100} of type {kind}"
