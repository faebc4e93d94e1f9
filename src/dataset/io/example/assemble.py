"""Assemblers: one class per kind of feature, which shapes the decoded values.

    one(values)       the value for a single record, from an array or sequence of values per key; None if it is missing
    batch(columns)    the value for n records, from one Column per key
    rows(columns)     a list of n values, each as returned by ``one``; for dense features the array itself
    packed(columns)   the same, but values of different lengths in one RaggedColumn
    check(columns)    nothing; raises the errors of ``rows``, and accepts Columns without values

This module knows no bytes and no keys. A wrong number of values is reported as a Problem.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dataset.io.example.columns import Column, object_array
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
    UniformRowLength,
    ValueRowIds,
    VarLenFeature,
)
from dataset.io.example.problem import Problem
from dataset.plan.packed import RaggedColumn
from dataset.plan.spec import BYTES
from dataset.plan.values import RaggedTensor, SparseTensor, filled

__all__ = ["Assembler", "assembler_for"]

Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Values = Array | Sequence[Any] | None
F = TypeVar("F", bound=FeatureSpec)


def _array(values: Values, dtype: np.dtype[Any]) -> Array:
    """Return ``values`` as a 1-D array."""
    if values is None:
        return np.zeros(0, object if dtype == BYTES else dtype)
    if isinstance(values, np.ndarray):
        return values
    return object_array(values) if dtype == BYTES else np.array(values, dtype)


def _splits(counts: Ints) -> Ints:
    splits = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=splits[1:])
    return splits


class Assembler(Generic[F]):
    """Base class of assemblers: one feature, and its precomputed properties."""

    def __init__(self, feature: F) -> None:
        self.feature = feature
        self.dtype = feature.dtype
        self.array_dtype = np.dtype(object) if feature.dtype == BYTES else feature.dtype

    def one(self, values: Sequence[Values]) -> Any:
        """Return the value for a single record."""
        raise NotImplementedError

    def batch(self, columns: Sequence[Column]) -> Any:
        """Return the value for n records."""
        raise NotImplementedError

    def rows(self, columns: Sequence[Column]) -> Any:
        """Return the n values of n records."""
        column = columns[0]
        splits = _splits(column.counts).tolist()
        return [self.one([column.values[a:b]]) for a, b in itertools.pairwise(splits)]

    def row(self, value: Any) -> Any:
        """Return the result of ``rows`` for a single record, from its value."""
        return [value]

    @property
    def packs(self) -> bool:
        """Return whether ``packed`` differs from ``rows``."""
        return type(self).packed is not Assembler.packed

    def packed(self, columns: Sequence[Column]) -> Any:
        """Return the n values of n records, concatenated if they differ in length."""
        return self.rows(columns)

    @property
    def needs_values(self) -> bool:
        """Return whether ``check`` depends on the values and not only on their number."""
        return False

    def check(self, columns: Sequence[Column]) -> None:
        """Raise the errors of ``rows``; the columns need no values unless ``needs_values``."""


class Fixed(Assembler[FixedLenFeature]):
    """Assembler of FixedLenFeature: a dense array."""

    def __init__(self, feature: FixedLenFeature) -> None:
        super().__init__(feature)
        self.shape = feature.shape
        self.size = math.prod(feature.shape)
        self.is_value = feature.shape == ()
        self.scalar = None if self.dtype == BYTES else self.dtype.type
        self.default: Array | None = None
        if feature.default_value is not None:
            default = list(feature.default_value)
            self.default = object_array(default) if self.dtype == BYTES else np.array(default, self.dtype)

    def one(self, values: Sequence[Values]) -> Any:
        """Return an array of the feature's shape; a scalar or bytes if that is ()."""
        items = values[0]
        if items is None:
            if self.default is None:
                raise self._missing(0)
            items = self.default.copy()
        if len(items) != self.size:
            raise self._wrong_count(0, len(items))
        if self.is_value:
            return items[0] if self.scalar is None else self.scalar(items[0])
        return _array(items, self.dtype).reshape(self.shape)

    def batch(self, columns: Sequence[Column]) -> Array:
        """Return an array of shape (n, *shape)."""
        self.check(columns)
        column = columns[0]
        if column.present is None:
            return column.values.reshape(len(column.counts), *self.shape)
        return self._with_defaults(column, column.present)

    def check(self, columns: Sequence[Column]) -> None:
        """Check that each record has the number of values of the shape, or there is a default."""
        column = columns[0]
        if column.each != self.size:
            wrong = column.counts != self.size
            if column.present is not None:
                wrong &= column.present
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                raise self._wrong_count(row, int(column.counts[row]))
        if column.present is not None and self.default is None:
            raise self._missing(int(np.flatnonzero(~column.present)[0]))

    def _with_defaults(self, column: Column, present: npt.NDArray[np.bool_]) -> Array:
        """Return the batch, with the default for records without the feature."""
        result = np.empty((len(present), self.size), self.array_dtype)
        result[present] = column.values.reshape(-1, self.size)
        result[~present] = self.default
        return result.reshape(-1, *self.shape)

    def rows(self, columns: Sequence[Column]) -> Array:
        """Return an array of shape (n, *shape)."""
        return self.batch(columns)

    def row(self, value: Any) -> Array:
        """Return an array of shape (1, *shape)."""
        if not self.is_value:
            expanded: Array = value[None]
            return expanded
        return object_array([value]) if self.dtype == BYTES else np.array([value])

    @staticmethod
    def _missing(row: int) -> Problem:
        return Problem(row, "is required, but missing. Set default_value, or use VarLenFeature")

    def _wrong_count(self, row: int, count: int) -> Problem:
        return Problem(
            row,
            f"holds {count} values, but shape {self.shape} needs {self.size}. "
            "Correct the shape, or use VarLenFeature, RaggedFeature or FixedLenSequenceFeature",
        )


