"""Node and operator of take(count): the first count elements. See skip.py for the counterpart."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dataset.errors import StateError
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.checks import require_int
from dataset.plan.node import Node, UnaryNode, is_exact, is_infallible
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator, assumes_no_failures
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class Take(UnaryNode, aligned=True, seekable=True, exact=True, only_reorders=True, positional=True, views=True):
    """Node that passes on the first ``count`` elements; all elements if ``count`` is negative."""

    op: ClassVar[str] = "take"
    count: int

    def __post_init__(self) -> None:
        self._set("count", require_int("take", "count", self.count))

    def cardinality(self) -> int:
        available = self.source.cardinality()
        if self.count < 0 or available == UNKNOWN_CARDINALITY:
            return available
        return self.count if available == INFINITE_CARDINALITY else min(available, self.count)

    def simplified(self) -> Node | None:
        """Return the input if it has at most ``count`` elements; one take for two.

        The number must be exact: a take stops after the last element, while a source with user code continues.
        """
        if self.count < 0 or (is_exact(self.source) and 0 <= self.source.cardinality() <= self.count):
            return self.source
        if isinstance(self.source, Take):
            return replace(self, source=self.source.source, count=min(self.source.count, self.count))
        return None

    def label(self) -> str:
        return f"take({self.count})"

    def lower(self, context: ExecutionContext) -> Operator:
        source = context(self.source)
        return source if self.count < 0 else TakeOperator(source, self)


class TakeOperator(UnaryOperator):
    """Operator that counts down the remaining elements."""

    saved = ("remaining",)

    def __init__(self, source: Operator, node: Take) -> None:
        super().__init__(source)
        self.node = node
        self.remaining = node.count

    def pull(self, n: int) -> Chunk | None:
        if not self.remaining:
            return None
        # Exceptions are not counted, as in tf.data: count elements are returned in addition to them.
        chunk = self.source.pull(min(n, self.remaining))
        self.remaining = self.remaining - chunk.length if chunk else 0
        return chunk

    def advance(self, position: Position, count: int) -> Position | None:
        remaining = position.count("remaining") - count
        if remaining < 0 or not (is_infallible(self.node.source) or assumes_no_failures()):
            return None
        return self.advance_input(position, count, remaining=remaining)

    def load(self, position: Position) -> None:
        super().load(position)
        if self.remaining > self.node.count:
            raise StateError(
                f"{self.node}: the state is damaged: {self.remaining} of {self.node.count} elements remain"
            )
