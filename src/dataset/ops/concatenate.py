"""concatenate(dataset): one dataset, then another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.plan.cardinality import is_known, total
from dataset.plan.node import Node, spec_is_static
from dataset.plan.spec import common_spec
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State


@dataclass(frozen=True, eq=False)
class Concatenate(Node):
    """All elements of ``source``, then all of ``other``."""

    op: ClassVar[str] = "concatenate"
    seeks: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    source: Node
    other: Node

    def __post_init__(self) -> None:
        # Where only running a user's function tells the spec, a mismatch shows when the elements come.
        if spec_is_static(self.source) and spec_is_static(self.other):
            self._element_spec()

    def _element_spec(self) -> Any:
        return common_spec("concatenate", [self.source.element_spec, self.other.element_spec])

    @property
    def is_certain(self) -> bool:
        return super().is_certain and spec_is_static(self)  # else a mismatch shows when the elements come

    @property
    def rows_per_element(self) -> int | None:
        rows = self.source.rows_per_element
        return rows if rows == self.other.rows_per_element else None

    def cardinality(self) -> int:
        return total([self.source.cardinality(), self.other.cardinality()])

    def lower(self, build: Build) -> Operator:
        return ConcatenateOperator(self, [build(self.source), build(self.other)])


class ConcatenateOperator(Operator):
    """Reads one input after the other."""

    def __init__(self, node: Concatenate, sources: list[Operator]) -> None:
        self.node = node
        self.sources = sources
        self.current = 0
        self._last: Chunk | None = None

    def pull(self, n: int) -> Chunk | None:
        while self.current < len(self.sources):
            chunk = self.sources[self.current].pull(n)
            if chunk is not None:
                return self._checked(chunk)
            self.current += 1
        return None

    def seek(self, count: int) -> None:
        before = self.node.source.cardinality()
        self.current = int(is_known(before) and count >= before)
        self.sources[self.current].seek(count - before if self.current else count)

    def _checked(self, chunk: Chunk) -> Chunk:
        if self._last is not None and chunk.structure != self._last.structure:
            raise SpecError(
                f"{self.node.located()}: both datasets must have one structure, got {self._last.structure!r} and "
                f"{chunk.structure!r}"
            )
        self._last = Chunk(chunk.structure, 0, [])
        return chunk

    def state_dict(self) -> State:
        states = [source.state_dict() for source in self.sources]
        return {"op": Concatenate.op, "current": self.current, "sources": states}

    def state_after(self, state: State, count: int) -> State | None:
        """Within one input: how many elements are left of it, it does not say."""
        states, current = list(state["sources"]), int(state["current"])
        below = self.sources[current].state_after(states[current], count) if current < len(states) else None
        if below is None:
            return None
        states[current] = below
        return {**state, "sources": states}

    def load_state_dict(self, state: State) -> None:
        self.current = int(state["current"])
        for source, saved in zip(self.sources, state["sources"], strict=True):
            source.load_state_dict(saved)

    def close(self) -> None:
        for source in self.sources:
            source.close()
