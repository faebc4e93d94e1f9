"""Node and operator of shard_by_process over files: each process gets the same number of elements."""

from __future__ import annotations

import dataclasses
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
        source = context(self.source)
        return source if context.iteration.epochs.probing else EqualizeShardsOperator(source, self)


class EqualizeShardsOperator(UnaryOperator):
    """Operator that counts down the remaining elements. Exceptions are raised and not counted."""

    saved = ("left",)

    def __init__(self, source: Operator, node: EqualizeShards) -> None:
        super().__init__(source)
        self.node = node
        self.left = UNKNOWN_CARDINALITY  # the number of remaining elements

    def pull(self, n: int) -> Chunk | None:
        if self.left == UNKNOWN_CARDINALITY:
            self.left = self.node.target([self.node.count(part) for part in self.node.parts])
        if not self.left:
            return None
        chunk = self.source.pull(n if self.left < 0 else min(n, self.left))
        if chunk is None and self.node.share.remainder == "drop":
            self.left = 0
            return None
        if self.left > 0:
            self.left -= 1 if chunk is None else chunk.length
        if chunk is None:
            raise AbsentError
        return chunk
