"""Assemblers: one class per form of values, which shapes the decoded values of a feature.

    one(values)       the value for a single record, from an array or sequence of values per key; None if it is missing
    packed(columns)   n values, from one Column per key: a RaggedColumn, an array (dense features) or a list
    batch(columns)    the value for n records
    check(columns)    nothing; raises the errors of ``packed``, and accepts ListColumns without values

This module knows no bytes and no keys. A wrong number of values is reported as a Problem.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataset.io.example.columns import Column, MissingFeature, Problem, object_array
from dataset.io.example.features import (
    FeatureSpec,
    FixedLenFeature,
    FixedLenSequenceFeature,
    Partition,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    VarLenFeature,
)
from dataset.plan.packed import RaggedColumn
from dataset.plan.spec import BYTES
from dataset.plan.values import RaggedTensor, SparseTensor, row_offsets

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Values = Array | Sequence[Any] | None

_NOTHING = np.zeros(0, np.int64)


def _array(values: Values, dtype: np.dtype[Any]) -> Array:
    """Return ``values`` as a 1-D array."""
    if isinstance(values, np.ndarray):
        return values
    return object_array(values or ()) if dtype == BYTES else np.array(() if values is None else values, dtype)


class Assembler:
    """Assembler of features with any number of rows of one shape: VarLen, FixedLenSequence, and most Ragged ones.

    Args:
        feature: the feature.
        inner: the shape of a row.
        padding: the padding value of a batch; None if it is not padded.
    """

    packs = True
    """Whether ``packed`` returns a RaggedColumn."""
    needs_values = False
    """Whether ``check`` depends on the values and not only on their number."""

    def __init__(self, feature: FeatureSpec, inner: tuple[int, ...] = (), padding: Any = None) -> None:
        self.dtype, self.inner, self.size, self.padding = feature.dtype, inner, math.prod(inner), padding
        self.sparse = isinstance(feature, VarLenFeature)

    def one(self, values: Sequence[Values]) -> Any:
        """Return an array of shape (rows, *inner), or a SparseTensor of rank 1."""
        items = _array(values[0], self.dtype)
        if self.sparse:
            return SparseTensor(np.arange(len(items))[:, None], items, [len(items)])
        if len(items) % self.size:
            raise self._not_whole(0, len(items))
        return items.reshape(-1, *self.inner)

    def packed(self, columns: Sequence[Column]) -> Any:
        """Return the rows of all records, concatenated."""
        self.check(columns)
        values, counts = columns[0].values, columns[0].counts
        if self.inner:
            values, counts = values.reshape(-1, *self.inner), counts // self.size
        return RaggedColumn(values, row_offsets(counts), sparse=self.sparse)

    def batch(self, columns: Sequence[Column]) -> Any:
        """Return a SparseTensor of rank 2, a RaggedTensor, or a padded array of shape (n, max rows, *inner)."""
        packed = self.packed(columns)
        if self.sparse:
            return packed.sparse_batch()
        ragged = RaggedTensor(packed.values, packed.splits)
        return ragged if self.padding is None else ragged.to_tensor(self.padding)

    def check(self, columns: Sequence[Column]) -> None:
        """Check that each record has a whole number of rows."""
        counts = columns[0].counts
        if self.inner and (wrong := np.flatnonzero(counts % self.size)).size:
            raise self._not_whole(int(wrong[0]), int(counts[wrong[0]]))

    def row(self, value: Any) -> Any:
        """Return the column of a single record, from its value."""
        return [value]

    def _not_whole(self, row: int, count: int) -> Problem:
        return Problem(row, f"holds {count} values, which is not a whole number of rows of shape {self.inner}")


class Fixed(Assembler):
    """Assembler of FixedLenFeature: a dense array."""

    packs = False

    def __init__(self, feature: FixedLenFeature) -> None:
        super().__init__(feature, feature.shape)
        self.scalar = None if self.dtype == BYTES else self.dtype.type
        self.default = None if feature.default_value is None else _array(feature.default_value, self.dtype)

    def one(self, values: Sequence[Values]) -> Any:
        """Return an array of the feature's shape; a scalar or bytes if that is ()."""
        items = values[0]
        if items is None:
            if self.default is None:
                raise MissingFeature(0)
            items = self.default.copy()
        if len(items) != self.size:
            raise self._wrong_count(0, len(items))
        if not self.inner:
            return items[0] if self.scalar is None else self.scalar(items[0])
        return _array(items, self.dtype).reshape(self.inner)

    def packed(self, columns: Sequence[Column]) -> Array:
        """Return an array of shape (n, *shape), with the default for records without the feature."""
        self.check(columns)
        column = columns[0]
        values = column.values
        if column.present is not None:
            values = np.empty((len(column.counts), self.size), values.dtype)
            values[column.present] = column.values.reshape(-1, self.size)
            values[~column.present] = self.default
        return values.reshape(len(column.counts), *self.inner)

    def batch(self, columns: Sequence[Column]) -> Array:
        """Return the same as ``packed``."""
        return self.packed(columns)

    def check(self, columns: Sequence[Column]) -> None:
        """Check that each record has the number of values of the shape, or there is a default."""
        column = columns[0]
        if column.each != self.size:
            counts = column.counts if column.present is None else np.where(column.present, column.counts, self.size)
            if (wrong := np.flatnonzero(counts != self.size)).size:
                raise self._wrong_count(int(wrong[0]), int(counts[wrong[0]]))
        if column.present is not None and self.default is None:
            raise MissingFeature(int(np.flatnonzero(~column.present)[0]))

    def row(self, value: Any) -> Array:
        """Return an array of shape (1, *shape)."""
        if not self.inner:
            return object_array([value]) if self.dtype == BYTES else np.array([value])
        expanded: Array = value[None]
        return expanded

    def _wrong_count(self, row: int, count: int) -> Problem:
        return Problem(
            row,
            f"holds {count} values, but shape {self.inner} needs {self.size}. "
            "Correct the shape, or use VarLenFeature or RaggedFeature",
        )


