"""Feature configurations for parse.py: the kind, shape and dtype of the parsed values.

The classes have TensorFlow's names. They are frozen, so their constructors set attributes through ``vars``. assemble.py
and parse.py do the parsing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dataset.plan.spec import BYTES, ComponentSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec, as_shape

ShapeLike: TypeAlias = "int | Sequence[int]"

_DTYPES = {np.dtype(kind): np.dtype(kind.replace("U", "S")) for kind in ("int64", "float32", "S", "U")}


def _feature_dtype(owner: str, dtype: Any) -> np.dtype[Any]:
    """Return ``dtype`` as one of the three dtypes that an Example can hold."""
    try:
        return _DTYPES[np.dtype("S" if dtype == "string" else dtype)]
    except (KeyError, TypeError):
        raise ValueError(
            f"{owner}: dtype must be int64, float32, or bytes (or str, which means bytes), got {dtype!r}. An Example "
            "can't hold other dtypes; convert the values after parsing"
        ) from None


def _feature_shape(owner: str, shape: Any) -> tuple[int, ...]:
    """Return ``shape`` as a tuple; every dimension must be known."""
    try:
        return tuple(map(operator.index, as_shape(shape)))  # type: ignore[arg-type]  # None is refused
    except (TypeError, ValueError):
        raise ValueError(
            f"{owner}: every dimension of shape must be known and at least 0, got {shape!r}. "
            "Use FixedLenSequenceFeature, VarLenFeature or RaggedFeature if the number of values varies"
        ) from None


def _default(owner: str, value: Any, dtype: np.dtype[Any], count: int) -> tuple[Any, ...] | None:
    """Return ``value`` as a tuple of ``count`` Python values of ``dtype``; None stays None."""
    if value is None:
        return None
    array = np.asarray(value, object) if dtype == BYTES else np.asarray(value)
    items = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
    kinds = {"S": bytes, "i": int, "f": int | float}
    if len(items) != count or not all(isinstance(item, kinds[dtype.kind]) for item in items):
        name = "bytes" if dtype == BYTES else dtype.name
        raise ValueError(f"{owner}: default_value must hold {count} values of {name}, got {value!r}")
    return tuple(items)


class Partition:
    """Partition of values into rows; the base class of the six kinds in RaggedFeature."""


@dataclass(frozen=True)
class _Stored(Partition):
    """Partition stored in the feature ``key``."""

    key: str


class FeatureSpec:
    """Configuration of a feature; the base class of the five kinds."""

    dtype: np.dtype[Any]
    spec: ComponentSpec
    """The spec of one parsed element."""
    inner_shape: tuple[int, ...] = ()
    """The shape of a row: of the values that are always together."""
    outer_partitions: tuple[Partition, ...] = ()
    """The partitions that become ragged dimensions."""


@dataclass(frozen=True, init=False)
class FixedLenFeature(FeatureSpec):
    """Configuration of a feature with the same number of values in every Example; parsed to a dense array.

    Args:
        shape: the shape of one element's array; () for a single value.
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names; ``str`` means ``bytes``.
        default_value: the values for an Example without the feature, as many as the shape requires. Stored as a flat
            tuple. Default None: the feature is required.

    Raises:
        ValueError: the shape has an unknown dimension, the dtype is not supported, or the default does not fit.

    >>> FixedLenFeature((2, 2), np.float32, default_value=[[0, 0], [0, 1]]).default_value
    (0, 0, 0, 1)
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    default_value: Any

    def __init__(self, shape: ShapeLike, dtype: npt.DTypeLike, default_value: Any = None) -> None:
        dims, kind = _feature_shape("FixedLenFeature", shape), _feature_dtype("FixedLenFeature", dtype)
        default = _default("FixedLenFeature", default_value, kind, math.prod(dims))
        vars(self).update(shape=dims, dtype=kind, default_value=default)
        vars(self).update(spec=TensorSpec(dims, kind), inner_shape=dims)


@dataclass(frozen=True, init=False)
class VarLenFeature(FeatureSpec):
    """Configuration of a feature with any number of values; parsed to a SparseTensor.

    Args:
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.

    Raises:
        ValueError: the dtype is not supported.

    >>> VarLenFeature("int64").dtype
    dtype('int64')
    """

    dtype: np.dtype[Any]

    def __init__(self, dtype: npt.DTypeLike) -> None:
        kind = _feature_dtype("VarLenFeature", dtype)
        vars(self).update(dtype=kind, spec=SparseTensorSpec((None,), kind))


