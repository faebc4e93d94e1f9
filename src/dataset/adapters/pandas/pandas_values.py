"""The values of one pandas column as an array or a RaggedTensor, by its dtype.

Columns with a NumPy dtype are not copied. A null, which pandas represents as NaN, None, NaT or NA, becomes NaN in
floats and NaT in times. Other dtypes have no value for a null, so ``fill_null`` has to provide one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dataset.adapters.pandas.conversion_errors import OP, refuse, refuse_row
from dataset.adapters.pandas.object_columns import TEXT, as_bytes, values_of_objects
from dataset.extras import load_extra
from dataset.plan.values import RaggedTensor

__all__ = ["ArrowColumns", "ColumnReader"]

Array = npt.NDArray[Any]
ArrowColumns = Callable[[Any, None, Mapping[str, Any]], dict[str, Any]]
"""Converts all columns of a table to arrays, given the value that replaces nulls in each column."""

_ANOTHER_WAY = {
    pd.PeriodDtype: "series.dt.to_timestamp() returns the start of each period",
    pd.IntervalDtype: "convert it to two columns, series.array.left and series.array.right",
}


class ColumnReader:
    """Converter for the values of one column.

    Args:
        name: the name of the column, for messages.
        fill: the value that replaces nulls; None if there is none.
        arrow_columns: converts columns that pandas stores in Arrow memory.
    """

    def __init__(self, name: str, fill: Any, arrow_columns: ArrowColumns) -> None:
        self.name = name
        self.fill = fill
        self._arrow_columns = arrow_columns

    def values(self, series: Any) -> Any:
        """Return the values of all rows: an array, a RaggedTensor, or a dict of those for a struct."""
        dtype = series.dtype
        if isinstance(dtype, pd.ArrowDtype) or str(getattr(dtype, "storage", "")).startswith("pyarrow"):
            return self._arrow(series)
        if isinstance(dtype, pd.CategoricalDtype):
            return self._categories(series)
        if isinstance(dtype, pd.SparseDtype):
            return self.values(series.sparse.to_dense())
        if isinstance(dtype, pd.DatetimeTZDtype):  # NumPy has no time zones; pandas stores the times in UTC
            return self._filled(series.to_numpy(dtype=f"M8[{dtype.unit}]"), series)
        if isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype):
            refuse(self.name, f"NumPy has no dtype for {dtype}; {_ANOTHER_WAY[type(dtype)]}")
        if isinstance(dtype, np.dtype) and dtype.kind != "O":
            return self._filled(series.to_numpy(), series)
        if hasattr(dtype, "numpy_dtype"):
            return self._masked(series, dtype.numpy_dtype)
        return self._objects(series)

    def _arrow(self, series: Any) -> Any:
        pa = load_extra("pyarrow", "parquet", f"{OP}() of columns in Arrow's memory needs")
        fills = {} if self.fill is None else {self.name: self.fill}
        return self._arrow_columns(pa.table({self.name: pa.array(series)}), None, fills)[self.name]

    def _categories(self, series: Any) -> Array:
        """Return the values of a categorical column; each category is converted once."""
        codes = series.cat.codes.to_numpy()
        categories = self.values(pd.Series(series.cat.categories))
        if not isinstance(categories, np.ndarray):
            refuse(self.name, "its categories are not numbers, times or text")
        if not len(categories):  # all rows are null; take() needs a category to clip to
            categories = np.array([b""] if categories.dtype.kind == "O" else [0], categories.dtype)
        return self._filled(categories.take(codes, mode="clip"), series, codes < 0, holds_nulls=False)

    def _masked(self, series: Any, dtype: np.dtype[Any]) -> Array:
        """Return the values of a column of a nullable dtype, which stores nulls in a mask."""
        missing = series.isna().to_numpy()
        if not missing.any():
            array: Array = series.to_numpy(dtype=dtype)
            return array
        null = np.nan if dtype.kind == "f" else 0
        return self._filled(series.to_numpy(dtype=dtype, na_value=null), series, missing)

    def _objects(self, series: Any) -> Any:
        missing = series.isna().to_numpy()
        values = values_of_objects(self.name, series, missing)
        if isinstance(values, pd.Series):
            return self.values(values)
        return values if isinstance(values, RaggedTensor) else self._filled(values, series, missing)

    def _filled(self, values: Array, series: Any, missing: Array | None = None, *, holds_nulls: bool = True) -> Array:
        """Return ``values`` with the nulls of the ``missing`` rows replaced.

        Args:
            values: the values of all rows; those of missing rows are arbitrary.
            series: the column.
            missing: which rows are null. Default: those that pandas considers null.
            holds_nulls: whether missing rows already hold NaN or NaT if the dtype has them.
        """
        has_null = values.dtype.kind in "fcMm"
        if self.fill is None and has_null and holds_nulls:
            return values  # no need to search for nulls
        missing = series.isna().to_numpy() if missing is None else missing
        if not missing.any():
            return values
        if self.fill is None and not has_null:
            self._refuse_null(int(np.flatnonzero(missing)[0]), values.dtype)
        values = values.copy()
        values[missing] = _null_of(values.dtype) if self.fill is None else self._fill_for(values.dtype)
        return values

    def _fill_for(self, dtype: np.dtype[Any]) -> Any:
        if dtype.kind == "O" and isinstance(self.fill, TEXT):
            return as_bytes(self.fill)
        try:
            value = np.array(self.fill, dtype if dtype.kind in "Mm" else None)
            if _fits(value, dtype):
                return value.astype(dtype)[()]
        except (TypeError, ValueError):
            pass
        raise ValueError(f"{OP}(): fill_null[{self.name!r}] must be a value of {_word(dtype)}, got {self.fill!r}")

    def _refuse_null(self, row: int, dtype: np.dtype[Any]) -> None:
        refuse_row(
            self.name,
            row,
            f"contains a null, which the dtype of {_word(dtype)} cannot represent; replace nulls with "
            f"fill_null={{{self.name!r}: ...}}, or leave the column out with columns=[...]",
        )


def _word(dtype: np.dtype[Any]) -> str:
    return "text" if dtype.kind == "O" else str(dtype)


def _null_of(dtype: np.dtype[Any]) -> Any:
    return np.array("NaT", dtype) if dtype.kind in "Mm" else np.nan


def _fits(value: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype can hold a value without loss."""
    if value.ndim or value.dtype.kind not in "biufcMm" or dtype.kind == "O":
        return False
    if dtype.kind == "b" or value.dtype.kind == "b":
        return dtype.kind == value.dtype.kind
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return value.dtype.kind in "iu" and info.min <= int(value) <= info.max
    return True
