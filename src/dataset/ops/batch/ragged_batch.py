"""Node of ragged_batch(batch_size): batch components of different shapes into RaggedTensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.ops.batch.batch import Batch
from dataset.plan.node import spec_is_static
from dataset.plan.spec import ComponentSpec, RaggedTensorSpec, TensorSpec, map_spec
from dataset.plan.values import as_splits_dtype
from dataset.runtime.chunks.batching import stack_column
from dataset.runtime.chunks.chunk import Column
from dataset.runtime.chunks.ragged_stack import stack_as_ragged


@dataclass(frozen=True, eq=False)
class RaggedBatch(Batch):
    """Node whose batches are ragged up to the last dimension of unknown size.

    A component with a fully known shape stays dense, as in ``batch``, and so does one of unknown rank. If the spec is
    only known by running user code, no size is known: every dimension is ragged.
    """

    op: ClassVar[str] = "ragged_batch"
    advice: ClassVar[str] = "all elements of a batch must have the same {what}: make them equal in map()"
    row_splits_dtype: Any = np.int64

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("row_splits_dtype", as_splits_dtype(self.op, self.row_splits_dtype))

    def _element_spec(self) -> Any:
        size = self.batch_size if self.drop_remainder else None
        return map_spec(lambda spec: self._batched(spec, size), self.source.element_spec)

    def _batched(self, spec: ComponentSpec, size: int | None) -> ComponentSpec:
        if not isinstance(spec, TensorSpec):
            return spec.batched(size)
        if not spec_is_static(self.source) and spec.shape is not None:
            spec = TensorSpec((None,) * len(spec.shape), spec.dtype)
        ragged = self._ragged_rank(spec)
        if ragged is None or spec.shape is None:
            return spec.batched(size)
        return RaggedTensorSpec((size, *spec.shape), spec.dtype, *ragged)

    def _ragged_rank(self, spec: ComponentSpec) -> tuple[int, np.dtype[Any]] | None:
        if isinstance(spec, TensorSpec) and spec.shape is not None and None in spec.shape:
            last = max(axis for axis, size in enumerate(spec.shape) if size is None)
            return last + 1, self.row_splits_dtype
        return super()._ragged_rank(spec)

    def stack(self, index: int, column: Column) -> Any:
        if spec_is_static(self.source):
            return super().stack(index, column)
        rank = column.ndim - 1 if isinstance(column, np.ndarray) else _rank(column[0])
        return stack_as_ragged(column, rank, self.row_splits_dtype) if rank else stack_column(column)


def _rank(value: Any) -> int:
    return value.ndim if isinstance(value, np.ndarray) else 0