@dataclass(frozen=True, init=False)
class SparseFeature(FeatureSpec):
    """Configuration of a SparseTensor whose values and indices are features of their own.

    Args:
        index_key: the key of the indices; a list of keys, one for each dimension, if there are several.
        value_key: the key of the values.
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.
        size: the size of the dimension; a list of sizes if ``index_key`` is a list.
        already_sorted: whether the values of each Example are in row-major order. Default False: they are sorted.

    Raises:
        ValueError: a key is empty, a size is below 1, there are not as many sizes as keys, or the dtype is not
            supported.

    >>> SparseFeature(["row", "column"], "weight", np.float32, [10, 20]).spec
    SparseTensorSpec(shape=(10, 20), dtype=float32)
    """

    index_key: str | tuple[str, ...]
    value_key: str
    dtype: np.dtype[Any]
    size: int | tuple[int, ...]
    already_sorted: bool

    def __init__(
        self,
        index_key: str | Sequence[str],
        value_key: str,
        dtype: npt.DTypeLike,
        size: ShapeLike,
        already_sorted: bool = False,
    ) -> None:
        is_one, kind = isinstance(index_key, str), _feature_dtype("SparseFeature", dtype)
        vars(self).update(index_key=index_key if is_one else tuple(index_key), value_key=value_key, dtype=kind)
        vars(self).update(size=size if is_one else _feature_shape("SparseFeature", size), already_sorted=already_sorted)
        if not (value_key and self.index_key and all(self.index_keys)):
            raise ValueError("SparseFeature: index_key and value_key must not be empty")
        if len(self.shape) != len(self.index_keys) or min(self.shape) < 1:
            wanted = f"a size of at least 1 for each of the keys {self.index_keys}"
            raise ValueError(f"SparseFeature: size must hold {wanted}, got {self.size!r}")

    @property
    def index_keys(self) -> tuple[str, ...]:
        """Return the key of the indices in each dimension."""
        return (self.index_key,) if isinstance(self.index_key, str) else self.index_key

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of one parsed element."""
        return _feature_shape("SparseFeature", self.size)

    @property
    def spec(self) -> ComponentSpec:  # type: ignore[override]  # the instances have only the attributes of TensorFlow's
        """Return the spec of one parsed element."""
        return SparseTensorSpec(self.shape, self.dtype)


@dataclass(frozen=True, init=False)
class FixedLenSequenceFeature(FeatureSpec):
    """Configuration of a feature with any number of rows of one shape; parsed to a dense array, padded in a batch.

    In a SequenceExample, a row is a step of a feature list.

    Args:
        shape: the shape of one row.
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.
        allow_missing: whether the feature may be missing; it then has no rows. Default False, which only feature lists
            of a SequenceExample support: features of an Example require True, as in TensorFlow.
        default_value: the padding value. Default 0, or ``b""``.

    Raises:
        ValueError: the shape has an unknown or zero dimension, the dtype is not supported, or the default does not fit.

    >>> FixedLenSequenceFeature((2,), np.int64, allow_missing=True, default_value=-1).default_value
    -1
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    allow_missing: bool
    default_value: Any

    def __init__(
        self, shape: ShapeLike, dtype: npt.DTypeLike, allow_missing: bool = False, default_value: Any = None
    ) -> None:
        dims = _feature_shape("FixedLenSequenceFeature", shape)
        if not math.prod(dims):
            raise ValueError(f"FixedLenSequenceFeature: a row must hold at least one value, got shape {dims}")
        kind = _feature_dtype("FixedLenSequenceFeature", dtype)
        (default,) = _default("FixedLenSequenceFeature", default_value, kind, 1) or (None,)
        vars(self).update(shape=dims, dtype=kind, allow_missing=allow_missing, default_value=default)
        vars(self).update(spec=TensorSpec((None, *dims), kind), inner_shape=dims)


