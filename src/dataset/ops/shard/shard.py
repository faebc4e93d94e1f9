"""Node and operator of shard(num_shards, index): every num_shards-th element, to split data among workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dataset.ops.sources.row_source import RowsOperator, on_numbers
from dataset.plan.cardinality import map_known
from dataset.plan.checks import require_int
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator, assumes_no_failures


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
        source = context(self.source)
        is_infallible = self.source.is_infallible or isinstance(source, RowsOperator)  # row numbers never fail
        return on_numbers(source, lambda numbers: ShardOperator(numbers, self, is_infallible=is_infallible))


class ShardOperator(UnaryOperator):
    """Operator that counts the elements before the next element of the shard."""

    def __init__(self, source: Operator, node: Shard, *, is_infallible: bool) -> None:
        super().__init__(source)
        self.num_shards = node.num_shards
        self.index = node.index
        self.is_infallible = is_infallible  # else failures are raised and do not count
        self.ahead = node.index

    def pull(self, n: int) -> Chunk | None:
        while True:
            # Pulls exactly up to the n-th element of the shard. Exceptions are not counted, as in tf.data.
            chunk = self.source.pull(self.ahead + 1 + (n - 1) * self.num_shards)
            if chunk is None:
                return None
            start = self.ahead
            self.ahead = (start - chunk.length) % self.num_shards
            if start < chunk.length:
                return chunk.stride(start, self.num_shards)

    def save(self) -> State:
        return {"op": Shard.op, **super().save(), "ahead": self.ahead}

    def advance(self, state: State, count: int) -> State | None:
        if not (self.is_infallible or assumes_no_failures()):
            return None
        to_last = int(state["ahead"]) + (count - 1) * self.num_shards
        below = self.source.advance(state["source"], to_last + 1)
        return None if below is None else {**state, "source": below, "ahead": self.num_shards - 1}

    def load(self, state: State) -> None:
        super().load(state)
        self.ahead = int(state["ahead"])
