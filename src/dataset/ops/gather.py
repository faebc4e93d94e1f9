"""Node of gather: rows of a source by row number. Only the optimizer creates it.

Shuffling row numbers and taking the rows afterwards moves 8 bytes per element through the buffer, regardless of the row
size. Rows of indexed files are read in output order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dataset.ops.sources.row_source import RowsOperator, RowSource
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class Gather(UnaryNode, elastic=True):
    """Node that takes the rows of ``rows`` with the numbers from its input.

    Reading numbers ahead is unobservable: the optimizer never puts user code upstream.
    """

    op: ClassVar[str] = "gather"
    rows: RowSource

    @lazy_property
    def traits(self) -> Traits:
        rows = self.rows.traits
        return replace(super().traits, pure=rows.pure, static_spec=rows.static_spec, infallible=rows.exact)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def label(self) -> str:
        return f"gather({self.rows.label()})"

    def parameters(self) -> dict[str, Any]:
        return self.rows.parameters()

    def _element_spec(self) -> Any:
        return self.rows.element_spec

    def input_positions(self, positions: Array) -> Array | None:
        return None if self.rows.may_skip_rows else positions

    def lower(self, context: ExecutionContext) -> Operator:
        return RowsOperator(context(self.source), self.rows, context, Gather.op)
