"""Columns of Python objects, which must be of one kind: texts, numbers, times, or arrays and lists.

pandas infers the dtypes of numbers and times itself (``infer_objects``); the remaining objects are handled here.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dataset.adapters.pandas.conversion_errors import refuse, refuse_row, shown
from dataset.plan.values import RaggedTensor

__all__ = ["TEXT", "as_bytes", "values_of_objects"]

Array = npt.NDArray[Any]

TEXT = (str, bytes, bytearray)
_BOOLS = (bool, np.bool_)
_NUMBERS = (int, float, np.integer, np.floating)
_LISTS = (list, tuple, np.ndarray)

_HINTS = {dict: "; pd.json_normalize() makes columns of them", int: " of at most 64 bits"}


def values_of_objects(column: str, series: Any, missing: Array) -> Any:
    """Return the values of a column of objects, or a Series if pandas can infer a dtype.

    The values of ``missing`` rows are arbitrary.

    Raises:
        ValueError: if a row is of another kind than the row before, or a list is missing.
        SpecError: if the values cannot be represented as a component.
    """
    cells = np.asarray(series, object)
    present = cells[~missing] if missing.any() else cells
    kinds = set(map(type, present))
    if not len(cells):
        return cells  # text is the most likely type of an empty column
    if not kinds:
        refuse(column, "it contains only nulls, so the type of its values is unknown")
    if _all(kinds, TEXT):
        return _texts(cells, missing)
    if _all(kinds, _LISTS):
        return _Lists(column).values(cells, missing)
    inferred = series.infer_objects()
    if inferred.dtype.kind != "O" and (inferred.dtype.kind != "f" or _all(kinds, _NUMBERS)):
        return inferred
    for family, make in _MAKERS:
        if _all(kinds, family):
            return make([None if null else cell for cell, null in zip(cells, missing.tolist(), strict=True)])
    return _refuse_objects(column, cells, np.flatnonzero(~missing))


class _Lists:
    """Converter for arrays and lists: to an array if they have one shape, to a RaggedTensor if their lengths differ."""

    def __init__(self, column: str) -> None:
        self.column = column

    def values(self, cells: Array, missing: Array) -> Array | RaggedTensor:
        if missing.any():
            why = "is null, but columns of lists must not contain nulls; remove such rows with df.dropna()"
            refuse_row(self.column, int(np.flatnonzero(missing)[0]), why)
        arrays = [self._array(row, cell) for row, cell in enumerate(cells)]
        self._check_shapes(arrays)
        dtype = self._common_dtype(arrays)
        flat = np.concatenate([array.astype(dtype, copy=False) for array in arrays])
        lengths = list(map(len, arrays))
        if len(set(lengths)) == 1:
            return flat.reshape(len(arrays), *arrays[0].shape)
        return RaggedTensor(flat, np.cumsum([0, *lengths]))

    def _array(self, row: int, cell: Any) -> Array:
        try:
            array = np.asarray(cell)
        except ValueError:
            why = f"holds lists of different lengths in a list, {cell!r:.100}; only the first dimension may differ"
            refuse_row(self.column, row, why)
        if array.dtype.kind in "SUO":
            array = np.asarray(cell, object)  # NumPy's fixed-width text dtypes lose trailing zero bytes
            if not _all(set(map(type, array.flat)), TEXT):
                refuse_row(self.column, row, f"holds values that are neither all numbers nor all text, {cell!r:.100}")
        if not array.ndim:
            refuse_row(self.column, row, f"holds an array without dimensions, {cell!r}")
        return array

    def _check_shapes(self, arrays: list[Array]) -> None:
        first = arrays[0].shape
        for row, array in enumerate(arrays):
            if array.ndim != len(first) or array.shape[1:] != first[1:]:
                why = (
                    f"holds an array of shape {array.shape}, but {first} in row 0; only the first dimension may differ"
                )
                refuse_row(self.column, row, why)

    def _common_dtype(self, arrays: list[Array]) -> np.dtype[Any]:
        """Return the dtype that holds all values; empty lists have no dtype of their own."""
        filled = [(row, array) for row, array in enumerate(arrays) if array.size]
        dtypes = {array.dtype for _, array in filled} or {arrays[0].dtype}
        for row, array in filled:
            if _family(array) != _family(filled[0][1]):
                why = f"holds {shown(array[0])}, but {shown(filled[0][1][0])} in row {filled[0][0]}"
                refuse_row(self.column, row, f"{why}; all rows of a column must be of one kind")
        return np.result_type(*dtypes)


def _family(array: Array) -> str:
    return "number" if array.dtype.kind in "biufc" else array.dtype.kind


def _refuse_objects(column: str, cells: Array, rows: Array) -> NoReturn:
    first = cells[rows[0]]
    other = next((row for row in rows if not _alike(cells[row], first)), None)
    if other is None:
        kind, hint = type(first).__name__, _HINTS.get(type(first), "")
        refuse(column, f"its objects of type {kind} are not numbers, times, text or lists{hint}")
    why = f"holds {shown(cells[other])}, but {shown(first)} in row {rows[0]}; all rows of a column must be of one kind"
    refuse_row(column, other, why)


def _all(kinds: set[type[Any]], allowed: tuple[type[Any], ...]) -> bool:
    return all(issubclass(kind, allowed) for kind in kinds)


def _alike(value: Any, other: Any) -> bool:
    for family in (TEXT, _LISTS, _BOOLS, _NUMBERS):
        if isinstance(value, family) or isinstance(other, family):
            return isinstance(value, family) and isinstance(other, family)
    return type(value) is type(other)


def as_bytes(text: Any) -> bytes:
    """Return text as bytes, the form in which this library represents it."""
    return text.encode() if isinstance(text, str) else bytes(text)


def _texts(cells: Array, missing: Array) -> Array:
    texts = [b"" if null else as_bytes(cell) for cell, null in zip(cells, missing.tolist(), strict=True)]
    return np.fromiter(texts, object, len(texts))


def _bools(cells: list[Any]) -> Array:
    return np.array(cells, bool)


def _dates(cells: list[Any]) -> Array:
    return np.array(cells, "M8[D]")


def _times(cells: list[Any]) -> Array:
    """Convert times of day to the durations since midnight, as in Arrow."""
    day = dt.date(1970, 1, 1)
    midnight = dt.datetime.combine(day, dt.time())
    return np.array([None if cell is None else dt.datetime.combine(day, cell) - midnight for cell in cells], "m8[us]")


def _decimals(cells: list[Any]) -> Array:
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


_MAKERS: list[tuple[tuple[type[Any], ...], Callable[[list[Any]], Array]]] = [
    (_BOOLS, _bools),
    ((dt.date,), _dates),
    ((dt.time,), _times),
    ((decimal.Decimal,), _decimals),
]
"""Other types of objects, and the functions that convert them to an array; nulls are passed as None."""
