"""Assemblers: one class per form of values, which shapes the decoded values of a feature.

    check(columns)    nothing; raises an error for a wrong number of values, and accepts Columns without values
    packed(columns)   n values, from one checked Column per key: a RaggedColumn, an array (dense features) or a list
    batch(columns)    the value for n records, from checked Columns
    one(values)       the value for a single record, from an array or sequence of values per key; None if it is missing
    row(value)        the column of a single record, from its value

This module knows no bytes and no keys. A wrong number of values is reported as a Problem.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.example.columns import Column, MissingFeature, Problem
from dataset.io.example.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature
from dataset.plan.packed import RaggedColumn
from dataset.plan.spec import BYTES, SparseTensorSpec
from dataset.plan.values import RaggedTensor, SparseTensor, join_ragged, object_column, row_offsets

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Values = Array | Sequence[Any] | None
_NOTHING = np.zeros(0, np.int64)


def assembler_for(feature: Any, *, is_step: bool = False) -> Assembler:
    """Return the assembler of ``feature``; each step of a FixedLenSequenceFeature has one row."""
    if isinstance(feature, FixedLenSequenceFeature if is_step else FixedLenFeature):
        return Fixed(feature)
    return Indexed(feature) if isinstance(feature, SparseFeature) else Assembler(feature)


def _array(values: Values, dtype: np.dtype[Any]) -> Array:
    """Return ``values`` as a 1-D array."""
    if isinstance(values, np.ndarray):
        return values
    return object_column(values or ()) if dtype == BYTES else np.array(() if values is None else values, dtype)


class Assembler:
    """Assembler of features with any number of rows of one shape: VarLen, FixedLenSequence and Ragged.

    Every kind of ragged partition is converted to row splits, from the innermost to the outermost; the rows of one are
    the values of the next. Partitions differ between records, so these are assembled one by one.

    Attributes:
        packs: whether ``packed`` returns a RaggedColumn.
        needs_values: whether errors depend on the values and not only on their number.
    """

    def __init__(self, feature: Any) -> None:
        self.feature, self.dtype = feature, feature.dtype
        self.inner, places = feature.inner_shape, itertools.count(1)
        keyed = [(part, next(places) if hasattr(part, "key") else 0) for part in feature.outer_partitions]
        self.partitions = keyed[::-1]  # from the innermost
        self.size = math.prod(self.inner)
        self.sparse = isinstance(feature.spec, SparseTensorSpec)
        self.packs, self.needs_values = not self.partitions, bool(self.partitions)

    def check(self, columns: Sequence[Column]) -> None:
        """Check that each record has a whole number of rows."""
        counts = columns[0].counts
        if self.inner and (wrong := np.flatnonzero(counts % self.size)).size:
            raise self._not_whole(int(wrong[0]), int(counts[wrong[0]]))

    def packed(self, columns: Sequence[Column]) -> Any:
        """Return the rows of all records, concatenated, or a list of RaggedTensors."""
        if self.partitions:
            rows = zip(*(RaggedColumn(column.values, row_offsets(column.counts)) for column in columns), strict=True)
            return [self.one(values, row) for row, values in enumerate(rows)]
        values, counts = columns[0].values, columns[0].counts
        if self.inner:
            values, counts = values.reshape(-1, *self.inner), counts // self.size
        return RaggedColumn(values, row_offsets(counts), sparse=self.sparse)

    def batch(self, columns: Sequence[Column]) -> Any:
        """Return a SparseTensor of rank 2, a RaggedTensor, or a padded array of shape (n, max rows, *inner)."""
        packed = self.packed(columns)
        if self.sparse:
            return packed.sparse_batch()
        if self.partitions:
            rows = join_ragged(packed or [self.one([None] * len(columns))])  # without records, those of an empty one
            return RaggedTensor(rows, row_offsets([len(record) for record in packed]))
        ragged = RaggedTensor(packed.values, packed.splits)
        is_padded = isinstance(self.feature, FixedLenSequenceFeature)
        return ragged.to_tensor(self.feature.default_value) if is_padded else ragged

    def one(self, values: Sequence[Values], row: int = 0) -> Any:
        """Return an array of shape (rows, *inner), a RaggedTensor, or a SparseTensor of rank 1."""
        items = _array(values[0], self.dtype)
        if self.sparse:
            return SparseTensor(np.arange(len(items))[:, None], items, [len(items)])
        if len(items) % self.size:
            raise self._not_whole(row, len(items))
        result: Any = items.reshape(-1, *self.inner)
        for partition, place in self.partitions:
            given = _array(values[place], _NOTHING.dtype) if place else _NOTHING
            result = _partitioned(result, partition, given, row)
        return result

    def row(self, value: Any) -> Any:
        """Return the column of a single record."""
        return [value]

    def _not_whole(self, row: int, count: int) -> Problem:
        return Problem(row, f"holds {count} values, which is not a whole number of rows of shape {self.inner}")


_SPLITS: dict[type[Any], Callable[[Any, Ints, int], Ints]] = {
    RaggedFeature.RowSplits: lambda _, given, __: given if len(given) else np.zeros(1, np.int64),
    RaggedFeature.RowLengths: lambda _, given, __: row_offsets(given),
    RaggedFeature.RowStarts: lambda _, given, total: np.append(given, total),
    RaggedFeature.RowLimits: lambda _, given, __: np.append(0, given),
    RaggedFeature.UniformRowLength: lambda partition, _, total: np.arange(0, total + 1, partition.length),
}


def _partitioned(values: Any, partition: Any, given: Ints, row: int) -> RaggedTensor:
    """Return the values in the rows of ``partition``, which may be stored as the values ``given``."""
    total = len(values)
    if not isinstance(partition, RaggedFeature.ValueRowIds):
        splits = _SPLITS[type(partition)](partition, given, total)
    elif len(given) != total or (given[1:] < given[:-1]).any() or (given[:1] < 0).any():
        splits = _NOTHING
    else:
        rows = int(given[-1]) + 1 if total else 0
        if rows > total + partition.max_empty_rows:
            raise Problem(
                row,
                f"has {total} values, but its ValueRowIds {partition.key!r} declares {rows:,} rows, which exceeds "
                f"max_empty_rows = {partition.max_empty_rows:,} rows without values. If the rows are valid, pass a "
                "larger max_empty_rows to RaggedFeature.ValueRowIds",
            )
        splits = np.searchsorted(given, np.arange(rows + 1))
    try:
        return RaggedTensor(values, splits)
    except ValueError:
        kind, key = type(partition).__name__, getattr(partition, "key", None)
        what = f"of length {partition.length}" if key is None else f"{key!r} with values {given[:20].tolist()}"
        raise Problem(row, f"has {total} values, which do not match its {kind} {what}") from None


class Fixed(Assembler):
    """Assembler of FixedLenFeature: a dense array."""

    def __init__(self, feature: Any) -> None:
        super().__init__(feature)
        self.packs = False
        self.scalar = None if self.dtype == BYTES else self.dtype.type
        self.default = None if feature.default_value is None else _array(feature.default_value, self.dtype)

    def check(self, columns: Sequence[Column]) -> None:
        """Check that each record has the number of values of the shape, or there is a default."""
        column = columns[0]
        if column.each != self.size:
            counts = column.counts if column.present is None else np.where(column.present, column.counts, self.size)
            if (wrong := np.flatnonzero(counts != self.size)).size:
                raise self._wrong_count(int(wrong[0]), int(counts[wrong[0]]))
        if column.present is not None and self.default is None:
            raise MissingFeature(int(np.flatnonzero(~column.present)[0]))

    def packed(self, columns: Sequence[Column]) -> Array:
        """Return an array of shape (n, *shape), with the default for records without the feature."""
        column = columns[0]
        values = column.values
        if column.present is not None:
            values = np.empty((len(column.counts), self.size), values.dtype)
            values[column.present] = column.values.reshape(-1, self.size)
            values[~column.present] = self.default
        return values.reshape(len(column.counts), *self.inner)

    batch = packed

    def one(self, values: Sequence[Values], row: int = 0) -> Any:
        """Return an array of the feature's shape; a scalar or bytes if that is ()."""
        items = self.default if values[0] is None else values[0]
        if items is None:
            raise MissingFeature(row)
        if len(items) != self.size:
            raise self._wrong_count(row, len(items))
        if not self.inner:
            return items[0] if self.scalar is None else self.scalar(items[0])
        array = _array(items, self.dtype).reshape(self.inner)
        return array.copy() if values[0] is None else array

    def row(self, value: Any) -> Any:
        """Return an array of shape (1, *shape)."""
        return value[None] if self.inner else _array([value], self.dtype)

    def _wrong_count(self, row: int, count: int) -> Problem:
        advice = "Correct the shape, or use VarLenFeature or RaggedFeature"
        return Problem(row, f"holds {count} values, but shape {self.inner} needs {self.size}. {advice}")


