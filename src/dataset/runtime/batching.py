"""Many components into one: the arrays of batches.

``stack_column`` is what ``batch`` does to a column; ``pad_column`` what ``padded_batch`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunk import Array, Column, object_column, pack


class ColumnMismatchError(Exception):
    """Internal: value ``index`` of a column does not go with the one before it. Callers say it in their words."""

    def __init__(self, index: int, what: str, got: Any, before: Any) -> None:
        super().__init__(index, what, got, before)
        self.index, self.what, self.got, self.before = index, what, got, before


def stack_column(column: Column) -> Any:
    """The values of a column as one component with a leading axis: an array, a RaggedTensor or a SparseTensor.

    Raises:
        ColumnMismatchError: if shapes, dtypes or kinds differ.
    """
    if isinstance(column, np.ndarray):
        return column
    kinds = set(map(type, column))
    if kinds == {bytes}:
        return np.array(column, object)
    if kinds == {np.ndarray}:
        return _stack_arrays(column)
    if kinds == {SparseTensor}:
        return _stack_sparse(column)
    if kinds == {RaggedTensor}:
        return _stack_ragged(column)
    packed = pack(column)
    if isinstance(packed, np.ndarray):
        return packed
    if all(issubclass(kind, np.generic) for kind in kinds):
        _require_equal(column, "dtype", [value.dtype for value in column])
        return np.array(column)
    if any(issubclass(kind, np.generic) for kind in kinds) or kinds & {np.ndarray, SparseTensor, RaggedTensor, bytes}:
        _require_equal(column, "type", [type(value).__name__ for value in column])
    return object_column(column)


def _require_equal(column: Sequence[Any], what: str, seen: Sequence[Any]) -> None:
    for index in range(1, len(column)):
        if seen[index] != seen[index - 1]:
            raise ColumnMismatchError(index, what, seen[index], seen[index - 1])


def _stack_arrays(values: Sequence[Array]) -> Array:
    """np.stack, but twice as fast: it makes no view of each array, and leaves most of the comparing to NumPy."""
    if len(set(map(len, values))) == 1 and len({value.dtype for value in values}) == 1:
        try:
            return np.concatenate(values).reshape(len(values), *values[0].shape)
        except ValueError:
            pass  # they differ in rank, or in a dimension behind the first
    _require_equal(values, "dtype", [value.dtype for value in values])
    _require_equal(values, "shape", [value.shape for value in values])
    raise AssertionError(f"arrays that NumPy does not join, and no difference found: {values!r:.200}")


def _stack_sparse(values: Sequence[SparseTensor]) -> SparseTensor:
    _require_equal(values, "dtype", [value.dtype for value in values])
    _require_equal(values, "shape", [value.shape for value in values])
    counts = [len(value.values) for value in values]
    rows = np.repeat(np.arange(len(values)), counts)
    indices = np.concatenate([value.indices for value in values])
    cells = np.concatenate([value.values for value in values])
    return SparseTensor(np.column_stack([rows, indices]), cells, [len(values), *values[0].shape])


def _stack_ragged(values: Sequence[RaggedTensor]) -> RaggedTensor:
    _require_equal(values, "dtype", [value.dtype for value in values])
    _require_equal(values, "ragged rank", [value.ragged_rank for value in values])
    _require_equal(values, "inner shape", [value.flat_values.shape[1:] for value in values])
    splits = np.concatenate([[0], np.cumsum([len(value) for value in values])])
    return RaggedTensor(_concatenate_ragged(values), splits)


def _concatenate_ragged(values: Sequence[RaggedTensor]) -> RaggedTensor:
    """Ragged tensors one after another, along the rows."""
    offsets = np.cumsum([0, *(len(value.values) for value in values[:-1])])
    splits = [value.row_splits[1:] + offset for value, offset in zip(values, offsets, strict=True)]
    inner = [value.values for value in values]
    ragged = isinstance(inner[0], RaggedTensor)
    joined: Any = _concatenate_ragged(inner) if ragged else np.concatenate(inner)  # type: ignore[arg-type]
    return RaggedTensor(joined, np.concatenate([[0], *splits]))


def pad_column(column: Column, shape: Sequence[int | None], value: Any) -> Array:
    """The arrays of a column in one array, each filled up with ``value`` at the end of every dimension.

    Args:
        column: arrays or scalars of one rank.
        shape: of one padded value; None for the largest in this column.
        value: what to fill up with.

    Raises:
        ColumnMismatchError: if ranks or dtypes differ, or a value is larger than ``shape``.
    """
    if isinstance(column, np.ndarray):
        arrays: Sequence[Array] = list(column) if column.dtype != object else [np.asarray(v, object) for v in column]
        dtype = column.dtype
    else:
        arrays = [np.asarray(v, object) if isinstance(v, bytes) else np.asarray(v) for v in column]
        dtype = arrays[0].dtype
    if not shape and not any(array.ndim for array in arrays):
        return stack_column(column)  # type: ignore[no-any-return]  # scalars: nothing to fill up
    _require_equal(
        arrays, "dtype", [array.dtype for array in arrays] if arrays[0].dtype != object else [0] * len(arrays)
    )
    _require_equal(arrays, "rank", [array.ndim for array in arrays])
    if arrays[0].ndim != len(shape):
        raise ColumnMismatchError(0, "rank", arrays[0].ndim, len(shape))
    largest = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
    target = [size if wanted is None else wanted for size, wanted in zip(largest, shape, strict=True)]
    for index, array in enumerate(arrays):
        if any(size > limit for size, limit in zip(array.shape, target, strict=True)):
            raise ColumnMismatchError(index, "padded shape", array.shape, tuple(target))
    return _fill(arrays, target, value, dtype)


def _fill(arrays: Sequence[Array], target: list[int], value: Any, dtype: np.dtype[Any]) -> Array:
    padded = np.full((len(arrays), *target), value, dtype)
    if len(target) == 1:  # vectors, such as token lists: one assignment for the whole batch
        lengths = np.array([len(array) for array in arrays])
        padded[np.arange(target[0]) < lengths[:, None]] = np.concatenate(arrays)
        return padded
    for row, array in zip(padded, arrays, strict=True):
        row[tuple(map(slice, array.shape))] = array
    return padded
