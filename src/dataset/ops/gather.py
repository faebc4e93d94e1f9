"""gather: rows of a source by number. Only the optimizer makes it; there is no method for it.

Shuffling numbers and taking the rows late moves 8 bytes per element through the buffer, whatever the rows weigh. Of
files with an index, rows are read in the order in which they come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.ops.row_source import RowsOperator, RowSource
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunks.chunk import Array
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class Gather(UnaryNode):
    """The rows of ``rows`` with the numbers that come in.

    Numbers are read ahead, which nobody can see: the optimizer puts no user code below.
    """

    op: ClassVar[str] = "gather"
    elastic: ClassVar[bool] = True
    rows: RowSource

    @property
    def calls_user_code(self) -> bool:  # type: ignore[override]  # here it depends on the rows
        return self.rows.calls_user_code

    @property
    def never_fails(self) -> bool:
        return self.rows.is_certain and self.source.never_fails

    @property
    def spec_is_static(self) -> bool:  # type: ignore[override]  # likewise
        return self.rows.spec_is_static

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def described(self) -> str:
        return f"gather({self.rows.described()})"

    def parameters(self) -> dict[str, Any]:
        return self.rows.parameters()

    def _element_spec(self) -> Any:
        return self.rows.element_spec

    def picked(self, positions: Array) -> Node | None:
        below = None if self.rows.leaves_out else self.source.picked(positions)
        return None if below is None else self.with_inputs([below])

    def lower(self, build: ExecutionContext) -> Operator:
        return RowsOperator(build(self.source), self.rows, build.skipped, Gather.op)
