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
from dataset.runtime.contract import Operator, State, UnaryOperator


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

    def __init__(self, source: Operator, node: AssertCardinality) -> None:
        super().__init__(source)
        self.node = node
        self.given = 0
        self.ended = False

    def pull(self, n: int) -> Chunk | None:
        if self.ended:
            return None
        left = n if self.node.expected == INFINITE_CARDINALITY else self.node.expected - self.given
        if not left:
            self._end_with(self.source.pull(1))
            return None
        try:
            chunk = self.source.pull(min(n, left))
        except Exception:
            self.given += 1
            raise
        if chunk is None:
            self._end_with(None)
            return None
        self.given += chunk.length
        return chunk

    def _end_with(self, chunk: Chunk | None) -> None:
        """Raise CardinalityError, once, if ``chunk`` is an extra element or elements are missing."""
        self.ended = True
        if chunk is None and self.given == self.node.expected:
            return
        found = f"the input has {'more' if chunk is not None else f'only {self.given:,}'}"
        raise CardinalityError(
            f"{self.node}: expected {_words(self.node.expected)}, but {found}; correct the number or check "
            "why the input has a different number of elements"
        )

    def save(self) -> State:
        return {"op": AssertCardinality.op, **super().save(), "given": self.given, "ended": self.ended}

    def advance(self, state: State, count: int) -> State | None:
        given, expected = int(state["given"]) + count, self.node.expected
        if state["ended"] or (expected != INFINITE_CARDINALITY and given > expected):
            return None
        below = self.source.advance(state["source"], count)
        return None if below is None else {**state, "source": below, "given": given}

    def load(self, state: State) -> None:
        super().load(state)
        self.given, self.ended = int(state["given"]), bool(state["ended"])
        if self.node.expected != INFINITE_CARDINALITY and self.given > self.node.expected:
            raise StateError(
                f"{self.node}: the state is damaged: it counts {self.given} elements of {self.node.expected}"
            )


def _words(count: int) -> str:
    if count == INFINITE_CARDINALITY:
        return "infinitely many elements"
    return f"{count:,} element{'' if count == 1 else 's'}"