@dataclass(frozen=True, init=False)
class RaggedFeature(FeatureSpec):
    """Configuration of a feature with rows of different lengths; parsed to a RaggedTensor.

    Without partitions, one element is parsed to a 1-D array.

    Args:
        dtype: ``np.int64``, ``np.float32`` or ``bytes``, or their names.
        value_key: the key of the values in the Example. Default None: the name in the dict of features.
        partitions: how the values are split into rows, outermost partition first: ``RaggedFeature.RowSplits(key)``,
            ``RowLengths``, ``RowStarts``, ``RowLimits``, ``ValueRowIds``, or ``UniformRowLength(length)``. Uniform
            partitions at the end become dimensions of the values. Default: none.
        row_splits_dtype: must be int64, the dtype of the row splits of a RaggedTensor.

    Raises:
        ValueError: the dtype is not supported, or a partition is not one of these classes.

    >>> RaggedFeature(np.int64, value_key="words", partitions=[RaggedFeature.RowLengths("sentences")]).spec
    RaggedTensorSpec(shape=(None, None), dtype=int64, ragged_rank=1, row_splits_dtype=int64)
    """

    dtype: np.dtype[Any]
    value_key: str | None
    partitions: tuple[Partition, ...]
    row_splits_dtype: np.dtype[Any]

    class RowSplits(_Stored):
        """Partition stored in the feature ``key`` as row splits: row i is ``values[splits[i]:splits[i + 1]]``."""

    class RowLengths(_Stored):
        """Partition stored in the feature ``key`` as the number of values in each row."""

    class RowStarts(_Stored):
        """Partition stored in the feature ``key`` as the first position of each row."""

    class RowLimits(_Stored):
        """Partition stored in the feature ``key`` as the position after the last value of each row."""

    @dataclass(frozen=True)
    class ValueRowIds(_Stored):
        """Partition stored in the feature ``key`` as the row number of each value, ascending.

        Args:
            key: the key of the feature.
            max_empty_rows: how many more rows than values an Example may declare. A record of a few bytes could declare
                billions of empty rows, and each takes eight bytes of memory. Default 65,536.
        """

        max_empty_rows: int = 1 << 16

    @dataclass(frozen=True)
    class UniformRowLength(Partition):
        """Partition into rows of ``length`` values.

        Raises:
            ValueError: the length is below 1.
        """

        length: int

        def __post_init__(self) -> None:
            if self.length < 1:
                raise ValueError(f"UniformRowLength: length must be at least 1, got {self.length}")

    def __init__(
        self,
        dtype: npt.DTypeLike,
        value_key: str | None = None,
        partitions: Sequence[Partition] = (),
        row_splits_dtype: npt.DTypeLike = np.int64,
    ) -> None:
        partitions = tuple(partitions)
        for partition in partitions:
            if not isinstance(partition, Partition):
                raise ValueError(  # noqa: TRY004  # the same type for all errors of a feature
                    f"RaggedFeature: partitions must be RaggedFeature.RowSplits, RowLengths, RowStarts, RowLimits, "
                    f"ValueRowIds or UniformRowLength, got {partition!r}"
                )
        if np.dtype(row_splits_dtype) != np.int64:
            raise ValueError(f"RaggedFeature: row_splits_dtype must be int64, got {row_splits_dtype!r}")
        kind, splits_dtype = _feature_dtype("RaggedFeature", dtype), np.dtype(np.int64)
        vars(self).update(dtype=kind, value_key=value_key, partitions=partitions, row_splits_dtype=splits_dtype)
        rank = max((i for i, part in enumerate(partitions, 1) if isinstance(part, _Stored)), default=0)
        inner = tuple(part.length for part in partitions[rank:] if isinstance(part, RaggedFeature.UniformRowLength))
        shape = (*[None] * (rank + 1), *inner)
        spec = RaggedTensorSpec(shape, kind, rank) if rank else TensorSpec(shape, kind)
        vars(self).update(spec=spec, inner_shape=inner, outer_partitions=partitions[:rank])


StepFeature = FixedLenSequenceFeature | VarLenFeature | RaggedFeature
"""A feature of a feature list, whose steps are parsed."""


def keys_of(name: str, feature: FeatureSpec) -> Sequence[str]:
    """Return the keys of an Example that ``feature`` reads: its values first, then its indices or partitions."""
    if isinstance(feature, SparseFeature):
        return [feature.value_key, *feature.index_keys]
    if not isinstance(feature, RaggedFeature):
        return [name]
    return [feature.value_key or name, *[part.key for part in feature.partitions if isinstance(part, _Stored)]]
