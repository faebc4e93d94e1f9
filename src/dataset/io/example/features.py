"""The descriptions of features that parse.py reads an Example into: what is to come out, and nothing else.

They carry TensorFlow's names. The way to arrays is columns.py and parse.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec, as_shape

__all__ = ["FixedLenFeature", "FixedLenSequenceFeature", "RaggedFeature", "VarLenFeature"]

_DTYPES = (np.dtype(np.int64), np.dtype(np.float32), BYTES)


def _feature_dtype(owner: str, dtype: Any) -> np.dtype[Any]:
    """``dtype`` as one of the three that an Example can hold."""
    try:
        result = BYTES if dtype in {"bytes", "string"} else np.dtype(dtype)
    except TypeError:
        result = np.dtype(object)
    result = BYTES if result in {BYTES, np.dtype("U")} else result
    if dtype is None or result not in _DTYPES:
        raise ValueError(
            f"{owner}: dtype must be int64, float32, or bytes (str means the same), got {dtype!r}. An Example holds no "
            "others: convert after parsing"
        )
    return result


def _feature_shape(owner: str, shape: Any) -> tuple[int, ...]:
    """``shape`` with every dimension known."""
    try:
        dims = as_shape(shape)
    except (TypeError, ValueError):
        dims = None
    if dims is None or None in dims:
        raise ValueError(
            f"{owner}: every dimension of shape must be known and at least 0, got {shape!r}. "
            "Use FixedLenSequenceFeature, VarLenFeature or RaggedFeature for values whose number differs"
        )
    return tuple(int(dim) for dim in dims if dim is not None)


def _default(owner: str, value: Any, dtype: np.dtype[Any], count: int) -> Any:
    """``value`` as a tuple of ``count`` Python values of ``dtype``."""
    array = np.asarray(value, object) if dtype == BYTES else np.asarray(value)
    items = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
    kinds = {BYTES: bytes, _DTYPES[0]: int, _DTYPES[1]: int | float}
    if len(items) != count or not all(isinstance(item, kinds[dtype]) for item in items):
        name = "bytes" if dtype == BYTES else dtype.name
        raise ValueError(f"{owner}: default_value must hold {count} values of {name}, got {value!r}")
    return tuple(items)


@dataclass(frozen=True)
class FixedLenFeature:
    """A feature with the same number of values in every Example: a dense array.

    Args:
        shape: of one element's array; () for a single value.
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names; ``str`` means ``bytes``.
        default_value: what to use where an Example lacks the feature: as many values as the shape holds. Kept as a flat
            tuple. Default None: the feature must be there.

    Raises:
        ValueError: for a shape with an unknown dimension, another dtype, a default that does not fit.

    >>> FixedLenFeature((2, 2), np.float32, default_value=[[0, 0], [0, 1]]).default_value
    (0, 0, 0, 1)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _feature_shape("FixedLenFeature", self.shape))
        object.__setattr__(self, "dtype", _feature_dtype("FixedLenFeature", self.dtype))
        if self.default_value is not None:
            default = _default("FixedLenFeature", self.default_value, self.dtype, math.prod(self.shape))
            object.__setattr__(self, "default_value", default)

    @property
    def spec(self) -> ComponentSpec:
        """The spec of one parsed element."""
        return TensorSpec(self.shape, self.dtype)


@dataclass(frozen=True)
class VarLenFeature:
    """A feature with any number of values: a SparseTensor.

    Args:
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.

    Raises:
        ValueError: for another dtype.

    >>> VarLenFeature("int64").dtype
    dtype('int64')
    """

    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _feature_dtype("VarLenFeature", self.dtype))

    @property
    def spec(self) -> ComponentSpec:
        """The spec of one parsed element."""
        return SparseTensorSpec((None,), self.dtype)


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """A feature with any number of rows of one shape: a dense array, padded to the longest where several are parsed.

    Args:
        shape: of one row.
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.
        allow_missing: whether an Example may lack the feature, which then has no rows. An Example's features need
            True, as in TensorFlow; only the feature lists of a SequenceExample can do with False.
        default_value: one value to pad with. Default 0, or ``b""``.

    Raises:
        ValueError: for a shape with an unknown or empty dimension, another dtype, a default that does not fit.

    >>> FixedLenSequenceFeature((2,), np.int64, allow_missing=True, default_value=-1).default_value
    -1
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allow_missing: bool = False
    default_value: Any = None

    def __post_init__(self) -> None:
        shape = _feature_shape("FixedLenSequenceFeature", self.shape)
        if not math.prod(shape):
            raise ValueError(f"FixedLenSequenceFeature: a row must hold at least one value, got shape {shape}")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", _feature_dtype("FixedLenSequenceFeature", self.dtype))
        if self.default_value is not None:
            default = _default("FixedLenSequenceFeature", self.default_value, self.dtype, 1)
            object.__setattr__(self, "default_value", default[0])

    @property
    def spec(self) -> ComponentSpec:
        """The spec of one parsed element."""
        return TensorSpec((None, *self.shape), self.dtype)


@dataclass(frozen=True)
class RowSplits:
    """A partition that the feature ``key`` gives as positions: row i is ``values[splits[i]:splits[i + 1]]``."""

    key: str


@dataclass(frozen=True)
class RowLengths:
    """A partition that the feature ``key`` gives as the number of values in each row."""

    key: str


@dataclass(frozen=True)
class RowStarts:
    """A partition that the feature ``key`` gives as each row's first position."""

    key: str


