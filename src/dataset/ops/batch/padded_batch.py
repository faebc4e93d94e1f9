"""Node and operator of padded_batch(batch_size, ...): batch components of different sizes with padding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.batch.batch import Batch, BatchOperator
from dataset.plan.checks import require_shape
from dataset.plan.node import spec_is_static
from dataset.plan.spec import (
    BYTES,
    ComponentSpec,
    Shape,
    TensorSpec,
    component_spec,
    fits_in,
    flatten_spec,
    is_dense,
)
from dataset.plan.structure import LEAF, Structure, StructureMismatchError, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunks.batching import pad_column
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class PaddedBatch(Batch):
    """Node that pads the components of a batch to a common shape.

    ``padded_shapes`` and ``padding_values`` have the structure of the elements, or are one value for all components.
    None means the largest size in the batch, or 0 or ``b""`` as the padding value.
    """

    op: ClassVar[str] = "padded_batch"
    advice: ClassVar[str] = "a padded component must have one dtype and rank, and fit into padded_shapes"
    padded_shapes: Any = None
    padding_values: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if spec_is_static(self.source):
            structure, specs = flatten_spec(self.source.element_spec)
            for index, (spec, shape) in enumerate(zip(specs, self.shapes(structure), strict=True)):
                _check_static(structure, index, spec, shape)
            for index, (spec, value) in enumerate(zip(specs, self.values(structure), strict=True)):
                padding_of(self.op, "padding_values", structure.component_name(index), spec.dtype, value)

    def shapes(self, structure: Structure) -> list[Shape]:
        """Return the shape to pad to, per component."""
        if self.padded_shapes is None:
            return [None] * structure.num_components
        shapes = _flattened(self.op, "padded_shapes", structure, self.padded_shapes)
        return [None if shape is None else require_shape(self.op, "padded_shapes", shape) for shape in shapes]

    def values(self, structure: Structure) -> list[Any]:
        """Return the padding value per component; None for the default of its dtype."""
        return padding_values(self.op, structure, self.padding_values, "padding_values")

    def _element_spec(self) -> Any:
        structure, specs = flatten_spec(self.source.element_spec)
        size = self.batch_size if self.drop_remainder else None
        padded = []
        for spec, shape in zip(specs, self.shapes(structure), strict=True):
            dims = self._filled_shape(spec) if shape is None else shape
            padded.append(TensorSpec(dims, spec.dtype).batched(size))
        return structure.unflatten(padded)

    def _filled_shape(self, spec: ComponentSpec) -> Shape:
        """Return the shape after padding to the largest: only dimensions known for all elements remain known."""
        if spec.shape is None or spec_is_static(self.source):
            return spec.shape
        return (None,) * len(spec.shape)

    def operator(self, source: Operator) -> PaddedBatchOperator:
        return PaddedBatchOperator(source, self)

    def lower(self, context: ExecutionContext) -> Operator:
        return self.operator(context(self.source))


class PaddedBatchOperator(BatchOperator):
    """Operator that pads components instead of stacking them directly."""

    def __init__(self, source: Operator, node: PaddedBatch) -> None:
        super().__init__(source, node)
        self.padded = node
        self.stack = self._pad
        self._plan: tuple[list[Shape], list[Any], list[str]] | None = None
        self._paddings: dict[tuple[int, np.dtype[Any]], Any] = {}

    def _stack(self, elements: Chunk, size: int, position: int) -> Chunk:
        if self._plan is None:
            structure = elements.structure
            names = [structure.component_name(index) for index in range(structure.num_components)]
            self._plan = (self.padded.shapes(structure), self.padded.values(structure), names)
        return super()._stack(elements, size, position)

    def _pad(self, index: int, column: Column) -> Any:
        assert self._plan is not None
        shapes, values, names = self._plan
        shape, name = shapes[index], names[index]
        first = column[0]
        if isinstance(first, RaggedTensor | SparseTensor):
            raise SpecError(f"{self.node}: {name} is a {type(first).__name__}, which cannot be padded; use batch()")
        if shape is None:
            shape = (None,) * np.ndim(first)
        is_number = isinstance(first, np.ndarray | np.generic) and first.dtype.kind in "biufc"
        dtype = first.dtype if is_number else component_spec(first).dtype
        if (padding := self._paddings.get((index, dtype))) is None:
            padding = padding_of(self.padded.op, "padding_values", name, dtype, values[index])
            self._paddings[index, dtype] = padding
        return pad_column(column, shape, padding)


def padding_values(op: str, structure: Structure, given: Any, argument: str = "pad") -> list[Any]:
    """Return the padding value per component, from one value for all or from values in the structure of the elements.

    Raises:
        TypeError: if they have another structure.
    """
    if given is None or structure_of(given) is LEAF:
        return [given] * structure.num_components
    if structure is LEAF:
        raise _wrong_structure(op, argument, structure, given)
    return _flattened(op, argument, structure, given)


def padding_of(op: str, argument: str, name: str, dtype: np.dtype[Any], value: Any) -> Any:
    """Return the padding value for a component of ``dtype``.

    A Python number is valid for any dtype of its kind that can represent it. A NumPy value must have the component's
    dtype, as in tf.data.

    Raises:
        TypeError: if ``value`` is invalid for this dtype.
    """
    if value is None:
        return b"" if dtype == BYTES else np.zeros((), dtype)[()]
    if dtype == BYTES and isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else bytes(value)
    typed = isinstance(value, np.generic | np.ndarray)
    fits = value.ndim == 0 and value.dtype == dtype if typed else dtype.kind == "O" or _holds(dtype, value)
    if fits:
        return np.array(value, dtype)[()]
    raise TypeError(f"{op}(): {argument} has {value!r} for {name}, which is not a value of dtype {dtype}")


def _holds(dtype: np.dtype[Any], value: Any) -> bool:
    """Return whether an array of ``dtype`` can hold a Python number."""
    match value:
        case bool():
            return dtype.kind == "b"
        case int() if dtype.kind in "iu":
            return bool(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max)
        case int() | float() if dtype.kind in "fc":
            return not math.isfinite(value) or abs(value) <= float(np.finfo(dtype).max)
        case complex():
            return dtype.kind == "c"
    return False


def _flattened(op: str, argument: str, structure: Structure, given: Any) -> list[Any]:
    """Return what an argument has for each component. Tuples below the structure are values, such as shapes."""
    try:
        return [column[0] for column in structure.columns([given])]
    except (StructureMismatchError, TypeError, AttributeError):
        raise _wrong_structure(op, argument, structure, given) from None


def _wrong_structure(op: str, argument: str, structure: Structure, got: Any) -> TypeError:
    return TypeError(f"{op}(): {argument} must have the structure of the elements, {structure!r}, got {got!r}")


def _check_static(structure: Structure, index: int, spec: ComponentSpec, shape: Shape) -> None:
    name = structure.component_name(index)
    if not is_dense(spec):
        raise TypeError(f"padded_batch(): {name} is a {spec!r}, which cannot be padded; use batch()")
    if spec.shape is None and shape is None:
        raise ValueError(f"padded_batch(): {name} has an unknown rank; pass padded_shapes")
    if not fits_in(spec.shape, shape):
        raise ValueError(f"padded_batch(): the padded shape {shape} does not fit {name} of shape {spec.shape}")
