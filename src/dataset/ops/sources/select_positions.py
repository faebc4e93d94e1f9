"""Node and operator of picked: the elements at given positions. Only a shuffle that resumes from a state creates it.

If each op of a plan maps one element to one element, replacing the source by this node yields the plan's results at
these positions. ``Node.at`` builds such plans.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from dataset.plan.node import UnaryNode
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator


@dataclass(frozen=True, eq=False)
class SelectPositions(UnaryNode):
    """Node that gathers the elements of ``source`` at ``positions``; the source's operator supports ``gather``."""

    op: ClassVar[str] = "picked"
    positions: Array

    @property
    def traits(self) -> Traits:
        return replace(self.declared, pure=self.source.traits.pure)

    def cardinality(self) -> int:
        return len(self.positions)

    def parameters(self) -> dict[str, Any]:
        return {"positions": len(self.positions)}

    def lower(self, context: ExecutionContext) -> Operator:
        return SelectPositionsOperator(context(self.source), self.positions)


class SelectPositionsOperator(UnaryOperator):
    """Operator that counts the elements it has returned. An exception counts as one element."""

    def __init__(self, source: Operator, positions: Array) -> None:
        super().__init__(source)
        self.positions = positions
        self.given = 0

    def pull(self, n: int) -> Chunk | None:
        wanted = self.positions[self.given : self.given + n]
        if not len(wanted):
            return None
        try:
            chunk = self.source.gather(wanted)
        except Exception:
            self.given += 1
            raise
        self.given += chunk.length
        return chunk

    def save(self) -> State:
        return {"op": SelectPositions.op, "given": self.given}

    def load(self, state: State) -> None:
        self.given = int(state["given"])
