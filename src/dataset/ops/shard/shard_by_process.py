"""Node of shard_by_process over elements: the share of one process, with equally many elements per process.

optimize/sharding/ decides how far upstream the node is placed, and whether files are sharded instead. At the end of the
plan, a row of zeros replaces a missing element (pad_missing.py); until then, an ``AbsentError`` does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.ops.shard.shard_operator import open_shard
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import UNKNOWN_CARDINALITY, is_known, map_known
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, ShareNode, UnaryNode, is_infallible
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class ShardByProcess(UnaryNode, ShareNode, elastic=True):
    """Node with the elements that ``share`` assigns to one process."""

    op: ClassVar[str] = "shard_by_process"
    share: BlockCyclicShard = field(kw_only=True)

    @lazy_property
    def traits(self) -> Traits:
        whole = self.share.gives_all or self._comes_out_even
        positional = self.share.remainder != "pad"  # a marker for an absent element has no row number
        return super().traits.having(seekable=whole, exact=whole, only_reorders=whole, positional=positional)

    @property
    def _comes_out_even(self) -> bool:
        """Whether the last round is known to be complete; failed elements count."""
        count, share = self.source.cardinality(), self.share
        return is_known(count) and self.is_counted and share.turns_in(count % share.round) in {0, share.world_size}

    @property
    def is_counted(self) -> bool:
        """Whether the number of elements is known; failed elements count."""
        return self.source.cardinality() != UNKNOWN_CARDINALITY and _is_counted(self.source)

    def cardinality(self) -> int:
        return map_known(self.share.count, self.source.cardinality())

    def input_positions(self, positions: Array) -> Array | None:
        return self.share.places(positions) if self.share.gives_all else None

    def parameters(self) -> dict[str, Any]:
        """Return what must match a saved state: rank and world size may change."""
        return {"remainder": self.share.remainder}

    def fingerprint_fields(self) -> Any:
        return dataclasses.asdict(self.share)

    def simplified(self) -> Node | None:
        return self.source if self.share.world_size == 1 and not self.is_counted else None

    def label(self) -> str:
        turns = f", {self.share.turn} at a time" if self.share.turn > 1 else ""
        return f"{self.op}({self.share}{turns})"

    def lower(self, context: ExecutionContext) -> Operator:
        return open_shard(context, self, self.share)


def _is_counted(node: Node) -> bool:
    """Return whether the node yields exactly as many elements, or exceptions in their place, as it declares."""
    traits = node.traits
    return is_infallible(node) or traits.indexable or (traits.permutes and all(map(_is_counted, node.inputs)))
