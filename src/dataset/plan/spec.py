"""Component specs: the kind, shape and dtype of a component, known before any element is produced.

Shapes are tuples with None for an unknown dimension, or None if the rank is unknown, too. Text and bytes have the
dtype ``bytes`` (``np.dtype("S")``): one value is a ``bytes``, an array of them an object array of ``bytes``, because
NumPy's own fixed-width ``S`` arrays lose trailing zero bytes. Any other Python object has the dtype ``object``.

A spec states only what is true of every element. Where user code determines the output, one element is produced: its
kinds, dtypes and ranks are assumed for all elements, and operations check them. Its sizes are not assumed, so
dimensions are None. A TensorSpec also stores these sizes (``as_observed``), for adapters to frameworks that need sizes;
the adapters check every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.plan.nested import is_dataset
from dataset.plan.structure import Structure, map_structure, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor, as_splits_dtype

Shape = tuple[int | None, ...] | None
BYTES = np.dtype("S")


def as_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the canonical dtype of a spec: BYTES for NumPy's string dtypes and ``str``, else in native byte order."""
    result = np.dtype(dtype)
    if result.kind in "SUT":
        return BYTES
    return result if result.isnative else result.newbyteorder("=")


def as_shape(shape: Any) -> Shape:
    """``shape`` as a tuple of ints and None; None stays None. -1 is not a dimension here.

    Raises:
        ValueError: for a negative dimension.
        TypeError: for anything that is not a sequence of ints.
    """
    if shape is None:
        return None
    dims = (shape,) if isinstance(shape, int | np.integer) else shape
    if isinstance(dims, str) or not all(dim is None or isinstance(dim, int | np.integer) for dim in dims):
        raise TypeError(f"a shape is a sequence of ints and None, got {shape!r}")
    result = tuple(None if dim is None else int(dim) for dim in dims)
    if any(dim is not None and dim < 0 for dim in result):
        raise ValueError(f"a shape has dimensions of at least 0, or None where unknown, got {shape!r}")
    return result


def fits_in(shape: Shape, room: Shape) -> bool:
    """Return whether ``shape`` has the rank of ``room`` and no known dimension is larger than that of ``room``."""
    if shape is None or room is None:
        return True
    return len(shape) == len(room) and all(
        size is None or limit is None or size <= limit for size, limit in zip(shape, room, strict=True)
    )


