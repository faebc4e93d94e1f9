"""Leave out operations that pass on every element as it is.

    before:  range(10) -> take(-1) -> repeat(1) -> prefetch(0)
    after:   range(10)

Legal for: take of a negative count, skip(0), repeat(1), shard(1, 0), prefetch(0), shuffle(1), and options, which have
been read by then. shuffle(1) moves nothing, and the epoch it counts is seen by nobody else.
"""

from __future__ import annotations

from dataset.ops.prefetch import Prefetch
from dataset.ops.repeat import Repeat
from dataset.ops.shard import Shard
from dataset.ops.shuffle import Shuffle
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.ops.with_options import WithOptions
from dataset.plan.node import Node


def eliminate_noop(node: Node) -> Node | None:
    """The input of an operation that does nothing."""
    match node:
        case Take(count=count) if count < 0:
            return node.source
        case Skip(count=0) | Shard(num_shards=1) | Prefetch(buffer_size=0) | Shuffle(buffer_size=1) | WithOptions():
            return node.source
        case Repeat() if node.times == 1:
            return node.source
    return None