class VarLen(Assembler[VarLenFeature]):
    """Assembler of VarLenFeature: a SparseTensor of rank 1 for one record, of rank 2 for n."""

    def one(self, values: Sequence[Values]) -> SparseTensor:
        """Return the values of one record; all cells are present."""
        items = _array(values[0], self.dtype)
        return SparseTensor(np.arange(len(items))[:, None], items, [len(items)])

    def batch(self, columns: Sequence[Column]) -> SparseTensor:
        """Return the rows of all records; shorter rows have fewer cells."""
        return self.packed(columns).sparse_batch()

    def packed(self, columns: Sequence[Column]) -> RaggedColumn:
        """Return the cells of all rows, concatenated."""
        return RaggedColumn(columns[0].values, _splits(columns[0].counts), sparse=True)


class FixedSequence(Assembler[FixedLenSequenceFeature]):
    """Assembler of FixedLenSequenceFeature: rows of one shape, padded in a batch."""

    def __init__(self, feature: FixedLenSequenceFeature) -> None:
        super().__init__(feature)
        self.shape = feature.shape
        self.size = math.prod(feature.shape)
        default = feature.default_value
        self.padding = (b"" if self.dtype == BYTES else 0) if default is None else default

    def one(self, values: Sequence[Values]) -> Array:
        """Return an array of shape (rows, *shape)."""
        items = _array(values[0], self.dtype)
        if len(items) % self.size:
            raise self._wrong_count(0, len(items))
        return items.reshape(-1, *self.shape)

    def batch(self, columns: Sequence[Column]) -> Array:
        """Return an array of shape (n, max rows, *shape)."""
        self.check(columns)
        counts = columns[0].counts
        lengths = counts // self.size
        result = filled((len(counts), lengths.max(initial=0), *self.shape), self.padding, self.array_dtype)
        result[np.arange(result.shape[1]) < lengths[:, None]] = columns[0].values.reshape(-1, *self.shape)
        return result

    def rows(self, columns: Sequence[Column]) -> list[Array]:
        """Return the n arrays; an error names the record."""
        self.check(columns)
        result: list[Array] = super().rows(columns)
        return result

    def packed(self, columns: Sequence[Column]) -> RaggedColumn:
        """Return the rows of all records, concatenated."""
        self.check(columns)
        return RaggedColumn(columns[0].values.reshape(-1, *self.shape), _splits(columns[0].counts // self.size))

    def check(self, columns: Sequence[Column]) -> None:
        """Check that each record has a whole number of rows."""
        wrong = columns[0].counts % self.size != 0
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise self._wrong_count(row, int(columns[0].counts[row]))

    def _wrong_count(self, row: int, count: int) -> Problem:
        return Problem(row, f"holds {count} values, which is not a whole number of rows of shape {self.shape}")


class Ragged(Assembler[RaggedFeature]):
    """Assembler of RaggedFeature: a RaggedTensor, or an array for one record without ragged partitions.

    Every kind of partition is converted to row splits, from the innermost to the outermost; the rows of one are the
    values of the next. Partitions differ between records, so records with partitions are assembled one by one.
    """

    def one(self, values: Sequence[Values]) -> Array | RaggedTensor:
        """Return the values of one record, in rows."""
        flat = _array(values[0], self.dtype)
        inner = self.feature.inner_shape
        if len(flat) % math.prod(inner):
            raise Problem(0, f"holds {len(flat)} values, which is not a whole number of rows of shape {inner}")
        result: Array | RaggedTensor = flat.reshape(-1, *inner)
        keyed = [_array(items, np.dtype(np.int64)) for items in values[1:]]
        for partition in reversed(self.feature.outer_partitions):
            given = None if isinstance(partition, UniformRowLength) else keyed.pop()
            result = RaggedTensor(result, _checked_splits(partition, given, len(result)))
        return result

    def batch(self, columns: Sequence[Column]) -> RaggedTensor:
        """Return the concatenated values of all records, split by record."""
        if not self.feature.partitions:
            return RaggedTensor(columns[0].values, _splits(columns[0].counts))
        records = self.rows(columns)
        if not records:
            nothing: RaggedTensor = _stack([self.one([None] * len(columns))])[:0]
            return nothing
        return _stack(records)

    @property
    def needs_values(self) -> bool:
        """Return True if there are partitions: they must match the values."""
        return bool(self.feature.partitions)

    @property
    def packs(self) -> bool:
        """Return False if there are partitions: nested rows are assembled record by record."""
        return not self.feature.partitions

    def packed(self, columns: Sequence[Column]) -> Any:
        """Return the concatenated values of all records if there are no partitions."""
        return RaggedColumn(columns[0].values, _splits(columns[0].counts)) if self.packs else self.rows(columns)

    def rows(self, columns: Sequence[Column]) -> list[Array | RaggedTensor]:
        """Return the n values, each as returned by ``one``."""
        splits = [_splits(column.counts).tolist() for column in columns]
        result = []
        for row in range(len(columns[0].counts)):
            items = [c.values[s[row] : s[row + 1]] for c, s in zip(columns, splits, strict=True)]
            try:
                result.append(self.one(items))
            except Problem as problem:
                raise Problem(row, str(problem)) from None
        return result


def _checked_splits(partition: Partition, given: Array | None, total: int) -> Ints:
    """Return the row splits of ``partition`` over ``total`` values."""
    splits = _to_splits(partition, given, total)
    if splits[0] != 0 or splits[-1] != total or (splits[1:] < splits[:-1]).any():
        what = f"of length {partition.length}" if isinstance(partition, UniformRowLength) else f"{partition.key!r}"
        shown = "" if given is None else f" with values {given.tolist()[:20]}"
        raise Problem(0, f"has {total} values, which do not match its {type(partition).__name__} {what}{shown}")
    return splits


def _to_splits(partition: Partition, given: Array | None, total: int) -> Ints:
    if isinstance(partition, UniformRowLength):
        return np.arange(0, total + 1, partition.length)
    numbers = np.zeros(0, np.int64) if given is None else given
    if isinstance(partition, RowSplits):
        return numbers if len(numbers) else np.zeros(1, np.int64)
    if isinstance(partition, RowLengths):
        return _splits(numbers)
    if isinstance(partition, RowStarts):
        return np.append(numbers, total)
    if isinstance(partition, RowLimits):
        return np.concatenate([np.zeros(1, np.int64), numbers])
    return _splits_of_ids(partition, numbers, total)


def _splits_of_ids(partition: ValueRowIds, ids: Ints, total: int) -> Ints:
    """Return the row splits of ascending row numbers, one per value; invalid splits if they are not that."""
    if len(ids) != total or (ids[1:] < ids[:-1]).any() or (len(ids) and ids[0] < 0):
        return np.array([0, -1], np.int64)
    rows = int(ids[-1]) + 1 if len(ids) else 0
    if rows > total + partition.max_empty_rows:
        raise Problem(
            0,
            f"has {total} values, but its ValueRowIds {partition.key!r} declares {rows:,} rows, which exceeds "
            f"max_empty_rows = {partition.max_empty_rows:,} rows without values. If the rows are valid, pass a larger "
            "max_empty_rows to RaggedFeature.ValueRowIds",
        )
    return np.searchsorted(ids, np.arange(rows + 1)).astype(np.int64)


def _stack(records: Sequence[Array | RaggedTensor]) -> RaggedTensor:
    """Stack records of equal ragged rank as the rows of one RaggedTensor."""
    return RaggedTensor(_concatenate(records), _splits(np.array([len(record) for record in records], np.int64)))


def _concatenate(parts: Sequence[Any]) -> Array | RaggedTensor:
    if not isinstance(parts[0], RaggedTensor):
        return np.concatenate(parts)
    lengths = np.concatenate([np.diff(part.row_splits) for part in parts])
    return RaggedTensor(_concatenate([part.values for part in parts]), _splits(lengths))


def assembler_for(feature: FeatureSpec) -> Assembler[Any]:
    """Return the assembler of ``feature``."""
    if isinstance(feature, FixedLenFeature):
        return Fixed(feature)
    if isinstance(feature, VarLenFeature):
        return VarLen(feature)
    return FixedSequence(feature) if isinstance(feature, FixedLenSequenceFeature) else Ragged(feature)
