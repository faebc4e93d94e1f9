"""Node of with_options(options): pipeline settings. It has no operator of its own."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import ClassVar

from dataset.options import Options
from dataset.plan.node import Node, UnaryNode, inputs_first
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator


@dataclass(frozen=True, eq=False)
class WithOptions(UnaryNode, aligned=True, seekable=True, exact=True, only_reorders=True, separable=True, elastic=True):
    """Node that runs ``source`` with ``options``."""

    op: ClassVar[str] = "with_options"
    options: Options = field(repr=False)

    def simplified(self) -> Node:
        """Return the input: the options were read before the plan is rewritten."""
        return self.source

    def lower(self, context: ExecutionContext) -> Operator:
        return context(self.source)


def options_of(node: Node) -> Options:
    """Merge all options in a plan; options set further downstream take precedence."""
    merged: dict[Node, Options] = {}
    for part in inputs_first(node):
        options = functools.reduce(Options.merge, [merged[source] for source in part.inputs] or [Options()])
        merged[part] = options.merge(part.options) if isinstance(part, WithOptions) else options
    return merged[node]
