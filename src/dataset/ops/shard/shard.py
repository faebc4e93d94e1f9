"""Node of shard(num_shards, index): every num_shards-th element, to split data among workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dataset.ops.shard.shard_operator import open_shard
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import map_known
from dataset.plan.checks import require_int
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunks.chunk import Array
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class Shard(UnaryNode, seekable=True, exact=True, only_reorders=True, positional=True, views=True):
    """Node that passes on the elements at positions ``index``, ``index + num_shards`` and so on."""

    op: ClassVar[str] = "shard"
    num_shards: int
    index: int

    def __post_init__(self) -> None:
        self._set("num_shards", require_int("shard", "num_shards", self.num_shards, minimum=1))
        self._set("index", require_int("shard", "index", self.index, minimum=0))
        if self.index >= self.num_shards:
            raise ValueError(f"shard(): index must be below num_shards, {self.num_shards}, got {self.index}")

    def cardinality(self) -> int:
        return map_known(lambda n: len(range(self.index, n, self.num_shards)), self.source.cardinality())

    def input_positions(self, positions: Array) -> Array:
        return positions * self.num_shards + self.index

    def simplified(self) -> Node | None:
        if self.num_shards == 1:
            return self.source
        if isinstance(self.source, Shard):
            inner = self.source
            count, index = inner.num_shards * self.num_shards, inner.index + inner.num_shards * self.index
            return replace(self, source=inner.source, num_shards=count, index=index)
        return None

    def label(self) -> str:
        return f"shard({self.num_shards}, {self.index})"

    def lower(self, context: ExecutionContext) -> Operator:
        return open_shard(context, self, BlockCyclicShard(self.num_shards, self.index, "keep"))
