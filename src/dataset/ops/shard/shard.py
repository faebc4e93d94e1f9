"""shard(num_shards, index): every num_shards-th element, so that several workers share the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dataset.ops.row_source import RowsOperator, on_numbers
from dataset.plan.cardinality import map_known
from dataset.plan.checks import require_int
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator, is_trusting


@dataclass(frozen=True, eq=False)
class Shard(UnaryNode):
    """The elements at positions ``index``, ``index + num_shards``, ..."""

    op: ClassVar[str] = "shard"
    seeks: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    moves_only: ClassVar[bool] = True
    num_shards: int
    index: int

    def __post_init__(self) -> None:
        self._set("num_shards", require_int("shard", "num_shards", self.num_shards, minimum=1))
        self._set("index", require_int("shard", "index", self.index, minimum=0))
        if self.index >= self.num_shards:
            raise ValueError(f"shard(): index must be below num_shards, {self.num_shards}, got {self.index}")

    def cardinality(self) -> int:
        return map_known(lambda n: len(range(self.index, n, self.num_shards)), self.source.cardinality())

    def picked(self, positions: Array) -> Node | None:
        return self.source.picked(positions * self.num_shards + self.index)

    def described(self) -> str:
        return f"shard({self.num_shards}, {self.index})"

    def lower(self, build: ExecutionContext) -> Operator:
        source = build(self.source)
        never_fails = self.source.never_fails or isinstance(source, RowsOperator)  # numbers don't
        return on_numbers(source, lambda numbers: ShardOperator(numbers, self, never_fails=never_fails))


class ShardOperator(UnaryOperator):
    """Knows how many elements stand before the next of its own."""

    def __init__(self, source: Operator, node: Shard, *, never_fails: bool) -> None:
        super().__init__(source)
        self.num_shards = node.num_shards
        self.index = node.index
        self.never_fails = never_fails  # else what fails comes out, and does not count
        self.ahead = node.index

    def pull(self, n: int) -> Chunk | None:
        while True:
            # Up to the n-th of ours and not one further. An exception passes uncounted, as in tf.data.
            chunk = self.source.pull(self.ahead + 1 + (n - 1) * self.num_shards)
            if chunk is None:
                return None
            start = self.ahead
            self.ahead = (start - chunk.length) % self.num_shards
            if start < chunk.length:
                return chunk.stride(start, self.num_shards)

    @property
    def picks(self) -> bool:  # type: ignore[override]  # here it depends on the input
        return self.source.picks

    def pick(self, positions: Array) -> Chunk:
        return self.source.pick(positions * self.num_shards + self.index)

    def seek(self, count: int) -> None:
        self.source.seek(self.ahead + count * self.num_shards)
        self.ahead = 0

    def state_dict(self) -> State:
        return {"op": Shard.op, **super().state_dict(), "ahead": self.ahead}

    def state_after(self, state: State, count: int) -> State | None:
        if not (self.never_fails or is_trusting()):
            return None
        to_last = int(state["ahead"]) + (count - 1) * self.num_shards
        below = self.source.state_after(state["source"], to_last + 1)
        return None if below is None else {**state, "source": below, "ahead": self.num_shards - 1}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.ahead = int(state["ahead"])
