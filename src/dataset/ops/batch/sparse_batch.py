"""sparse_batch(batch_size, row_shape): like batch.py, but arrays of different shapes become one SparseTensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.batch.batch import Batch, BatchOperator
from dataset.plan.checks import require_shape
from dataset.plan.node import spec_is_static
from dataset.plan.spec import ComponentSpec, SparseTensorSpec, fits_in, flatten_spec, is_dense
from dataset.plan.structure import LEAF, Structure
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.ragged_stack import stack_as_sparse
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.functions.chunk_transform import ChunkTransformOperator


@dataclass(frozen=True, eq=False)
class SparseBatch(Batch):
    """Batches of one dense component, all cells of which are stored, zeros too.

    A batch has the shape ``row_shape`` behind its first dimension; None there means the largest in the batch.
    """

    op: ClassVar[str] = "sparse_batch"
    advice: ClassVar[str] = "all elements of a batch need one {what}: make them alike in map()"
    row_shape: Any = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("row_shape", require_shape(self.op, "row_shape", self.row_shape, minus_one=False))
        if spec_is_static(self.source):
            structure, specs = flatten_spec(self.source.element_spec)
            self.require_single(structure)
            self._require_fit(specs[0])

    def require_single(self, structure: Structure) -> None:
        """Raise TypeError unless elements are bare components."""
        if structure is not LEAF:
            raise TypeError(f"{self.op}(): elements must be a single dense component, got {structure!r}")

    def _require_fit(self, spec: ComponentSpec) -> None:
        if not is_dense(spec):
            raise TypeError(f"{self.op}(): elements must be a single dense component, got {spec!r}")
        if not fits_in(spec.shape, self.row_shape):
            raise ValueError(f"{self.op}(): row_shape {self.row_shape} has no room for elements of shape {spec.shape}")

    def _element_spec(self) -> Any:
        _structure, (spec, *_others) = flatten_spec(self.source.element_spec)
        return SparseTensorSpec((None, *self.row_shape), spec.dtype)

    def stack(self, index: int, column: Column) -> Any:  # noqa: ARG002  # there is one component
        return stack_as_sparse(column, self.row_shape)

    def lower(self, build: ExecutionContext) -> Operator:
        return BatchOperator(FittingOperator(build(self.source), self), self)


class FittingOperator(ChunkTransformOperator):
    """Passes on what ``row_shape`` has room for.

    All else fails in the place of the element, so that a batch ends with it and the next begins behind it, as in
    tf.data.
    """

    node: SparseBatch

    def __init__(self, source: Operator, node: SparseBatch) -> None:
        super().__init__(source, node)

    def convert(self, inputs: Chunk) -> Chunk:
        self.node.require_single(inputs.structure)
        (column,) = inputs.columns()
        for index in self._unfit(column):
            raise self._error(column[index], self.position + index)
        return inputs

    def _unfit(self, column: Column) -> list[int]:
        """The numbers of the values that are no arrays of the right rank and size."""
        if isinstance(column, np.ndarray):
            return [] if fits_in(column.shape[1:], self.node.row_shape) else list(range(len(column)))
        shapes = list(map(_shape, column))
        good = {shape for shape in set(shapes) if shape is not None and fits_in(shape, self.node.row_shape)}
        return [index for index, shape in enumerate(shapes) if shape not in good]

    def _error(self, value: Any, position: int) -> SpecError:
        shape = _shape(value)
        got = f"is a {type(value).__name__}" if shape is None else f"has shape {shape}"
        return SpecError(
            f"{self.node.located()}: element {position} {got}, for which row_shape {self.node.row_shape} has no room; "
            "give a larger one, or None for the largest in the batch"
        )


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or scalar; None for anything else."""
    if isinstance(value, np.ndarray):
        return tuple(value.shape)
    return () if isinstance(value, np.generic | bytes) else None
