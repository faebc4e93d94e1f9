"""read_ahead: pulls more than it was asked for, and keeps the rest. Only the optimizer makes it.

It stands where no user code is below, so that nobody can see it, and where elements are numbers, so that what it holds
is small. Steps of many elements make the operators below cheap however few are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dataset.plan.node import UnaryNode
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.state import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class ReadAhead(UnaryNode):
    """The same elements, pulled ``count`` at a time."""

    op: ClassVar[str] = "read_ahead"
    count: int

    def described(self) -> str:
        return f"read_ahead({self.count})"

    def lower(self, build: Build) -> Operator:
        return ReadAheadOperator(build(self.source), self)


class ReadAheadOperator(UnaryOperator):
    """Holds what was read ahead."""

    def __init__(self, source: Operator, node: ReadAhead) -> None:
        super().__init__(source)
        self.node = node
        self.ahead: Chunk | None = None
        self.given = 0

    def pull(self, n: int) -> Chunk | None:
        if self.ahead is None or self.given == self.ahead.length:
            self.ahead, self.given = self.source.pull(max(n, self.node.count)), 0
            if self.ahead is None:
                return None
        start, self.given = self.given, min(self.given + n, self.ahead.length)
        return self.ahead.slice(start, self.given)

    def state_dict(self) -> State:
        rest = None
        if self.ahead is not None and self.given < self.ahead.length:
            rest = self.ahead.slice(self.given, self.ahead.length)
        return {**super().state_dict(), "ahead": save_chunk(rest)}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.ahead = load_chunk(state["ahead"], lambda: self.node.element_spec)
