"""Rule types, shared by the driver and the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from dataset.plan.node import Miss, Node

Rule: TypeAlias = Callable[[Node], Node | Miss | None]
"""Function that returns a replacement for a node, a Miss if the rule nearly applies, or None if it does not apply.

A rule may inspect everything upstream of the node, to which all rules have already been applied. The replacement must
have the same elements, failures in the same places, and the same cardinality. It must not call additional user code,
nor call user code earlier.
"""


class WholePlanRule(Protocol):
    """Protocol of rules that rewrite the end of a plan. ``asked_for``: the user has turned the rule on by name."""

    def __call__(self, plan: Node, /, *, asked_for: bool) -> Node | Miss | None: ...
