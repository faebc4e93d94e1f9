"""Node and operator of shard_by_process over files: each process gets the same number of elements."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import Node, ShareNode, UnaryNode
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.padding_slots import AbsentError
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class EqualizeShards(UnaryNode, ShareNode):
    """Node with the elements of one process, truncated or padded to the smallest or largest count of all processes."""

    op: ClassVar[str] = "shard_by_process"
    share: BlockCyclicShard = field(kw_only=True)
    parts: tuple[Node, ...] = field(repr=False)
    """The plan of the elements of each process."""
    count: Callable[[Node], int] = field(repr=False)
    """Returns the number of elements of a part, reading its files if necessary. Called at the first pull."""

    def cardinality(self) -> int:
        known = [part.cardinality() for part in self.parts]
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in known else self.target(known)

    def target(self, counts: list[int]) -> int:
        """Return how many elements each process yields, given the counts of all."""
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return min(counts) if self.share.remainder == "drop" else max(counts)

    def parameters(self) -> dict[str, Any]:
        return dataclasses.asdict(self.share)

    def label(self) -> str:
        return f"{self.op}({self.share}, files)"

    def lower(self, context: ExecutionContext) -> Operator:
        return context(self.source) if context.iteration.epochs.probing else EqualizeShardsOperator(context, self)


class EqualizeShardsOperator(UnaryOperator):
    """Operator that counts down the remaining elements. Exceptions are raised and not counted."""

    saved = ("part",)

    def __init__(self, context: ExecutionContext, node: EqualizeShards) -> None:
        super().__init__(context(node.source))
        self.context = context
        self.node = node
        self.left: int | None = None  # remaining elements; -1 if infinite; None before the first pull
        self.part = node.share.rank  # the process whose elements are read

    def pull(self, n: int) -> Chunk | None:
        if self.left is None:
            self.left = self.node.target(self._counts)
        if not self.left:
            return None
        n = n if self.left < 0 else min(n, self.left)
        chunk, remainder = self.source.pull(n), self.node.share.remainder
        if chunk is None and remainder == "repeat":
            self._open(self.part if self._counts[self.part] else self._counts.index(max(self._counts)))
            chunk = self.source.pull(n)
        if chunk is None and remainder != "pad":
            self.left = 0
        elif self.left > 0:
            self.left -= 1 if chunk is None else chunk.length
        if chunk is None and remainder == "pad":
            raise AbsentError
        return chunk

    @functools.cached_property
    def _counts(self) -> list[int]:
        """The number of elements of each process."""
        return [self.node.count(part) for part in self.node.parts]

    def _open(self, part: int) -> None:
        """Read the elements of a process from the beginning."""
        self.source.close()
        self.part = part
        own = part == self.node.share.rank
        self.source = self.context(self.node.source if own else self.node.parts[part])

    def save(self) -> Position:
        return super().save().with_own(left=self.left)

    def load(self, position: Position) -> None:
        if position.count("part") != self.part:
            self._open(position.count("part"))
        super().load(position)
        self.left = None if position.own["left"] is None else position.count("left")
