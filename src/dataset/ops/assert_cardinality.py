"""Node and operator of assert_cardinality(n): declare the cardinality and check it at run time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from dataset.errors import CardinalityError, StateError
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, map_known
from dataset.plan.checks import require_int
from dataset.plan.node import Sharding, UnaryNode
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class AssertCardinality(UnaryNode, seekable=True):
    """Node that passes on its input, which must have ``expected`` elements, or infinitely many."""

    op: ClassVar[str] = "assert_cardinality"
    expected: int

    def __post_init__(self) -> None:
        expected = require_int(self.op, "expected_cardinality", self.expected, minimum=0, allow=(INFINITE_CARDINALITY,))
        self._set("expected", expected)
        known = self.source.cardinality()
        if known not in {expected, UNKNOWN_CARDINALITY}:
            raise ValueError(f"{self.op}(): expected {_words(expected)}, but the input has {_words(known)}")

    def cardinality(self) -> int:
        return self.expected

    def label(self) -> str:
        return f"{self.op}({'INFINITE' if self.expected == INFINITE_CARDINALITY else self.expected})"

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self:
        return replace(self, source=below(self.source, shard), expected=map_known(shard.count, self.expected))

    def lower(self, context: ExecutionContext) -> Operator:
        return AssertCardinalityOperator(context(self.source), self)


class AssertCardinalityOperator(UnaryOperator):
    """Operator that counts the elements it has returned. An exception counts as one element."""

    saved = ("ended",)

    def __init__(self, source: Operator, node: AssertCardinality) -> None:
        super().__init__(source)
        self.node = node
        self.ended = False

    def pull(self, n: int) -> Chunk | None:
        if self.ended:
            return None
        left = n if self.node.expected == INFINITE_CARDINALITY else self.node.expected - self.at
        if not left:
            self._end_with(self.source.pull(1))
            return None
        try:
            chunk = self.source.pull(min(n, left))
        except Exception:
            self.at += 1
            raise
        if chunk is None:
            self._end_with(None)
            return None
        self.at += chunk.length
        return chunk

    def _end_with(self, chunk: Chunk | None) -> None:
        """Raise CardinalityError, once, if ``chunk`` is an extra element or elements are missing."""
        self.ended = True
        if chunk is None and self.at == self.node.expected:
            return
        found = f"the input has {'more' if chunk is not None else f'only {self.at:,}'}"
        raise CardinalityError(
            f"{self.node}: expected {_words(self.node.expected)}, but {found}; correct the number or check "
            "why the input has a different number of elements"
        )

    def advance(self, position: Position, count: int) -> Position | None:
        expected = self.node.expected
        if position.own["ended"] or (expected != INFINITE_CARDINALITY and position.at + count > expected):
            return None
        return self.advance_input(position, count)

    def load(self, position: Position) -> None:
        super().load(position)
        if self.node.expected != INFINITE_CARDINALITY and self.at > self.node.expected:
            raise StateError(f"{self.node}: the state is damaged: it counts {self.at} elements of {self.node.expected}")


def _words(count: int) -> str:
    if count == INFINITE_CARDINALITY:
        return "infinitely many elements"
    return f"{count:,} element{'' if count == 1 else 's'}"
