"""Node and operator of unbatch(): the rows of each element as elements. The inverse of batch.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.ops.batch.rows_per_element import known_rows, require_rows, require_static_rows
from dataset.plan.cardinality import endless_or_unknown, map_known
from dataset.plan.node import UnaryNode
from dataset.plan.spec import map_spec
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.lineage import divided
from dataset.runtime.chunks.slicing import rows_of_components
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.parallel.buffered_operator import BufferedUnaryOperator


@dataclass(frozen=True, eq=False)
class Unbatch(UnaryNode, separable=True):
    """Node that splits each element along the first axis of its components."""

    op: ClassVar[str] = "unbatch"

    def __post_init__(self) -> None:
        require_static_rows(self)

    def _element_spec(self) -> Any:
        require_rows(self.op, self.source.element_spec)
        return map_spec(lambda spec: spec.unbatched(), self.source.element_spec)

    def cardinality(self) -> int:
        rows = known_rows(self.source)
        available = self.source.cardinality()
        if rows is None:
            return endless_or_unknown(available)
        return map_known(lambda n: n * rows, available)

    def lower(self, context: ExecutionContext) -> Operator:
        return UnbatchOperator(context(self.source), self)


class UnbatchOperator(BufferedUnaryOperator):
    """Operator that holds the rest of the current element, whose arrays are the columns of the chunks."""

    node: Unbatch

    def produce(self, n: int) -> Chunk | None:
        while not self.outbox:
            element = self.source.pull(1)
            if element is None:
                return None
            rows = self._take_apart(element)
            if rows is not None:
                self.outbox.put(rows)
        return self.outbox.give(n)

    def _take_apart(self, element: Chunk) -> Chunk | None:
        components = [column[0] for column in element.columns()]
        columns, length = rows_of_components(self.node, element.structure, components)
        if not length:
            return None
        lineage = None if element.lineage is None else divided(element.lineage[0], length)
        return Chunk(element.structure, length, columns, lineage=lineage)
