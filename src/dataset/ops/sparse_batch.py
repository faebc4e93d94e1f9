"""sparse_batch(batch_size, row_shape): like batch.py, but arrays of different shapes become one SparseTensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.batch import Batch, BatchOperator
from dataset.plan.checks import require_shape
from dataset.plan.node import spec_is_static
from dataset.plan.spec import ComponentSpec, SparseTensorSpec, fits_in, flatten_spec, is_dense
from dataset.plan.structure import LEAF, Structure
from dataset.runtime.chunk import Chunk, Column
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending
from dataset.runtime.uneven import stack_as_sparse


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

    def lower(self, build: Build) -> Operator:
        return BatchOperator(FittingOperator(build(self.source), self), self)


class FittingOperator(UnaryOperator):
    """Passes on what ``row_shape`` has room for.

    All else fails in the place of the element, so that a batch ends with it and the next begins behind it, as in
    tf.data.
    """

    def __init__(self, source: Operator, node: SparseBatch) -> None:
        super().__init__(source)
        self.node = node
        self.position = 0  # elements taken
        self._ready = Pending()

    def pull(self, n: int) -> Chunk | None:
        if self._ready:
            return self._ready.give(n)
        try:
            chunk = self.source.pull(n)
        except Exception:
            self.position += 1
            raise
        if chunk is None:
            return None
        self.node.require_single(chunk.structure)
        start = self.position
        self.position += chunk.length
        bad = self._unfit(chunk.columns()[0])
        if not bad:
            return chunk
        done = 0
        for index in bad:
            if index > done:
                self._ready.put(chunk.slice(done, index))
            self._ready.put(self._error(chunk.columns()[0][index], start + index))
            done = index + 1
        if done < chunk.length:
            self._ready.put(chunk.slice(done, chunk.length))
        return self._ready.give(n)

    def seek(self, count: int) -> None:
        self.position += count
        self.source.seek(count)

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

    def state_dict(self) -> State:
        return {**super().state_dict(), "position": self.position, "ready": self._ready.save()}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.position = int(state["position"])
        self._ready.load(state["ready"], lambda: self.node.source.element_spec)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or scalar; None for anything else."""
    if isinstance(value, np.ndarray):
        return tuple(value.shape)
    return () if isinstance(value, np.generic | bytes) else None
