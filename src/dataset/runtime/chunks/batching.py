"""Batching: combines many components into one array, ragged tensor or sparse tensor.

``stack_column`` implements ``batch`` for a column, and ``pad_column`` implements ``padded_batch``. ``join_rows`` joins
parts of batches into one component. ragged_stack.py turns arrays of different shapes into ragged and sparse tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dataset import plan
from dataset.plan.packed import RaggedColumn, is_packed
from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, fits_in
from dataset.plan.values import (
    RaggedTensor,
    SparseTensor,
    filled,
    join_ragged,
    object_column,
    row_offsets,
    splits_of_lengths,
)
from dataset.runtime.chunks.chunk import Array, Column, pack


class ColumnMismatchError(Exception):
    """Internal: value ``index`` of a column is incompatible with the one before it. Callers raise their own errors."""

    def __init__(self, index: int, what: str, got: Any, before: Any) -> None:
        super().__init__(index, what, got, before)
        self.index, self.what, self.got, self.before = index, what, got, before


class NoRoomError(ColumnMismatchError):
    """Internal: value ``index`` is larger than ``before``, the size to which all values are padded."""


def stack_column(column: Column) -> Any:
    """Stack the values of a column into one component with a leading axis: an array, a RaggedTensor or a SparseTensor.

    Raises:
        ColumnMismatchError: if shapes, dtypes or kinds differ.
    """
    if isinstance(column, np.ndarray):
        return column
    if is_packed(column):
        stacked = column.stacked()
        return stack_column(list(column)) if stacked is None else stacked
    if type(column[0]) is bytes and list(map(type, column)).count(bytes) == len(column):  # faster than a set of types
        return object_column(column)
    kinds = set(map(type, column))
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
        require_equal(column, "dtype", [value.dtype for value in column])
        return np.array(column)
    if any(issubclass(kind, np.generic) for kind in kinds) or kinds & {np.ndarray, SparseTensor, RaggedTensor, bytes}:
        require_equal(column, "type", [type(value).__name__ for value in column])
    return object_column(column)


def require_equal(column: Sequence[Any], what: str, seen: Sequence[Any]) -> None:
    """Raise ColumnMismatchError at the first value for which ``seen`` differs from that of the value before."""
    for index in range(1, len(column)):
        if seen[index] != seen[index - 1]:
            raise ColumnMismatchError(index, what, seen[index], seen[index - 1])


def _stack_arrays(values: Sequence[Array]) -> Array:
    """Stack like np.stack, but twice as fast: without a view of each array, and mostly compared by NumPy itself."""
    if len(set(map(len, values))) == 1 and len({value.dtype for value in values}) == 1:
        try:
            return np.concatenate(values).reshape(len(values), *values[0].shape)
        except ValueError:
            pass  # they differ in rank, or in a dimension after the first
    require_equal(values, "dtype", [value.dtype for value in values])
    require_equal(values, "shape", [value.shape for value in values])
    raise AssertionError(f"NumPy cannot join these arrays, although their dtypes and shapes are equal: {values!r:.200}")


def _stack_sparse(values: Sequence[SparseTensor]) -> SparseTensor:
    """Stack sparse tensors. Shapes may differ: the batch takes the largest size of each dimension, as in tf.data."""
    require_equal(values, "dtype", [value.dtype for value in values])
    require_equal(values, "rank", [len(value.dense_shape) for value in values])
    counts = [len(value.values) for value in values]
    rows = np.repeat(np.arange(len(values)), counts)
    indices = np.concatenate([value.indices for value in values])
    cells = np.concatenate([value.values for value in values])
    shape = np.max([value.dense_shape for value in values], axis=0)
    return SparseTensor(np.column_stack([rows, indices]), cells, [len(values), *shape])


def _stack_ragged(values: Sequence[RaggedTensor]) -> RaggedTensor:
    joined = _join_ragged(values)
    return RaggedTensor(joined, splits_of_lengths([len(value) for value in values], joined.row_splits_dtype))


def join_rows(parts: Sequence[Any]) -> Any:
    """Join arrays, ragged or sparse tensors along the rows.

    Raises:
        ColumnMismatchError: if kinds, dtypes or row shapes differ.
    """
    if len(parts) == 1:
        return parts[0]
    kinds = set(map(type, parts))
    if kinds == {RaggedTensor}:
        return _join_ragged(parts)
    if kinds == {SparseTensor}:
        return _join_sparse(parts)
    require_equal(parts, "type", [type(part).__name__ for part in parts])
    require_equal(parts, "dtype", [part.dtype for part in parts])
    require_equal(parts, "row shape", [part.shape[1:] for part in parts])
    return np.concatenate(parts)


def _join_ragged(parts: Sequence[RaggedTensor]) -> RaggedTensor:
    require_equal(parts, "dtype", [part.dtype for part in parts])
    require_equal(parts, "ragged rank", [part.ragged_rank for part in parts])
    require_equal(parts, "row_splits dtype", [part.row_splits_dtype for part in parts])
    require_equal(parts, "inner shape", [part.flat_values.shape[1:] for part in parts])
    return join_ragged(parts)


def _join_sparse(parts: Sequence[SparseTensor]) -> SparseTensor:
    require_equal(parts, "dtype", [part.dtype for part in parts])
    require_equal(parts, "rank", [len(part.dense_shape) for part in parts])
    shapes = np.array([part.dense_shape for part in parts])
    offsets = np.cumsum(shapes[:, 0]) - shapes[:, 0]
    indices = np.concatenate([part.indices for part in parts])
    indices[:, 0] += np.repeat(offsets, [len(part.values) for part in parts])
    shape = [shapes[:, 0].sum(), *shapes[:, 1:].max(axis=0)]
    return SparseTensor(indices, np.concatenate([part.values for part in parts]), shape)


def pad_column(column: Column, shape: Sequence[int | None], value: Any) -> Array:
    """Combine the arrays of a column into one array, each padded with ``value`` at the end of every dimension.

    Args:
        column: arrays or scalars of one rank.
        shape: the shape of one padded value; None for the largest size in this column.
        value: the padding value.

    Raises:
        ColumnMismatchError: if ranks or dtypes differ, or a value is larger than ``shape``.
    """
    if is_packed(column) and (padded := _pad_packed(column, shape, value)) is not None:
        return padded
    if not shape and isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype != object:
        return column  # scalars need no padding
    arrays, dtype = _arrays_of(column)
    if not shape and not any(array.ndim for array in arrays):
        return stack_column(column)  # type: ignore[no-any-return]  # scalars need no padding
    if dtype.kind != "O" and len({array.dtype for array in arrays}) > 1:
        require_equal(arrays, "dtype", [array.dtype for array in arrays])
    if len({array.ndim for array in arrays}) > 1:
        require_equal(arrays, "rank", [array.ndim for array in arrays])
    if arrays[0].ndim != len(shape):
        raise ColumnMismatchError(0, "rank", arrays[0].ndim, len(shape))
    sizes = [list(map(len, arrays))] if len(shape) == 1 else list(zip(*(array.shape for array in arrays), strict=True))
    largest = list(map(max, sizes))
    target = [size if wanted is None else wanted for size, wanted in zip(largest, shape, strict=True)]
    if any(size > limit for size, limit in zip(largest, target, strict=True)):
        for index, array in enumerate(arrays):
            if any(size > limit for size, limit in zip(array.shape, target, strict=True)):
                raise NoRoomError(index, "shape", array.shape, tuple(target))
    return _fill(arrays, sizes, target, value, dtype)


def _arrays_of(column: Column) -> tuple[Sequence[Array], np.dtype[Any]]:
    """Return the values as arrays (text as object arrays), and the dtype of the first."""
    if isinstance(column, np.ndarray):
        return (list(column) if column.dtype != object else [np.asarray(v, object) for v in column]), column.dtype
    if set(map(type, column)) == {np.ndarray}:
        return column, column[0].dtype
    arrays = [np.asarray(v, object) if isinstance(v, bytes) else np.asarray(v) for v in column]
    return arrays, arrays[0].dtype


def _pad_packed(column: RaggedColumn, shape: Sequence[int | None], value: Any) -> Array | None:
    """Implement ``pad_column`` if only the first dimension needs padding; otherwise return None."""
    inner, wanted = column.values.shape[1:], tuple(shape[1:])
    if column.sparse or not shape or not (fits_in(inner, wanted) and fits_in(wanted, inner)):
        return None
    longest = int(column.lengths.max())
    room = longest if shape[0] is None else shape[0]
    if longest > room:
        return None
    padded = filled((len(column), room, *inner), value, column.values.dtype)
    plan.copy_rows(column.values, column.splits, padded)
    return padded


def _fill(
    arrays: Sequence[Array], sizes: Sequence[Sequence[int]], target: list[int], value: Any, dtype: np.dtype[Any]
) -> Array:
    padded = filled((len(arrays), *target), value, dtype)
    if len(target) > 1:
        for row, array in zip(padded, arrays, strict=True):
            row[tuple(map(slice, array.shape))] = array
    else:  # vectors, such as token lists
        plan.copy_rows(np.concatenate(arrays), row_offsets(np.array(sizes[0], np.int64)), padded)
    return padded


def empty_component(spec: ComponentSpec) -> Any:
    """Return a component without rows. Dimensions that are unknown in the spec are 0, as in tf.data."""
    dims = [size or 0 for size in (spec.shape or (0,))][1:]
    dtype = np.dtype(object) if spec.dtype == BYTES else spec.dtype
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(np.zeros((0, len(dims) + 1)), np.zeros(0, dtype), [0, *dims])
    if isinstance(spec, RaggedTensorSpec) and spec.ragged_rank:
        splits = [np.zeros(1, spec.row_splits_dtype)] * spec.ragged_rank
        return RaggedTensor.from_nested_row_splits(np.zeros((0, *dims[spec.ragged_rank :]), dtype), splits)
    return np.zeros((0, *dims), dtype)
