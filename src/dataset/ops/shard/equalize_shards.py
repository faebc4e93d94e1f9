"""Node and operator that equalize the shards of shard_by_process over files: equally many elements per process.

A callable returns the number of elements in each shard. It counts records if necessary, and is called at the first
pull.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, UnaryNode
from dataset.plan.structure import structure_of
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.normalization import chunk_of_rows
from dataset.runtime.chunks.padding_slots import zeros_like
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.iteration.iterator import probe
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


class PartCounts(Protocol):
    """Counter of the elements of each process."""

    @property
    def parts(self) -> tuple[Node, ...]:
        """The plan of the elements of each process."""

    def known(self) -> list[int] | None:
        """Return the counts if they are known without running anything; else None."""

    def __call__(self) -> list[int]:
        """Return the counts."""


@dataclass(frozen=True, eq=False)
class EqualizeShards(UnaryNode):
    """Node with the elements of process ``rank``, truncated or padded to the count of all other processes."""

    op: ClassVar[str] = "shard_by_process"
    rank: int
    remainder: str
    counts: PartCounts = field(repr=False)

    @property
    def share(self) -> tuple[int, int]:
        return self.rank, len(self.counts.parts)

    def cardinality(self) -> int:
        counts = self.counts.known()
        return UNKNOWN_CARDINALITY if counts is None else self.target(counts)

    def target(self, counts: list[int]) -> int:
        """Return how many elements each process yields, given the counts of all."""
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return min(counts) if self.remainder == "drop" else max(counts)

    def label(self) -> str:
        return f"{self.op}({self.rank} of {len(self.counts.parts)}, {self.remainder!r}, files)"

    def lower(self, context: ExecutionContext) -> Operator:
        return context(self.source) if context.iteration.epochs.probing else EqualizeShardsOperator(context, self)


class EqualizeShardsOperator(Operator):
    """Operator that counts down the remaining elements. Exceptions are raised and not counted."""

    def __init__(self, context: ExecutionContext, node: EqualizeShards) -> None:
        self.context = context
        self.node = node
        self.source = context(node.source)
        self.left: int | None = None  # remaining elements; -1 if infinite; None before the first pull
        self._part = node.rank  # the process whose elements are read
        self._is_empty = True  # no elements so far
        self._ended = False  # the own elements have ended
        self._last: Chunk | None = None  # an example for the shapes of zeros

    def pull(self, n: int) -> Chunk | None:
        if self.left is None:
            self.left = self.node.target(self.node.counts())
        if not self.left:
            return None
        chunk = self._next(n if self.left < 0 else min(n, self.left))
        if chunk is None:
            self.left = 0
        elif self.left > 0:
            self.left -= chunk.length
        return chunk

    def _next(self, n: int) -> Chunk | None:
        """Return up to ``n`` elements, from the input or padding."""
        chunk = None if self._ended else self.source.pull(n)
        if chunk is None and self.node.remainder == "repeat":
            self._open_again()
            chunk = self.source.pull(n)
        if chunk is not None:
            if self.node.remainder == "pad":
                self._last = chunk.slice(chunk.length - 1, chunk.length)
            self._is_empty = False
            return chunk
        self._ended = True
        if self.node.remainder == "drop":
            return None
        if self._last is None:
            self._last = self._example()
        return zeros_like(self._last)

    def _open_again(self) -> None:
        """Reopen the input; if it was empty, open the elements of another process instead."""
        if self._is_empty:
            self._part = self._fullest()
        self.source.close()
        self.source = self._open_part()

    def _open_part(self) -> Operator:
        own = self._part == self.node.rank
        return self.context(self.node.source if own else self.node.counts.parts[self._part])

    def _fullest(self) -> int:
        counts = self.node.counts()
        return counts.index(max(counts))

    def _example(self) -> Chunk:
        """Return an element of another process as an example for the shapes of zeros."""
        (example,) = probe(self.node.counts.parts[self._fullest()])
        return chunk_of_rows([example], structure_of(example))

    def save(self) -> State:
        return {
            "op": self.node.op,
            "source": self.source.save(),
            "left": self.left,
            "part": self._part,
            "is_empty": self._is_empty,
            "ended": self._ended,
            "last": save_chunk(self._last),
        }

    def load(self, state: State) -> None:
        self._is_empty, self._ended = bool(state["is_empty"]), bool(state["ended"])
        if int(state["part"]) != self._part:
            self._part = int(state["part"])
            self.source.close()
            self.source = self._open_part()
        self.source.load(state["source"])
        self.left = None if state["left"] is None else int(state["left"])
        self._last = load_chunk(state["last"], lambda: self.node.element_spec)

    def close(self) -> None:
        self.source.close()
