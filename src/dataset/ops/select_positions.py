"""picked: the elements at some positions. Only a shuffle that goes on from a state makes it; there is no method for it.

A plan over this node instead of its source gives what the whole plan gives at these positions, if each op of it makes
one element of each. ``Node.picked`` builds such plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator


@dataclass(frozen=True, eq=False)
class SelectPositions(UnaryNode):
    """The elements of ``source`` at ``positions``, in this order; its operator ``picks``."""

    op: ClassVar[str] = "picked"
    positions: Array

    @property
    def calls_user_code(self) -> bool:  # type: ignore[override]  # here it depends on the source
        return self.source.calls_user_code

    def cardinality(self) -> int:
        return len(self.positions)

    def parameters(self) -> dict[str, Any]:
        return {"positions": len(self.positions)}

    def lower(self, build: ExecutionContext) -> Operator:
        return SelectPositionsOperator(build(self.source), self.positions)


class SelectPositionsOperator(UnaryOperator):
    """Knows how many it has given. An exception takes the place of one."""

    def __init__(self, source: Operator, positions: Array) -> None:
        super().__init__(source)
        self.positions = positions
        self.given = 0

    def pull(self, n: int) -> Chunk | None:
        wanted = self.positions[self.given : self.given + n]
        if not len(wanted):
            return None
        try:
            chunk = self.source.pick(wanted)
        except Exception:
            self.given += 1
            raise
        self.given += chunk.length
        return chunk

    def state_dict(self) -> State:
        return {"op": SelectPositions.op, "given": self.given}

    def load_state_dict(self, state: State) -> None:
        self.given = int(state["given"])
