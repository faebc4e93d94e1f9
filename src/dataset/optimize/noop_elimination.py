"""Leave out operations that pass on every element as it is.

    before:  range(10) -> take(-1) -> repeat(1) -> prefetch(0)
    after:   range(10)

Legal for: take of a negative count, skip(0), repeat(1), shard(1, 0), prefetch(0), shuffle(1), and options, which have
been read by then. shuffle(1) moves nothing, and the epoch it counts is seen by nobody else. concatenate with a dataset
that is known to be empty, without running anything, is the other dataset, where that is not
known to have another spec.
"""

from __future__ import annotations

from dataset.ops.concatenate import Concatenate
from dataset.ops.prefetch import Prefetch
from dataset.ops.repeat import Repeat
from dataset.ops.shard import Shard
from dataset.ops.shuffle import Shuffle
from dataset.ops.skip import Skip
from dataset.ops.take import Take
from dataset.ops.with_options import WithOptions
from dataset.plan.node import Node, holds_user_code, spec_is_static


def eliminate_noop(node: Node) -> Node | None:
    """The input of an operation that does nothing."""
    match node:
        case Take(count=count) if count < 0:
            return node.source
        case Skip(count=0) | Shard(num_shards=1) | Prefetch(buffer_size=0) | Shuffle(buffer_size=1) | WithOptions():
            return node.source
        case Repeat() if node.times == 1:
            return node.source
        case Concatenate():
            return _without_empty(node)
    return None


def _without_empty(node: Concatenate) -> Node | None:
    for empty, rest in ((node.source, node.other), (node.other, node.source)):
        if (
            empty.cardinality() == 0
            and not holds_user_code(empty)
            and (not spec_is_static(rest) or repr(rest.element_spec) == repr(node.element_spec))
        ):
            return rest
    return None