class Nested(Assembler):
    """Assembler of RaggedFeature with ragged partitions: a RaggedTensor for each record.

    Every kind of partition is converted to row splits, from the innermost to the outermost; the rows of one are the
    values of the next. Partitions differ between records, so the records are assembled one by one.
    """

    packs = False
    needs_values = True

    def __init__(self, feature: RaggedFeature) -> None:
        super().__init__(feature, feature.inner_shape)
        self.partitions = feature.outer_partitions

    def one(self, values: Sequence[Values]) -> Any:
        """Return the values of one record, in rows."""
        result = super().one(values)
        keyed = [_array(items, np.dtype(np.int64)) for items in values[1:]]
        for partition in reversed(self.partitions):
            given = None if isinstance(partition, UniformRowLength) else keyed.pop()
            result = RaggedTensor(result, _checked_splits(partition, given, len(result)))
        return result

    def packed(self, columns: Sequence[Column]) -> list[Any]:
        """Return the n values, each as returned by ``one``."""
        splits = [row_offsets(column.counts).tolist() for column in columns]
        result = []
        for row in range(len(columns[0].counts)):
            items = [c.values[s[row] : s[row + 1]] for c, s in zip(columns, splits, strict=True)]
            try:
                result.append(self.one(items))
            except Problem as problem:
                raise Problem(row, str(problem)) from None
        return result

    def check(self, columns: Sequence[Column]) -> None:
        """Raise the errors of ``packed``."""
        self.packed(columns)

    def batch(self, columns: Sequence[Column]) -> RaggedTensor:
        """Return the concatenated values of all records, split by record."""
        records = self.packed(columns)
        result: Any = columns[0].values.reshape(-1, *self.inner)
        for level in reversed(range(len(self.partitions))):
            lengths = [np.diff(record.nested_row_splits[level]) for record in records]
            result = RaggedTensor(result, row_offsets(np.concatenate([_NOTHING, *lengths])))
        return RaggedTensor(result, row_offsets(np.array([len(record) for record in records], np.int64)))


