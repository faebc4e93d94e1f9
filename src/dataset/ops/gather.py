"""gather: rows of arrays by index. Only the optimizer makes it; there is no method for it.

Shuffling indices and taking the rows late moves 8 bytes per element through the buffer, whatever the rows weigh.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.ops.tensor_slices import TensorSlices
from dataset.plan.node import Node, UnaryNode
from dataset.plan.structure import Structure
from dataset.runtime.chunk import Chunk, Column, take_column
from dataset.runtime.operator import Build, Operator, UnaryOperator


@dataclass(frozen=True, eq=False)
class Gather(UnaryNode):
    """The rows of ``slices`` at the indices that come in."""

    op: ClassVar[str] = "gather"
    slices: TensorSlices

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def parameters(self) -> dict[str, Any]:
        return self.slices.parameters()

    def _element_spec(self) -> Any:
        return self.slices.element_spec

    def lower(self, build: Build) -> Operator:
        return GatherOperator(build(self.source), self.slices.structure, self.slices.rows_as_columns())


class GatherOperator(UnaryOperator):
    """One take per component and chunk."""

    def __init__(self, source: Operator, structure: Structure, columns: list[Column]) -> None:
        super().__init__(source)
        self.structure = structure
        self.columns = columns

    def pull(self, n: int) -> Chunk | None:
        chunk = self.source.pull(n)
        if chunk is None:
            return None
        (indices,) = chunk.columns()
        rows = [take_column(column, indices) for column in self.columns]  # type: ignore[arg-type]  # integers
        return Chunk(self.structure, chunk.length, rows)
