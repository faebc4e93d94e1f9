"""Frames of pandas as NumPy arrays by name.

Where to read next:

    values.py    the values of a column, by its dtype
    objects.py   those of a column of Python objects
    refusals.py  what is said of those that can't be given
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dataset.adapters.pandas.refusals import OP, shown
from dataset.adapters.pandas.values import ArrowColumns, ColumnReader

__all__ = ["columns_of"]


def columns_of(
    data: Any,
    columns: Sequence[str] | None,
    *,
    index: bool,
    fill_null: Mapping[str, Any],
    arrow_columns: ArrowColumns,
) -> Any:
    """The arrays of a frame by name; of a Series, its array.

    Args:
        data: the frame, or a Series.
        columns: names of those to take; None for all.
        index: whether the index counts as columns, before the others.
        fill_null: what stands for a null, by column.
        arrow_columns: for columns that pandas keeps in Arrow's memory.

    Raises:
        TypeError: if ``data`` is neither a frame nor a Series, or a name is no text.
        ValueError: if there is no such column, or two of a name, or a value that does not go with the others.
        SpecError: if no component stands for what a column holds.
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
        raise ValueError(f"{OP}(): a Series has one column, so there is nothing to choose, got columns={list(columns)}")
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
            f"{OP}(): with index=True the index is a column, too: {error}; give it another name with df.rename_axis()"
        ) from None


def _chosen(frame: Any, columns: Sequence[str] | None) -> list[str]:
    there = frame.columns
    if isinstance(there, pd.MultiIndex):
        raise TypeError(
            f"{OP}(): the columns have {there.nlevels} levels, but keys of elements are names; make one level of them: "
            "df.columns = df.columns.map('.'.join)"
        )
    for name in there:
        if not isinstance(name, str):
            raise TypeError(
                f"{OP}(): names of columns must be text, got {name!r} of type {type(name).__name__}; name them: "
                "df.columns = df.columns.astype(str)"
            )
    if len(there) == 0:
        raise ValueError(f"{OP}(): an element needs at least one column, the frame has none")
    names = list(there) if columns is None else list(columns)
    for name in names:
        if name not in there:
            raise ValueError(f"{OP}(): there is no column {name!r}; there are {list(there)}")
    doubled = set(there[there.duplicated()])
    if both := [name for name in names if name in doubled]:
        raise ValueError(f"{OP}(): the frame has several columns {both[0]!r}; a dict can hold one")
    return names
