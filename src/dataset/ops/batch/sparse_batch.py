"""Node and operator of sparse_batch(batch_size, row_shape): batch arrays of different shapes into a SparseTensor."""

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
class SparseBatch(Batch, takes_packed=False):
    """Node that batches a single dense component into SparseTensors. All cells are stored, including zeros.

    After its first dimension, a batch has the shape ``row_shape``; None means the largest size in the batch.
    """

    op: ClassVar[str] = "sparse_batch"
    advice: ClassVar[str] = "all elements of a batch must have the same {what}: make them equal in map()"
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
            raise ValueError(f"{self.op}(): row_shape {self.row_shape} is too small for elements of shape {spec.shape}")

    def _element_spec(self) -> Any:
        _structure, (spec, *_others) = flatten_spec(self.source.element_spec)
        return SparseTensorSpec((None, *self.row_shape), spec.dtype)

    def stack(self, index: int, column: Column) -> Any:  # noqa: ARG002  # there is only one component
        return stack_as_sparse(column, self.row_shape)

    def lower(self, context: ExecutionContext) -> Operator:
        return BatchOperator(FittingOperator(context(self.source), self), self)


class FittingOperator(ChunkTransformOperator):
    """Operator that passes on elements that fit into ``row_shape``.

    Any other element is replaced by an error. As in tf.data, the error ends the batch, and the next batch begins after
    it.
    """

    one_to_one = True

    node: SparseBatch

    def convert(self, inputs: Chunk) -> Chunk:
        self.node.require_single(inputs.structure)
        (column,) = inputs.columns()
        for index in self._unfit(column):
            raise self._error(column[index], self.at + index)
        return inputs

    def _unfit(self, column: Column) -> list[int]:
        """Return the indices of the values that are not arrays of a suitable rank and size."""
        if isinstance(column, np.ndarray):
            return [] if fits_in(column.shape[1:], self.node.row_shape) else list(range(len(column)))
        shapes = list(map(_shape, column))
        good = {shape for shape in set(shapes) if shape is not None and fits_in(shape, self.node.row_shape)}
        return [index for index, shape in enumerate(shapes) if shape not in good]

    def _error(self, value: Any, position: int) -> SpecError:
        shape = _shape(value)
        got = f"is a {type(value).__name__}" if shape is None else f"has shape {shape}"
        return SpecError(
            f"{self.node}: element {position} {got}, which does not fit into row_shape "
            f"{self.node.row_shape}; pass a larger one, or None for the largest in the batch"
        )


def _shape(value: Any) -> tuple[int, ...] | None:
    """Return the shape of an array or scalar; None for anything else."""
    if isinstance(value, np.ndarray):
        return tuple(value.shape)
    return () if isinstance(value, np.generic | bytes) else None