class ComponentSpec:
    """Base class of component specs."""

    is_component: ClassVar[bool] = True  # not a record of a shape and a dtype: see structure.py
    shape: Shape
    dtype: np.dtype[Any]

    def _with_shape(self, shape: Shape) -> ComponentSpec:
        raise NotImplementedError

    def _is_like(self, other: ComponentSpec) -> bool:
        """Return whether both have the same kind and dtype, so that only their shapes may differ."""
        return type(self) is type(other) and self.dtype == other.dtype

    def batched(self, size: int | None) -> ComponentSpec:
        """Return the spec of a batch of ``size`` such components; ``size`` is None if it varies."""
        return self._with_shape(None if self.shape is None else (size, *self.shape))

    def unbatched(self) -> ComponentSpec:
        """Return the spec of one row.

        Raises:
            ValueError: if the component is a scalar.
        """
        if self.shape == ():
            raise ValueError("a scalar has no rows")
        return self._with_shape(None if self.shape is None else self.shape[1:])

    def most_general_with(self, other: ComponentSpec) -> ComponentSpec | None:
        """Return the narrowest spec that allows both; None if their kinds or dtypes differ."""
        if not self._is_like(other):
            return None
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            return self._with_shape(None)
        pairs = zip(self.shape, other.shape, strict=True)
        return self._with_shape(tuple(a if a == b else None for a, b in pairs))

    def allows(self, other: ComponentSpec) -> bool:
        """Return whether every component of spec ``other`` is one of this spec."""
        if not self._is_like(other):
            return False
        if self.shape is None:
            return True
        if other.shape is None or len(self.shape) != len(other.shape):
            return False
        return all(mine is None or mine == theirs for mine, theirs in zip(self.shape, other.shape, strict=True))

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether ``value``, a component or a spec, may match this spec; an unknown dimension matches any."""
        other = value if isinstance(value, ComponentSpec) else spec_of(value)
        if not isinstance(other, ComponentSpec) or not self._is_like(other):
            return False
        if self.shape is None or other.shape is None:
            return True
        return len(self.shape) == len(other.shape) and all(
            a is None or b is None or a == b for a, b in zip(self.shape, other.shape, strict=True)
        )

    def _dtype_name(self) -> str:
        return "bytes" if self.dtype == BYTES else self.dtype.name


@dataclass(frozen=True, repr=False)
class TensorSpec(ComponentSpec):
    """Spec of an array, or of a scalar if the shape is ().

    Args:
        shape: dimensions, None for an unknown one; None for an unknown rank.
        dtype: a NumPy dtype; ``bytes`` (or ``str``) for strings. Default float32, as in TensorFlow.
        name: shown by ``repr``, ignored in comparisons.

    >>> TensorSpec((None, 28, 28), np.uint8)
    TensorSpec(shape=(None, 28, 28), dtype=uint8)
    >>> TensorSpec((), bytes).is_compatible_with(b"abc")
    True
    """

    shape: Shape
    dtype: np.dtype[Any] = field(default=np.dtype(np.float32))
    name: str | None = field(default=None, compare=False)
    _observed: ClassVar[Shape] = None  # set on an instance: the shape of one element, where ``shape`` does not state it

    def __init__(self, shape: Any, dtype: npt.DTypeLike = np.float32, name: str | None = None) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    def _with_shape(self, shape: Shape) -> TensorSpec:
        return TensorSpec(shape, self.dtype, self.name)

    def batched(self, size: int | None) -> TensorSpec:
        """Return the spec of a batch of ``size`` such components; ``size`` is None if it varies."""
        return _with_observed(super().batched(size), None if self._observed is None else (size, *self._observed))

    def unbatched(self) -> TensorSpec:
        """Return the spec of one row."""
        return _with_observed(super().unbatched(), self._observed and self._observed[1:])

    def most_general_with(self, other: ComponentSpec) -> ComponentSpec | None:
        """Return the narrowest spec that allows both; None if their kinds or dtypes differ."""
        both = super().most_general_with(other)
        mine, theirs = as_observed(self), as_observed(other)
        if both is None or (mine is self and theirs is other):
            return both
        observed = mine.most_general_with(theirs)
        return _with_observed(both, None if observed is None else observed.shape)

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        return f"TensorSpec(shape={self.shape}, dtype={self._dtype_name()}{name})"


def _with_observed(spec: Any, observed: Shape) -> TensorSpec:
    """Store the observed shape of one element in ``spec``, a new TensorSpec, and return it."""
    result: TensorSpec = spec
    if observed:
        object.__setattr__(result, "_observed", observed)
    return result


def as_observed(spec: ComponentSpec) -> ComponentSpec:
    """Return the spec with unknown dimensions replaced by the sizes of one observed element.

    Other elements may have other sizes: the caller must check each element.
    """
    if isinstance(spec, TensorSpec) and spec._observed is not None:  # noqa: SLF001  # its own class, in this module
        return TensorSpec(spec._observed, spec.dtype, spec.name)  # noqa: SLF001
    return spec


@dataclass(frozen=True, repr=False)
class RaggedTensorSpec(ComponentSpec):
    """Spec of a RaggedTensor.

    Args:
        shape: dimensions, None for a ragged one.
        dtype: the dtype of the values. Default float32.
        ragged_rank: how many of the dimensions after the first are ragged. Default: all of them. 0 is a row of a
            RaggedTensor: an array, which becomes a RaggedTensor again when it is batched.
        row_splits_dtype: int32 or int64.

    Raises:
        ValueError: if there are fewer dimensions than ``ragged_rank`` needs.

    >>> RaggedTensorSpec((4, None), np.int64)
    RaggedTensorSpec(shape=(4, None), dtype=int64, ragged_rank=1, row_splits_dtype=int64)
    """

    shape: Shape
    dtype: np.dtype[Any] = field(default=np.dtype(np.float32))
    ragged_rank: int = 1
    row_splits_dtype: np.dtype[Any] = field(default=np.dtype(np.int64))

    def __init__(
        self,
        shape: Any,
        dtype: npt.DTypeLike = np.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: npt.DTypeLike = np.int64,
    ) -> None:
        dims = as_shape(shape)
        if ragged_rank is None:
            if dims is None:
                raise ValueError("RaggedTensorSpec: give ragged_rank if the shape is unknown")
            ragged_rank = len(dims) - 1
        if ragged_rank < 0 or (dims is not None and len(dims) < ragged_rank + 1 and ragged_rank > 0):
            raise ValueError(f"RaggedTensorSpec: shape {shape!r} is too short for ragged_rank {ragged_rank}")
        object.__setattr__(self, "shape", dims)
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "ragged_rank", ragged_rank)
        object.__setattr__(self, "row_splits_dtype", as_splits_dtype("RaggedTensorSpec", row_splits_dtype))

    def batched(self, size: int | None) -> RaggedTensorSpec:
        """Return the spec of a batch: with one more dimension, and one more ragged dimension."""
        shape = None if self.shape is None else (size, *self.shape)
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank + 1, self.row_splits_dtype)

    def unbatched(self) -> ComponentSpec:
        """Return the spec of one row."""
        if self.ragged_rank == 0:
            return self._dense().unbatched()
        shape = None if self.shape is None else self.shape[1:]
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank - 1, self.row_splits_dtype)

    def allows(self, other: ComponentSpec) -> bool:
        """Return whether this spec allows every component of spec ``other``; with ragged_rank 0, also arrays."""
        if self.ragged_rank == 0 and not isinstance(other, RaggedTensorSpec):
            return self._dense().allows(other)
        return super().allows(other)

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether ``value``, a component or a spec, may match this spec; with ragged_rank 0, also an array."""
        if self.ragged_rank == 0 and not isinstance(value, RaggedTensorSpec):
            return self._dense().is_compatible_with(value)
        return super().is_compatible_with(value)

    def _dense(self) -> TensorSpec:
        return TensorSpec(self.shape, self.dtype)

    def _is_like(self, other: ComponentSpec) -> bool:
        return (
            isinstance(other, RaggedTensorSpec)
            and super()._is_like(other)
            and self.ragged_rank == other.ragged_rank
            and self.row_splits_dtype == other.row_splits_dtype
        )

    def _with_shape(self, shape: Shape) -> RaggedTensorSpec:
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self.row_splits_dtype)

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec(shape={self.shape}, dtype={self._dtype_name()}, ragged_rank={self.ragged_rank}, "
            f"row_splits_dtype={self.row_splits_dtype.name})"
        )