class Indexed(Assembler):
    """Assembler of SparseFeature: a SparseTensor whose indices are values of other keys."""

    packs = False
    needs_values = True

    def __init__(self, feature: SparseFeature) -> None:
        super().__init__(feature)
        self.feature = feature

    def one(self, values: Sequence[Values]) -> SparseTensor:
        """Return a SparseTensor of the feature's shape."""
        dtypes = [self.dtype] + [np.dtype(np.int64)] * len(self.feature.shape)
        arrays = [_array(items, dtype) for items, dtype in zip(values, dtypes, strict=True)]
        return self.packed([Column(None, np.array([len(array)]), array) for array in arrays])[0]

    def packed(self, columns: Sequence[Column]) -> list[SparseTensor]:
        """Return the n values, each as returned by ``one``."""
        batch, edges = self.batch(columns), row_offsets(columns[0].counts).tolist()
        return [
            SparseTensor(batch.indices[a:b, 1:], batch.values[a:b], self.feature.shape)
            for a, b in itertools.pairwise(edges)
        ]

    def check(self, columns: Sequence[Column]) -> None:
        """Raise the errors of ``batch``."""
        self.batch(columns)

    def batch(self, columns: Sequence[Column]) -> SparseTensor:
        """Return a SparseTensor of shape (n, *shape)."""
        feature, counts = self.feature, columns[0].counts
        indices = [np.repeat(np.arange(len(counts)), counts)]
        for column, key, size in zip(columns[1:], feature.index_keys, feature.shape, strict=True):
            if (wrong := np.flatnonzero(column.counts != counts)).size:
                row = int(wrong[0])
                raise Problem(row, f"holds {counts[row]} values, but its {key!r} holds {column.counts[row]} indices")
            if (wrong := np.flatnonzero((column.values < 0) | (column.values >= size))).size:
                at = int(wrong[0])
                raise Problem(
                    int(indices[0][at]),
                    f"has the index {column.values[at]} in {key!r}, which must be at least 0 and below {size}",
                )
            indices.append(column.values)
        order = slice(None) if feature.already_sorted else np.lexsort(indices[::-1])
        places = np.stack(indices, axis=1)[order]
        return SparseTensor(places, columns[0].values[order], [len(counts), *feature.shape])


def _checked_splits(partition: Partition, given: Array | None, total: int) -> Ints:
    """Return the row splits of ``partition`` over ``total`` values."""
    splits = _to_splits(partition, _NOTHING if given is None else given, total)
    if splits[0] != 0 or splits[-1] != total or (splits[1:] < splits[:-1]).any():
        what = f"of length {partition.length}" if isinstance(partition, UniformRowLength) else f"{partition.key!r}"
        shown = "" if given is None else f" with values {given.tolist()[:20]}"
        raise Problem(0, f"has {total} values, which do not match its {type(partition).__name__} {what}{shown}")
    return splits


def _to_splits(partition: Partition, given: Ints, total: int) -> Ints:
    """Return the row splits that a partition declares; invalid ones if they are not ascending."""
    if isinstance(partition, UniformRowLength):
        return np.arange(0, total + 1, partition.length)
    if isinstance(partition, RowSplits):
        return given if len(given) else np.zeros(1, np.int64)
    if isinstance(partition, RowLengths):
        return row_offsets(given)
    if isinstance(partition, RowStarts):
        return np.append(given, total)
    if isinstance(partition, RowLimits):
        return np.append(0, given)
    if len(given) != total or (given[1:] < given[:-1]).any() or (given[:1] < 0).any():
        return np.array([0, -1], np.int64)
    rows = int(given[-1]) + 1 if len(given) else 0
    if rows > total + partition.max_empty_rows:
        raise Problem(
            0,
            f"has {total} values, but its ValueRowIds {partition.key!r} declares {rows:,} rows, which exceeds "
            f"max_empty_rows = {partition.max_empty_rows:,} rows without values. If the rows are valid, pass a larger "
            "max_empty_rows to RaggedFeature.ValueRowIds",
        )
    return np.searchsorted(given, np.arange(rows + 1))


def assembler_for(feature: FeatureSpec) -> Assembler:
    """Return the assembler of ``feature``."""
    if isinstance(feature, FixedLenFeature):
        return Fixed(feature)
    if isinstance(feature, FixedLenSequenceFeature):
        padding = feature.default_value
        return Assembler(feature, feature.shape, (b"" if feature.dtype == BYTES else 0) if padding is None else padding)
    if isinstance(feature, SparseFeature):
        return Indexed(feature)
    if isinstance(feature, RaggedFeature):
        return Nested(feature) if feature.outer_partitions else Assembler(feature, feature.inner_shape)
    return Assembler(feature)