class Indexed(Assembler):
    """Assembler of SparseFeature: a SparseTensor whose indices are values of other keys."""

    def __init__(self, feature: SparseFeature) -> None:
        super().__init__(feature)
        self.packs, self.needs_values = False, True

    def packed(self, columns: Sequence[Column]) -> list[SparseTensor]:
        """Return the n values, each as returned by ``one``."""
        batch, shape = self.batch(columns), self.feature.shape
        edges = itertools.pairwise(row_offsets(columns[0].counts).tolist())
        return [SparseTensor(batch.indices[a:b, 1:], batch.values[a:b], shape) for a, b in edges]

    def batch(self, columns: Sequence[Column]) -> SparseTensor:
        """Return a SparseTensor of shape (n, *shape)."""
        feature, counts = self.feature, columns[0].counts
        indices = [np.repeat(np.arange(len(counts)), counts)]
        for column, key, size in zip(columns[1:], feature.index_keys, feature.shape, strict=True):
            if (wrong := np.flatnonzero(column.counts != counts)).size:
                row = int(wrong[0])
                raise Problem(row, f"holds {counts[row]} values, but its {key!r} holds {column.counts[row]} indices")
            if (wrong := np.flatnonzero((column.values < 0) | (column.values >= size))).size:
                row, index = int(indices[0][wrong[0]]), column.values[wrong[0]]
                raise Problem(row, f"has the index {index} in {key!r}, which must be at least 0 and below {size}")
            indices.append(column.values)
        order = slice(None) if feature.already_sorted else np.lexsort(indices[::-1])
        places = np.stack(indices, axis=1)[order]
        return SparseTensor(places, columns[0].values[order], [len(counts), *feature.shape])

    def one(self, values: Sequence[Values], row: int = 0) -> SparseTensor:  # noqa: ARG002
        """Return a SparseTensor of the feature's shape."""
        arrays = [_array(items, np.dtype(np.int64) if i else self.dtype) for i, items in enumerate(values)]
        return self.packed([Column(None, np.array([len(array)]), array) for array in arrays])[0]
