"""Node of from_tensor_slices(tensors): the rows of arrays as elements. See tensors.py for whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dataset.ops.sources.row_source import Rows, RowSource
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.lazy import lazy_property, once
from dataset.plan.node import MemoryNode, Sharding, ShareNode
from dataset.plan.spec import TensorSpec, component_spec
from dataset.plan.structure import LEAF, Structure, structure_of
from dataset.plan.values import RaggedTensor, SparseTensor
from dataset.runtime.chunks.chunk import Array, Chunk, Column, read_only_component, take_list
from dataset.runtime.chunks.normalization import canonical_component
from dataset.runtime.chunks.slicing import uncut_rows_of
from dataset.runtime.context import ExecutionContext, source_lineage
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.runtime.state.held_elements import ElementsOperator


@dataclass(frozen=True, eq=False)
class TensorSlices(RowSource, ShareNode, MemoryNode, exact=True, views=True):
    """Source node whose element ``i`` is row ``i`` of each array in ``tensors``; all have the same number of rows."""

    op: ClassVar[str] = "from_tensor_slices"
    tensors: Any

    def __post_init__(self) -> None:
        structure = structure_of(self.tensors)
        columns = [_sliceable(structure, i, part) for i, part in enumerate(structure.flatten(self.tensors))]
        if not columns:
            raise ValueError(f"from_tensor_slices(): tensors must have at least one component, got {self.tensors!r}")
        for index, column in enumerate(columns):
            if component_rows(column) != component_rows(columns[0]):
                raise ValueError(
                    "from_tensor_slices(): all components must have the same number of rows; "
                    f"{structure.component_name(0)} has {component_rows(columns[0])}, "
                    f"{structure.component_name(index)} has {component_rows(column)}"
                )
        self._set("tensors", structure.unflatten(columns))

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:  # noqa: ARG002  # it has no input
        if self.structure is not LEAF or not TensorSpec((), bytes).is_compatible_with(self.element_spec):
            return None  # not names of files
        part = self.subrange(slice(shard.rank, None, shard.world_size))
        part._set("share", shard)  # noqa: SLF001  # same class, fresh copy
        return part

    @lazy_property
    def structure(self) -> Structure:
        return structure_of(self.tensors)

    def columns(self) -> list[Any]:
        """Return the whole arrays, read-only."""
        return self.structure.flatten(self.tensors)

    def rows_as_columns(self) -> list[Column]:
        """Return the elements as columns: views of the arrays, or the rows of ragged and sparse tensors."""
        rows = self.places
        chosen = slice(rows.start, rows.stop, rows.step)
        whole = [column if isinstance(column, np.ndarray) else uncut_rows_of(column) for column in self.columns()]
        return [column[chosen] for column in whole]  # type: ignore[misc]  # uncut rows act as a list

    def parameters(self) -> dict[str, Any]:
        chosen = {} if self.takes_all else {"rows": str(self.rows)}
        return {"tensors": f"{self.cardinality()} of {self.element_spec!r}", **chosen}

    def fingerprint_fields(self) -> Any:
        return [self.structure, self.columns(), *([] if self.takes_all else [str(self.rows)])]

    def _element_spec(self) -> Any:
        return self.structure.unflatten([component_spec(column).unbatched() for column in self.columns()])

    @lazy_property
    def all_rows(self) -> range:
        return range(component_rows(self.columns()[0]))

    def open_rows(self, skipped: DroppedCount) -> ArrayRows:  # noqa: ARG002  # none can fail
        return ArrayRows(self.structure, self.rows_as_columns())

    @once
    def _at_hand(self) -> tuple[Structure, list[Column]]:
        return self.structure, self.rows_as_columns()

    def element(self, position: int) -> Any:
        structure, columns = self._at_hand()
        return structure.unflatten([column[position] for column in columns])

    def elements_in_memory(self) -> Chunk:
        return Chunk(self.structure, self.cardinality(), self.rows_as_columns())

    def lower(self, context: ExecutionContext) -> Operator:
        lineage = source_lineage(context, self)
        rows = self.places
        return ElementsOperator(
            self.elements_in_memory(),
            lineage=None if lineage is None else (lambda positions: lineage.of(rows.start + rows.step * positions)),
        )


class ArrayRows(Rows):
    """Row reader of columns: one take per component and chunk."""

    def __init__(self, structure: Structure, columns: list[Column]) -> None:
        self.structure = structure
        self.takes = [_take_from(column) for column in columns]

    def take(self, numbers: Array) -> Chunk:
        return Chunk(self.structure, len(numbers), [take(numbers, 0) for take in self.takes])


def _take_from(column: Column) -> Callable[[Array, int], Column]:
    if isinstance(column, np.ndarray):
        # take is twice as fast as indexing for rows of bytes, but copies all rows of a non-contiguous array first.
        return column.take if column.flags.c_contiguous else lambda numbers, _axis: column[numbers]
    return lambda numbers, _axis: take_list(column, numbers)


def component_rows(component: Any) -> int:
    """Return the size of the first dimension."""
    return int(component.shape[0])


def _sliceable(structure: Structure, index: int, value: Any) -> Any:
    try:
        component = canonical_component(value)
    except (TypeError, ValueError) as error:
        name = structure.component_name(index)
        advice = "; for rows of several lengths, pass RaggedTensor.from_rows(rows)" if isinstance(value, list) else ""
        raise type(error)(
            f"from_tensor_slices(): {name} cannot be converted to an array: {str(error).rstrip('.')}{advice}"
        ) from error
    if isinstance(component, np.ndarray | RaggedTensor) or (
        isinstance(component, SparseTensor) and len(component.shape) > 1
    ):
        return read_only_component(component)
    if isinstance(component, SparseTensor) and component.shape:
        raise ValueError(
            f"from_tensor_slices(): {structure.component_name(index)} must have two or more dimensions, so that its "
            f"rows are sparse, got a SparseTensor of shape {component.shape}; use to_dense() for a dataset of numbers"
        )
    advice = "use from_tensors() for a dataset of one element"
    if type(component).__module__.startswith("datasets."):
        advice = "use from_huggingface()"
    elif hasattr(component, "__getitem__") and hasattr(component, "__len__"):
        advice = "use from_torch(), which reads any object that has len() and item access"
    raise ValueError(
        f"from_tensor_slices(): {structure.component_name(index)} must be an array with rows, got {value!r}; {advice}"
    )