@dataclass(frozen=True, repr=False)
class SparseTensorSpec(ComponentSpec):
    """Spec of a SparseTensor.

    Args:
        shape: the shape of the dense array.
        dtype: the dtype of the values. Default float32.

    >>> SparseTensorSpec((None,), np.int64)
    SparseTensorSpec(shape=(None,), dtype=int64)
    """

    shape: Shape
    dtype: np.dtype[Any] = field(default=np.dtype(np.float32))

    def __init__(self, shape: Any = None, dtype: npt.DTypeLike = np.float32) -> None:
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))

    def _with_shape(self, shape: Shape) -> SparseTensorSpec:
        return SparseTensorSpec(shape, self.dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec(shape={self.shape}, dtype={self._dtype_name()})"


@dataclass(frozen=True, repr=False)
class DatasetSpec(ComponentSpec):
    """Spec of a Dataset that is a component of an element, such as those of ``window``.

    Args:
        element_spec: the spec of the inner dataset's elements.
        dataset_shape: the shape of a batch of datasets; () for a single dataset.

    >>> DatasetSpec(TensorSpec((), np.int64))
    DatasetSpec(TensorSpec(shape=(), dtype=int64))
    """

    element_spec: Any
    shape: Shape = ()
    dtype: np.dtype[Any] = field(default=np.dtype(object), init=False, compare=False)

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        flatten_spec(element_spec)
        object.__setattr__(self, "element_spec", element_spec)
        object.__setattr__(self, "shape", as_shape(dataset_shape))
        object.__setattr__(self, "dtype", np.dtype(object))

    def _is_like(self, other: ComponentSpec) -> bool:
        if not isinstance(other, DatasetSpec) or structure_of(self.element_spec) != structure_of(other.element_spec):
            return False
        return all(mine._is_like(theirs) for mine, theirs in self._pairs(other))  # noqa: SLF001  # its own base

    def _pairs(self, other: Any) -> list[tuple[ComponentSpec, ComponentSpec]]:
        """Return pairs of the inner components of two DatasetSpecs of equal structure."""
        return list(zip(flatten_spec(self.element_spec)[1], flatten_spec(other.element_spec)[1], strict=True))

    def most_general_with(self, other: ComponentSpec) -> ComponentSpec | None:
        """Return the narrowest spec that allows both, with the inner specs merged, too; None if there is none."""
        outer = super().most_general_with(other)
        if outer is None:
            return None
        inner = [mine.most_general_with(theirs) for mine, theirs in self._pairs(other)]
        return DatasetSpec(structure_of(self.element_spec).unflatten(inner), outer.shape)

    def allows(self, other: ComponentSpec) -> bool:
        """Return whether this spec allows every dataset of spec ``other``."""
        return super().allows(other) and all(mine.allows(theirs) for mine, theirs in self._pairs(other))

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether ``value``, a dataset or a spec, may match this spec."""
        other = value if isinstance(value, ComponentSpec) else spec_of(value)
        return super().is_compatible_with(other) and all(
            mine.is_compatible_with(theirs) for mine, theirs in self._pairs(other)
        )

    def _with_shape(self, shape: Shape) -> DatasetSpec:
        return DatasetSpec(self.element_spec, shape)

    def __repr__(self) -> str:
        shape = f", dataset_shape={self.shape}" if self.shape != () else ""
        return f"DatasetSpec({self.element_spec!r}{shape})"


def is_dense(spec: ComponentSpec) -> bool:
    """Return whether the components are arrays or scalars."""
    return isinstance(spec, TensorSpec) or (isinstance(spec, RaggedTensorSpec) and spec.ragged_rank == 0)


def component_spec(value: Any) -> ComponentSpec:
    """Return the exact spec of one component."""
    if isinstance(value, np.ndarray):
        if value.dtype == object and value.size and all(map(is_dataset, value.ravel())):
            return _datasets_spec(value)
        return TensorSpec(value.shape, _array_dtype(value))
    if isinstance(value, np.generic):
        return TensorSpec((), value.dtype)
    if isinstance(value, bytes | str):
        return TensorSpec((), BYTES)
    if isinstance(value, RaggedTensor):
        dtype = _array_dtype(value.flat_values)
        return RaggedTensorSpec(value.shape, dtype, value.ragged_rank, value.row_splits_dtype)
    if isinstance(value, SparseTensor):
        return SparseTensorSpec(value.shape, _array_dtype(value.values))
    if isinstance(value, bool | int | float | complex | list):
        array = np.asarray(value)
        return TensorSpec(array.shape, _array_dtype(array))
    if is_dataset(value):
        return DatasetSpec(value.plan.element_spec)
    return TensorSpec((), object)


def _datasets_spec(datasets: npt.NDArray[Any]) -> ComponentSpec:
    """Return a spec of a batch of datasets that allows each of them."""
    spec: ComponentSpec = component_spec(datasets.flat[0])
    for dataset in datasets.flat[1:]:
        both = spec.most_general_with(component_spec(dataset))
        if both is None:
            return TensorSpec(datasets.shape, object)
        spec = both
    return spec._with_shape(datasets.shape)  # noqa: SLF001  # its own module


def _array_dtype(array: npt.NDArray[Any]) -> np.dtype[Any]:
    """Return the dtype; BYTES for an object array of strings. An empty object array counts as one."""
    if array.dtype == object:
        return BYTES if all(isinstance(item, bytes | str) for item in array.ravel()) else array.dtype
    return as_dtype(array.dtype)


def spec_of(element: Any) -> Any:
    """Return the spec of one element: its structure, with each component replaced by its spec.

    >>> spec_of((np.zeros((2, 3), np.float32), b"label"))
    (TensorSpec(shape=(2, 3), dtype=float32), TensorSpec(shape=(), dtype=bytes))
    """
    return map_structure(component_spec, element)


def flatten_spec(spec: Any) -> tuple[Structure, Sequence[ComponentSpec]]:
    """Return the structure of a nested spec, and the specs of its components.

    Raises:
        TypeError: if a component is not a spec.
    """
    structure = structure_of(spec)
    components = structure.flatten(spec)
    for component in components:
        if not isinstance(component, ComponentSpec):
            raise TypeError(f"an element spec consists of TensorSpec or similar specs, got {component!r}")
    return structure, components


def map_spec(function: Any, spec: Any) -> Any:
    """Apply ``function`` to the spec of each component, and return the nested result."""
    structure, components = flatten_spec(spec)
    return structure.unflatten([function(component) for component in components])


def without_sizes(spec: ComponentSpec) -> ComponentSpec:
    """Return the spec of components of the same kind, dtype and rank and of any size."""
    if isinstance(spec, DatasetSpec):
        spec = DatasetSpec(map_spec(without_sizes, spec.element_spec), spec.shape)
    unsized = spec._with_shape(None if spec.shape is None else (None,) * len(spec.shape))  # noqa: SLF001  # same module
    return _with_observed(unsized, spec.shape) if isinstance(spec, TensorSpec) else unsized


def common_spec(op: str, specs: Sequence[Any]) -> Any:
    """Return the narrowest spec that allows the elements of several datasets; ``op`` is named in errors.

    Raises:
        TypeError: if the datasets differ in structure, or a component in kind or dtype.
    """
    structure, merged = flatten_spec(specs[0])
    for spec in specs[1:]:
        other, components = flatten_spec(spec)
        if structure != other:
            raise TypeError(f"{op}(): all datasets must have the same structure, got {structure!r} and {other!r}")
        pairs = list(zip(merged, components, strict=True))
        both = [mine.most_general_with(theirs) for mine, theirs in pairs]
        for index, (found, (mine, theirs)) in enumerate(zip(both, pairs, strict=True)):
            if found is None:
                name = structure.component_name(index)
                raise TypeError(f"{op}(): {name} must have the same type in all datasets, got {mine!r} and {theirs!r}")
        merged = [found for found in both if found is not None]
    return structure.unflatten(merged)
