"""pandas frames as dicts of NumPy arrays.

Where to read next:

    pandas_values.py    the values of a column, by its dtype
    object_columns.py   the values of a column of Python objects
    conversion_errors.py  errors for columns and rows that cannot be converted
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dataset.adapters.pandas.conversion_errors import OP, shown
from dataset.adapters.pandas.pandas_values import ArrowColumns, ColumnReader

__all__ = ["columns_of"]


def columns_of(
    data: Any,
    columns: Sequence[str] | None,
    *,
    index: bool,
    fill_null: Mapping[str, Any],
    arrow_columns: ArrowColumns,
) -> Any:
    """Return the arrays of a frame by name, or the array of a Series.

    Args:
        data: the frame, or a Series.
        columns: the names of the columns to read; None for all.
        index: whether the index counts as columns, before the others.
        fill_null: the value that replaces nulls, by column.
        arrow_columns: converts columns that pandas stores in Arrow memory.

    Raises:
        TypeError: if ``data`` is neither a frame nor a Series, or a name is not a string.
        ValueError: if a column does not exist or is not unique, or the values of a column are of different kinds.
        SpecError: if the values of a column cannot be represented as a component.
    """
    if isinstance(data, pd.Series) and not index:
        return _values_of_series(data, columns, fill_null, arrow_columns)
    frame = _frame(data, index=index)
    names = _chosen(frame, columns)
    for name in fill_null:
        if name not in names:
            raise ValueError(f"{OP}(): fill_null names {name!r}, but the columns are {names}")
    return {name: ColumnReader(name, fill_null.get(name), arrow_columns).values(frame[name]) for name in names}


def _values_of_series(
    series: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any], arrow_columns: ArrowColumns
) -> Any:
    if columns is not None:
        raise ValueError(f"{OP}(): a Series has only one column, so columns cannot be given, got {list(columns)}")
    name = series.name if isinstance(series.name, str) else "values"
    if set(fill_null) - {name}:
        raise ValueError(f"{OP}(): fill_null names {list(fill_null)}, but the Series is called {name!r}")
    return ColumnReader(name, fill_null.get(name), arrow_columns).values(series)


def _frame(data: Any, *, index: bool) -> Any:
    if not isinstance(data, pd.DataFrame | pd.Series):
        raise TypeError(f"{OP}(): df must be a pandas DataFrame or Series, got {shown(data)}")
    if not index:
        return data
    try:
        return data.reset_index()
    except ValueError as error:
        raise ValueError(
            f"{OP}(): with index=True the index becomes a column: {error}; give it another name with df.rename_axis()"
        ) from None


def _chosen(frame: Any, columns: Sequence[str] | None) -> list[str]:
    there = frame.columns
    if isinstance(there, pd.MultiIndex):
        raise TypeError(
            f"{OP}(): the columns have {there.nlevels} levels, but the keys of an element are strings; join the "
            "levels: df.columns = df.columns.map('.'.join)"
        )
    for name in there:
        if not isinstance(name, str):
            raise TypeError(
                f"{OP}(): column names must be strings, got {name!r} of type {type(name).__name__}; convert them: "
                "df.columns = df.columns.astype(str)"
            )
    if len(there) == 0:
        raise ValueError(f"{OP}(): the frame has no columns; an element needs at least one column")
    names = list(there) if columns is None else list(columns)
    for name in names:
        if name not in there:
            raise ValueError(f"{OP}(): the frame has no column {name!r}; the columns are {list(there)}")
    doubled = set(there[there.duplicated()])
    if both := [name for name in names if name in doubled]:
        raise ValueError(f"{OP}(): the frame has several columns {both[0]!r}; a dict can hold only one")
    return names
