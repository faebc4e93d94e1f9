"""Datasets of Hugging Face's ``datasets``, as plans.

Where to read next:

    columns.py   which columns are asked for, what they become, and which of them have to be decoded
    rows.py      datasets with random access, of which rows are decoded or transformed in Python
    stream.py    datasets that can only be iterated over

Columns that need neither stay in their Arrow table, and are not this package's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import datasets
import numpy as np

from dataset.adapters.huggingface.columns import OP, TableColumns
from dataset.adapters.huggingface.rows import DecodedRows, TransformedRows
from dataset.adapters.huggingface.stream import RowStream
from dataset.dataset import Dataset

__all__ = ["Makers", "plan_of"]

_PLAIN_FORMATS = (None, "python", "arrow", "pandas", "polars")


class Makers(NamedTuple):
    """What makes the nodes of a plan.

    Attributes:
        table: of a table's rows: given its holder, the schema, columns, what stands for nulls, the order, an identity.
        rows: of what an object with ``__getitem__`` gives.
        stream: of what a function's iterator gives.
        row_reader: given a schema, columns, and what stands for nulls, makes an element of a table of one row.
    """

    table: Callable[..., Any]
    rows: Callable[[Any], Any]
    stream: Callable[[Any], Any]
    row_reader: Callable[..., Callable[[Any], dict[str, Any]]]


def plan_of(hf: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any], make: Makers) -> Any:
    """The plan for a dataset of Hugging Face.

    Raises:
        TypeError: if it is none.
        ValueError: if there is no such column.
        SpecError: if no component stands for what a column holds.
    """
    if isinstance(hf, datasets.IterableDataset):
        return _stream(hf, columns, fill_null, make)
    if not isinstance(hf, datasets.Dataset):
        raise TypeError(_no_dataset(hf))
    if _makes_values(hf.format):
        if columns is not None or fill_null:
            raise ValueError(
                f"{OP}(): hf has the format {hf.format['type']!r}, whose values come from Python, so neither columns "
                "nor fill_null can be given; choose and fill them there, or in a map()"
            )
        return make.rows(TransformedRows(hf))
    chosen = TableColumns(hf.features, _format_columns(hf) if columns is None else columns)
    fills = chosen.fills(fill_null)
    if not chosen.decoded:
        return _table(hf, chosen, fills, make)
    plain: Dataset[Any] | None = Dataset(_table(hf, chosen, fills, make)) if chosen.plain else None
    return make.rows(DecodedRows(chosen.names, plain, hf.with_format(None, columns=chosen.decoded)))


def _table(hf: Any, chosen: TableColumns, fills: Mapping[str, Any], make: Makers) -> Any:
    """The rows of the plain columns, in the order that ``shuffle``, ``select`` and ``filter`` of hf gave them."""
    order = None
    if hf._indices is not None:  # noqa: SLF001  # there is no other way to it
        order = hf._indices.column(0).to_numpy().astype(np.int64)  # noqa: SLF001
    schema = chosen.schema(hf.data.table.schema)
    return make.table(hf.data, schema, chosen.plain, fills, order, hf._fingerprint)  # noqa: SLF001


def _stream(hf: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any], make: Makers) -> Any:
    if hf.features is None:
        if columns is not None or fill_null:
            raise ValueError(
                f"{OP}(): the stream does not say which columns it has, so neither columns nor fill_null can be given; "
                "say it with hf.cast(features)"
            )
        return make.stream(RowStream(hf))
    chosen = TableColumns(hf.features, columns)
    schema, fills = chosen.schema(hf.features.arrow_schema), chosen.fills(fill_null)
    reader = make.row_reader(schema, chosen.plain, fills) if chosen.plain else None
    return make.stream(RowStream(hf, chosen, reader))


def _makes_values(form: Mapping[str, Any]) -> bool:
    """Whether the format is a user's function, or one whose arguments may change values."""
    return form["type"] == "custom" or (bool(form["format_kwargs"]) and form["type"] not in _PLAIN_FORMATS)


def _format_columns(hf: Any) -> list[str] | None:
    """The columns that ``set_format`` left; None where it left all."""
    form = hf.format
    return None if form["output_all_columns"] else form["columns"]


def _no_dataset(hf: Any) -> str:
    if isinstance(hf, datasets.DatasetDict | datasets.IterableDatasetDict):
        return f"{OP}(): hf has several splits, {list(hf)}; choose one of them, as in hf[{next(iter(hf), 'train')!r}]"
    kind = type(hf).__name__
    return f"{OP}(): hf must be a datasets.Dataset or datasets.IterableDataset, got {hf!r:.100} of type {kind}"