@dataclass(frozen=True)
class RowLimits:
    """A partition that the feature ``key`` gives as the position after each row's last value."""

    key: str


@dataclass(frozen=True)
class ValueRowIds:
    """A partition that the feature ``key`` gives as each value's row, ascending.

    Args:
        key: of the feature.
        max_empty_rows: how many more rows than values an Example may declare. A record of a few bytes can declare
            billions of empty rows, and each of them takes eight bytes of memory. Default 65,536.
    """

    key: str
    max_empty_rows: int = 1 << 16


@dataclass(frozen=True)
class UniformRowLength:
    """A partition into rows of ``length`` values.

    Raises:
        ValueError: for a length below 1.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"UniformRowLength: length must be at least 1, got {self.length}")


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength


@dataclass(frozen=True)
class RaggedFeature:
    """A feature with rows of different lengths: a RaggedTensor, or a 1-D array where one element has no partitions.

    Args:
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.
        value_key: the feature that holds the values. Default None: the name that it has in the dict of features.
        partitions: how the values fall into rows, the outermost partition first: ``RaggedFeature.RowSplits(key)``,
            ``RowLengths``, ``RowStarts``, ``RowLimits``, ``ValueRowIds``, or ``UniformRowLength(length)``. Uniform rows
            at the end of the partitions become dimensions of the values. Default: none.
        row_splits_dtype: only int64, which is what a RaggedTensor has.

    Raises:
        ValueError: for another dtype, or something else as a partition.

    >>> RaggedFeature(np.int64, value_key="words", partitions=[RaggedFeature.RowLengths("sentences")]).spec
    RaggedTensorSpec(shape=(None, None), dtype=int64, ragged_rank=1, row_splits_dtype=int64)
    """

    dtype: np.dtype[Any]
    value_key: str | None = None
    partitions: tuple[Partition, ...] = ()
    row_splits_dtype: np.dtype[Any] = field(default=np.dtype(np.int64))

    RowSplits: ClassVar[type[RowSplits]] = RowSplits
    RowLengths: ClassVar[type[RowLengths]] = RowLengths
    RowStarts: ClassVar[type[RowStarts]] = RowStarts
    RowLimits: ClassVar[type[RowLimits]] = RowLimits
    ValueRowIds: ClassVar[type[ValueRowIds]] = ValueRowIds
    UniformRowLength: ClassVar[type[UniformRowLength]] = UniformRowLength

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _feature_dtype("RaggedFeature", self.dtype))
        object.__setattr__(self, "partitions", tuple(self.partitions))
        for partition in self.partitions:
            if not isinstance(partition, Partition):
                raise ValueError(  # noqa: TRY004  # one kind of error for all that a feature can have wrong
                    f"RaggedFeature: partitions must be RaggedFeature.RowSplits, RowLengths, RowStarts, RowLimits, "
                    f"ValueRowIds or UniformRowLength, got {partition!r}"
                )
        if np.dtype(self.row_splits_dtype) != np.int64:
            raise ValueError(f"RaggedFeature: row_splits are int64, got row_splits_dtype={self.row_splits_dtype!r}")
        object.__setattr__(self, "row_splits_dtype", np.dtype(np.int64))

    @property
    def inner_shape(self) -> tuple[int, ...]:
        """The dimensions that the values have besides the first: the uniform partitions at the end."""
        inner: list[int] = []
        for partition in reversed(self.partitions):
            if not isinstance(partition, UniformRowLength):
                break
            inner.insert(0, partition.length)
        return tuple(inner)

    @property
    def outer_partitions(self) -> tuple[Partition, ...]:
        """The partitions before those, which make ragged dimensions."""
        return self.partitions[: len(self.partitions) - len(self.inner_shape)]

    @property
    def spec(self) -> ComponentSpec:
        """The spec of one parsed element."""
        rank = len(self.outer_partitions)
        shape = (*[None] * (rank + 1), *self.inner_shape)
        return RaggedTensorSpec(shape, self.dtype, rank) if rank else TensorSpec(shape, self.dtype)


FeatureSpec = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | RaggedFeature


def keys_of(name: str, feature: FeatureSpec) -> Sequence[str]:
    """The keys of an Example that ``feature`` reads: its values first, then its partitions."""
    if not isinstance(feature, RaggedFeature):
        return [name]
    return [feature.value_key or name, *[p.key for p in feature.partitions if not isinstance(p, UniformRowLength)]]


def dtype_of(feature: FeatureSpec, position: int) -> npt.DTypeLike:
    """The dtype of the key at ``position`` in ``keys_of``: partitions are always int64."""
    return feature.dtype if position == 0 else np.dtype(np.int64)
