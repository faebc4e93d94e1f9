"""with_options(options): settings for the pipeline. Changes no element; runs as its input."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import ClassVar

from dataset.options import Options
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.node import Node, UnaryNode, inputs_first
from dataset.runtime.chunks.chunk import Array
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class WithOptions(UnaryNode):
    """``source``, to be run with ``options``."""

    op: ClassVar[str] = "with_options"
    seeks: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    moves_only: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    options: Options = field(repr=False)

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: BlockCyclicShard) -> BlockCyclicShard:
        return deal

    def picked(self, positions: Array) -> Node | None:
        below = self.source.picked(positions)
        return None if below is None else self.with_inputs([below])

    def lower(self, build: ExecutionContext) -> Operator:
        return build(self.source)


def options_of(node: Node) -> Options:
    """All options in a plan, merged: what was set later, nearer to the end of the chain, wins."""
    merged: dict[Node, Options] = {}
    for part in inputs_first(node):
        options = functools.reduce(Options.merge, [merged[source] for source in part.inputs] or [Options()])
        merged[part] = options.merge(part.options) if isinstance(part, WithOptions) else options
    return merged[node]
