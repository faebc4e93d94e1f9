"""padded_batch(batch_size, ...): like batch.py, but shorter components are filled up to the longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.batch import Batch, BatchOperator
from dataset.plan.node import spec_is_static
from dataset.plan.spec import BYTES, Shape, TensorSpec, as_shape, component_spec, flatten_spec
from dataset.plan.structure import LEAF, Structure, StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.batching import pad_column
from dataset.runtime.chunk import Column
from dataset.runtime.operator import Build, Operator


@dataclass(frozen=True, eq=False)
class PaddedBatch(Batch):
    """Batches whose components are filled up.

    ``padded_shapes`` and ``padding_values`` have the structure of the elements, or are one value for all; None means
    the largest in the batch, and 0 or ``b""``.
    """

    op: ClassVar[str] = "padded_batch"
    padded_shapes: Any = None
    padding_values: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if spec_is_static(self.source):
            structure, specs = flatten_spec(self.source.element_spec)
            for index, (spec, shape) in enumerate(zip(specs, self.shapes(structure), strict=True)):
                _check_static(structure, index, spec, shape)
            for index, (spec, value) in enumerate(zip(specs, self.values(structure), strict=True)):
                _padding(structure.component_name(index), spec.dtype, value)

    def shapes(self, structure: Structure) -> list[Shape]:
        """Per component the shape to fill up to."""
        if self.padded_shapes is None:
            return [None] * structure.num_components
        return [_as_padded_shape(shape) for shape in _flatten_shapes(structure, self.padded_shapes)]

    def values(self, structure: Structure) -> list[Any]:
        """Per component the value to fill up with; None for the default of its dtype."""
        if self.padding_values is None or structure_of(self.padding_values) is LEAF:
            return [self.padding_values] * structure.num_components
        return _flatten_up_to(structure, self.padding_values, "padding_values")

    def _element_spec(self) -> Any:
        structure, specs = flatten_spec(self.source.element_spec)
        size = self.batch_size if self.drop_remainder else None
        padded = []
        for spec, shape in zip(specs, self.shapes(structure), strict=True):
            rank = None if spec.shape is None else len(spec.shape)
            dims = shape if shape is not None else (None if rank is None else (None,) * rank)
            padded.append(TensorSpec(dims, spec.dtype).batched(size))
        return structure.unflatten(padded)

    def lower(self, build: Build) -> Operator:
        return PaddedBatchOperator(build(self.source), self)


class PaddedBatchOperator(BatchOperator):
    """Fills up instead of stacking."""

    keeps_arrays = False
    advice = "a padded component must have one dtype and rank, and fit into its padded shape"

    def __init__(self, source: Operator, node: PaddedBatch) -> None:
        super().__init__(source, node, self._pad)
        self.padded = node
        self._plan: tuple[list[Shape], list[Any]] | None = None

    def _stack(self, elements: Any, size: int) -> Any:
        if self._plan is None:
            self._plan = (self.padded.shapes(elements.structure), self.padded.values(elements.structure))
        return super()._stack(elements, size)

    def _pad(self, index: int, column: Column) -> Any:
        assert self._plan is not None
        shape, value = self._plan[0][index], self._plan[1][index]
        first = column[0]
        if isinstance(first, RaggedTensor | SparseTensor):
            raise SpecError(f"{self.node.located()}: a {type(first).__name__} cannot be padded; use batch()")
        if shape is None:
            shape = (None,) * np.ndim(first)
        return pad_column(column, shape, _padding(f"component {index}", component_spec(first).dtype, value))


def _padding(name: str, dtype: np.dtype[Any], value: Any) -> Any:
    """What to fill up a component of ``dtype`` with.

    Raises:
        TypeError: if the dtype cannot hold ``value``.
    """
    if value is None:
        return b"" if dtype == BYTES else np.zeros((), dtype)[()]
    if dtype == BYTES and isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else bytes(value)
    given = np.asarray(value)
    if given.ndim == 0 and given.dtype.kind in "biufc" and dtype.kind in "biufc":
        with np.errstate(all="ignore"):
            cast = given.astype(dtype)
        if cast == given or dtype.kind in "fc":
            return cast[()]
    raise TypeError(f"padded_batch(): padding_values has {value!r} for {name}, whose dtype {dtype} cannot hold it")


def _as_padded_shape(shape: Any) -> Shape:
    """-1 means None, as in tf.data."""
    if shape is None:
        return None
    return as_shape(tuple(None if dim is None or dim == -1 else dim for dim in np.atleast_1d(np.array(shape, object))))


def _is_shape(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and all(
        dim is None or isinstance(dim, int | np.integer) for dim in value
    )


def _flatten_shapes(structure: Structure, shapes: Any) -> list[Any]:
    """The shapes of the components; a shape is a tuple or list of ints and None."""
    if structure.num_components == 1 and _is_shape(shapes):
        return [shapes]
    return _flatten_up_to(structure, shapes, "padded_shapes")


def _flatten_up_to(structure: Structure, value: Any, argument: str) -> list[Any]:
    """What stands in ``value`` at the places of the components of ``structure``."""
    try:
        if structure is LEAF and structure_of(value) is not LEAF:
            raise StructureMismatchError  # noqa: TRY301  # as for any other structure
        return [column[0] for column in structure.columns([value])]
    except (StructureMismatchError, TypeError, KeyError, AttributeError):
        raise TypeError(
            f"padded_batch(): {argument} must have the structure of the elements, {structure!r}, got {value!r}"
        ) from None


def _check_static(structure: Structure, index: int, spec: Any, shape: Shape) -> None:
    name = structure.component_name(index)
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"padded_batch(): {name} is a {spec!r}, which cannot be padded; use batch()")
    if spec.shape is None and shape is None:
        raise ValueError(f"padded_batch(): {name} has an unknown rank; give padded_shapes")
    if spec.shape is not None and shape is not None and len(shape) != len(spec.shape):
        raise ValueError(f"padded_batch(): the padded shape {shape} does not fit {name} of shape {spec.shape}")
