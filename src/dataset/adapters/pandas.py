"""pandas frames as columns of elements: NumPy's numbers and times as they are, all other columns through Arrow."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dataset.errors import SpecError
from dataset.plan.values import RaggedTensor, splits_of_lengths

OP = "from_pandas"
Convert = Callable[..., Any]


def columns_of(
    data: Any, columns: Sequence[str] | None, *, index: bool, fill_null: Mapping[str, Any], arrow_columns: Convert
) -> Any:
    """Return the columns of a frame by name, or the values of a Series.

    Args:
        data: the frame, or a Series.
        columns: the names of the columns to read; None for all.
        index: whether the index counts as columns, before the others.
        fill_null: the value that replaces nulls, by column.
        arrow_columns: converts an Arrow table, given None and the values that replace nulls.

    Raises:
        TypeError: if ``data`` is neither a frame nor a Series, or a name is not a string.
        ValueError: if a column does not exist or is not unique, or has a null that its dtype cannot represent.
        SpecError: if the values of a column cannot be represented as a component.
    """
    if not isinstance(data, pd.DataFrame | pd.Series):
        kind = type(data).__name__
        raise TypeError(f"{OP}(): df must be a pandas DataFrame or Series, got {data!r:.100} of type {kind}")
    is_bare = isinstance(data, pd.Series) and not index
    if is_bare:
        if columns is not None:
            raise ValueError(f"{OP}(): a Series has only one column, so columns cannot be given, got {list(columns)}")
        data = data.to_frame(data.name if isinstance(data.name, str) else "values")
    frame = _with_index(data) if index else data
    names = _chosen(list(frame.columns), columns)
    filled = {name: name if name in names else name.partition(".")[0] for name in fill_null}  # "a.b" is in a struct
    if unknown := [name for name, column in filled.items() if column not in names]:
        raise ValueError(f"{OP}(): fill_null names {unknown[0]!r}, but the columns are {names}")
    made = {name: _column(name, frame[name], name in filled.values()) for name in names}
    table = {name: values for name, values in made.items() if isinstance(values, pa.Array | pa.ChunkedArray)}
    if table or not names:
        fills = {name: fill_null[name] for name, column in filled.items() if column in table}
        made |= arrow_columns(pa.table(table), None, fills)
    return made[names[0]] if is_bare else made


def _with_index(data: Any) -> Any:
    try:
        return data.reset_index()
    except ValueError as error:
        why = f"{OP}(): with index=True the index becomes a column: {error}; give it another name with df.rename_axis()"
        raise ValueError(why) from None


def _chosen(there: list[Any], columns: Sequence[str] | None) -> list[str]:
    for name in there:
        if not isinstance(name, str):
            raise TypeError(
                f"{OP}(): column names must be strings, got {name!r} of type {type(name).__name__}; convert them: "
                "df.columns = df.columns.astype(str), or join several levels: df.columns = df.columns.map('.'.join)"
            )
    names = there if columns is None else list(columns)
    for name in names:
        if name not in there:
            raise ValueError(f"{OP}(): the frame has no column {name!r}; the columns are {there}")
        if there.count(name) > 1:
            raise ValueError(f"{OP}(): the frame has several columns {name!r}; a dict can hold only one")
    return names


def _column(name: str, series: Any, is_filled: bool) -> Any:
    """Return a column as an Arrow array; or as a component, if that needs no conversion or Arrow has no type for it.

    ``is_filled`` is whether a value replaces nulls, which only Arrow arrays support.
    """
    values, error = _attempt(series, is_filled)
    if error is None:
        return values
    prefixes = range(1, len(series))
    row = bisect.bisect_left(prefixes, True, key=lambda n: _attempt(series.iloc[:n], is_filled)[1] is not None)
    value = next(iter(series.iloc[row:]), None)  # None if there are no rows
    raise SpecError(
        f"{OP}(): row {row}: column {name!r} holds {value!r:.100} of type {type(value).__name__}: {error}; all rows of "
        "a column must be of one kind, which NumPy or Arrow can represent. Leave it out with columns=[...]"
    ) from error


def _attempt(series: Any, is_filled: bool) -> tuple[Any, Exception | None]:
    try:
        return _converted(series, is_filled), None
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        return None, error


def _converted(series: Any, is_filled: bool) -> Any:
    if series.dtype == object:
        series = series.infer_objects()
    if isinstance(series.dtype, pd.SparseDtype):
        series = series.sparse.to_dense()
    if isinstance(series.dtype, pd.CategoricalDtype) and series.empty:
        series = series.astype(series.cat.categories.dtype)
    if series.dtype == object:
        return _objects(series.to_numpy(), series.isna().to_numpy())
    if isinstance(series.dtype, np.dtype) and not is_filled:
        return series.to_numpy()
    array = pa.array(series)
    if "extension<pandas." in str(array.type):
        raise TypeError(
            f"NumPy has no dtype for {series.dtype}; series.dt.to_timestamp() returns the starts of periods, and "
            "series.array.left and series.array.right the bounds of intervals"
        )
    return array


def _objects(cells: Any, missing: Any) -> Any:
    """Convert Python objects. Arrow's lists have one dimension, so NumPy arrays are concatenated here."""
    arrays = cells[~missing].tolist()
    if set(map(type, arrays)) != {np.ndarray} or any(array.dtype.kind in "SUO" for array in arrays):
        return _fixed(pa.array(cells, mask=missing, from_pandas=False))  # NaN in a list is not a null
    if missing.any():
        raise ValueError("columns of arrays must not contain nulls; remove such rows with df.dropna()")
    dtype = np.result_type(*({array.dtype for array in arrays if array.size} or {arrays[0].dtype}))
    if dtype.kind == "f" and all(array.dtype.kind in "iu" for array in arrays):
        raise ValueError(f"NumPy has no integer dtype for both {' and '.join(sorted({str(a.dtype) for a in arrays}))}")
    flat, lengths = np.concatenate(arrays, dtype=dtype, casting="unsafe"), list(map(len, arrays))
    if len(set(lengths)) == 1:
        return flat.reshape(len(arrays), *arrays[0].shape)
    return RaggedTensor(flat, splits_of_lengths(lengths, np.int64))


def _fixed(array: Any) -> Any:
    """Return lists of one length as lists of a fixed size, at every level of nested lists."""
    if array.type == pa.null() and not len(array):
        return pa.array([], pa.string())  # text is the most likely type of an empty column
    if not isinstance(array, pa.ListArray):
        return array
    values, sizes = _fixed(array.flatten()), array.value_lengths().unique().to_pylist()
    if len(sizes) == 1 and sizes[0] and not isinstance(values, pa.ListArray):
        return pa.FixedSizeListArray.from_arrays(values, sizes[0])
    return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
