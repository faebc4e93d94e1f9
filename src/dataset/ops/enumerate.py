"""Node and operator of enumerate(start): pair each element with its index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

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
from dataset.runtime.contract import Operator, State, UnaryOperator

_INT64_MAX = 2**63 - 1
_NEVER_READ = 2**62  # more elements than can ever be read


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
        has_numbers = self.start + (available if is_known(available) else _NEVER_READ) <= _INT64_MAX
        return super().traits.having(exact=has_numbers, infallible=has_numbers)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        if not shard.gives_all:
            return None
        return replace(self, source=below(self.source, shard.ordered()), shards=(*self.shards, shard))

    def lower(self, context: ExecutionContext) -> Operator:
        return EnumerateOperator(context(self.source), self)


class EnumerateOperator(UnaryOperator):
    """Operator that counts elements; a failed element uses up its index, as in tf.data."""

    def __init__(self, source: Operator, node: Enumerate) -> None:
        super().__init__(source)
        self.node = node
        self.next = node.start
        self.since = self.base = 0  # see runtime/state/resharding.py

    def pull(self, n: int) -> Chunk | None:
        room = _INT64_MAX - self.next
        if not room:
            return None  # out of numbers, as in tf.data
        try:
            chunk = self.source.pull(min(n, room))
        except Exception:
            self.next += 1
            raise
        if chunk is None:
            return None
        numbers = np.arange(self.next, self.next + chunk.length, dtype=np.int64)
        if self.node.shards:
            numbers = self.node.start + self.base + places_in(self.node.shards, numbers - self.node.start - self.since)
        self.next += chunk.length
        columns = [numbers, *chunk.columns()]
        return Chunk(tuple_of(LEAF, chunk.structure), chunk.length, columns, lineage=chunk.lineage)

    def save(self) -> State:
        place = {"position": self.next - self.node.start, "since": self.since, "base": self.base}
        return {"op": Enumerate.op, **super().save(), **place}

    def advance(self, state: State, count: int) -> State | None:
        position = int(state["position"]) + count
        if self.node.start + position > _INT64_MAX:
            return None
        below = self.source.advance(state["source"], count)
        return None if below is None else {**state, "source": below, "position": position}

    def load(self, state: State) -> None:
        super().load(state)
        self.next = self.node.start + int(state["position"])
        self.since, self.base = int(state["since"]), int(state["base"])
