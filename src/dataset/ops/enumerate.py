"""Node and operator of enumerate(start): pair each element with its index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dataset.amounts import ENDLESS
from dataset.plan.block_cyclic_shard import BlockCyclicShard, places_in
from dataset.plan.cardinality import is_known
from dataset.plan.checks import require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Sharding, UnaryNode
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF, tuple_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position

_INT64_MAX = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Enumerate(UnaryNode, seekable=True, elastic=True):
    """Node that yields (int64 index, element) pairs, counted from ``start``."""

    op: ClassVar[str] = "enumerate"
    start: int
    shards: tuple[BlockCyclicShard, ...] = field(default=(), kw_only=True, repr=False)
    """The nested shards that this node processes; empty if it processes all elements."""

    def __post_init__(self) -> None:
        start = require_int("enumerate", "start", self.start, minimum=-_INT64_MAX - 1, maximum=_INT64_MAX)
        self._set("start", start)

    def _element_spec(self) -> Any:
        return (TensorSpec((), np.int64), self.source.element_spec)

    @lazy_property
    def traits(self) -> Traits:
        available = self.source.cardinality()
        has_numbers = self.start + (available if is_known(available) else ENDLESS) <= _INT64_MAX
        return super().traits.having(exact=has_numbers, infallible=has_numbers)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        if not shard.gives_all:
            return None
        return replace(self, source=below(self.source, shard.ordered()), shards=(*self.shards, shard))

    def lower(self, context: ExecutionContext) -> Operator:
        return EnumerateOperator(context(self.source), self)


class EnumerateOperator(UnaryOperator):
    """Operator that counts elements; a failed element uses up its index, as in tf.data."""

    saved = ("since", "base")

    def __init__(self, source: Operator, node: Enumerate) -> None:
        super().__init__(source)
        self.node = node
        self.since = self.base = 0  # see runtime/state/resharding.py

    def pull(self, n: int) -> Chunk | None:
        room = _INT64_MAX - self.node.start - self.at
        if not room:
            return None  # out of numbers, as in tf.data
        try:
            chunk = self.source.pull(min(n, room))
        except Exception:
            self.at += 1
            raise
        if chunk is None:
            return None
        numbers = np.arange(self.at, self.at + chunk.length, dtype=np.int64)
        if self.node.shards:
            numbers = self.base + places_in(self.node.shards, numbers - self.since)
        numbers += self.node.start
        self.at += chunk.length
        columns = [numbers, *chunk.columns()]
        return Chunk(tuple_of(LEAF, chunk.structure), chunk.length, columns, lineage=chunk.lineage)

    def advance(self, position: Position, count: int) -> Position | None:
        return None if self.node.start + position.at + count > _INT64_MAX else self.advance_input(position, count)
