"""Node and operator that replace each element missing in a process's share by an element of zeros."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.errors import SpecError
from dataset.plan.node import Node, UnaryNode
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.padding_slots import AbsentError, zeros_like
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.iteration.probing import probe
from dataset.runtime.position import Position
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class PadMissing(UnaryNode, seekable=True, exact=True, only_reorders=True, elastic=True):
    """Node that replaces each absent element of ``source`` by an element of zeros, like the last one before it."""

    op: ClassVar[str] = "shard_by_process.pad"
    examples: tuple[Node, ...] = field(repr=False)
    """Plans with the same spec, for a process without elements: one of them has an element if any process has."""

    def _element_spec(self) -> Any:
        return self.examples[0].element_spec

    def lower(self, context: ExecutionContext) -> Operator:
        return PadMissingOperator(context(self.source), self)


class PadMissingOperator(UnaryOperator):
    """Operator that keeps the last element, which determines the shapes and dtypes of the zeros."""

    def __init__(self, source: Operator, node: PadMissing) -> None:
        super().__init__(source)
        self.node = node
        self._last: Chunk | None = None

    def pull(self, n: int) -> Chunk | None:
        try:
            chunk = self.source.pull(n)
        except AbsentError:
            if self._last is None:
                self._last = self._example()
            return zeros_like(self._last)
        if chunk is not None:
            self._last = chunk.slice(chunk.length - 1, chunk.length)
        return chunk

    def _example(self) -> Chunk:
        for plan in self.node.examples:
            for element in probe(plan):
                return chunk_of_rows([element], structure_of(element))
        raise SpecError(f"{self.node}: no process has an element that shows the shapes of the padding")

    def save(self) -> Position:
        return super().save().with_held(last=save_chunk(self._last))

    def load(self, position: Position) -> None:
        super().load(position)
        self._last = load_chunk(position.held.get("last"), lambda: self.node.element_spec)
