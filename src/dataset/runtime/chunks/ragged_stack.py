"""Ragged stacking: arrays of different shapes in one RaggedTensor or SparseTensor. Equal shapes: batching.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from dataset.plan.packed import is_packed
from dataset.plan.spec import Shape
from dataset.plan.values import RaggedTensor, SparseTensor, cast_splits, splits_of_lengths
from dataset.runtime.chunks.batching import ColumnMismatchError, require_equal, stack_column
from dataset.runtime.chunks.chunk import Array, Column


def stack_as_ragged(column: Column, ragged_rank: int, row_splits_dtype: np.dtype[Any]) -> RaggedTensor:
    """Stack the arrays of a column into a RaggedTensor whose first ``ragged_rank`` array axes are ragged.

    Raises:
        ColumnMismatchError: if dtypes, ranks, or the sizes of the axes that are not ragged differ.
    """
    if is_packed(column) and ragged_rank == 1 and not column.sparse:
        return RaggedTensor(column.flat, cast_splits(column.splits - column.splits[0], row_splits_dtype))
    shapes = _shapes(column)
    if shapes.shape[1] < ragged_rank:
        raise ColumnMismatchError(0, "rank", shapes.shape[1], f"at least {ragged_rank}")
    inner = tuple(shapes[0, ragged_rank:].tolist())
    if inner and (shapes[:, ragged_rank:] != inner).any():
        require_equal(list(column), "inner shape", [array.shape[ragged_rank:] for array in column])
    splits, rows = [], np.ones(len(shapes), np.int64)  # the number of rows of each array, down to the axis
    for sizes in shapes.T[:ragged_rank]:
        splits.append(splits_of_lengths(np.repeat(sizes, rows), row_splits_dtype))
        rows = rows * sizes
    values = _flat(column, shapes[:, :ragged_rank], inner)
    return RaggedTensor.from_nested_row_splits(values, splits)


def _flat(column: Column, shapes: Array, inner: tuple[int, ...]) -> Array:
    """Concatenate the arrays, after merging the axes before ``inner`` into one."""
    sizes = shapes.prod(axis=1)
    if isinstance(column, np.ndarray):
        return column.reshape(int(sizes.sum()), *inner)
    if shapes.shape[1] == 1:
        return np.concatenate(column)
    return np.concatenate([array.reshape(size, *inner) for array, size in zip(column, sizes.tolist(), strict=True)])


def stack_as_sparse(column: Column, row_shape: Shape) -> SparseTensor:
    """Stack every cell of the arrays of a column into a SparseTensor with a leading axis.

    Args:
        column: arrays or scalars with the rank of ``row_shape``, and not larger.
        row_shape: the shape of one array in the result; None for the largest size in this column.

    Raises:
        ColumnMismatchError: if dtypes differ.
    """
    assert row_shape is not None
    if not row_shape:
        values = stack_column(column)
        return SparseTensor(np.arange(len(values))[:, None], values, [len(values)])
    shapes = _shapes(column)
    sizes = shapes.prod(axis=1)
    starts = np.cumsum(sizes) - sizes
    places = np.arange(sizes.sum()) - np.repeat(starts, sizes)  # position of each cell in its array
    indices = np.empty((len(places), len(row_shape) + 1), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(shapes)), sizes)
    for axis in range(len(row_shape), 1, -1):
        places, indices[:, axis] = np.divmod(places, np.repeat(shapes[:, axis - 1], sizes))
    indices[:, 1] = places
    largest = shapes.max(axis=0).tolist()
    shape = [size if room is None else room for size, room in zip(largest, row_shape, strict=True)]
    return SparseTensor(indices, _flat(column, shapes, ()), [len(shapes), *shape])


def _shapes(column: Column) -> Array:
    """Return the shapes of a column's arrays, one per row.

    Raises:
        ColumnMismatchError: if they are not arrays of one dtype and rank.
    """
    if isinstance(column, np.ndarray):
        return np.tile(np.array(column.shape[1:], np.int64), (len(column), 1))
    if set(map(type, column)) != {np.ndarray}:
        require_equal(column, "type", [type(value).__name__ for value in column])
        raise ColumnMismatchError(0, "type", type(column[0]).__name__, "an array")
    if len({array.dtype for array in column}) > 1:
        require_equal(column, "dtype", [array.dtype for array in column])
    ranks = {array.ndim for array in column}
    if ranks == {1}:
        return np.fromiter(map(len, column), np.int64, len(column))[:, None]
    if len(ranks) > 1:
        require_equal(column, "rank", [array.ndim for array in column])
    return np.array([array.shape for array in column], np.int64)
