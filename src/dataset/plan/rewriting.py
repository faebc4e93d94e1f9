"""Rewriting records: which rules the optimizer applied to a plan. The rules themselves are in optimize/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataset.plan.node import Node
from dataset.plan.origin import Origin


@dataclass(frozen=True)
class Fired:
    """Record of a rule that was applied: its name, the original op, and the user's source line of the op."""

    rule: str
    label: str
    origin: Origin

    def __str__(self) -> str:
        return f"{self.rule}: {self.label} from {self.origin}"


@dataclass(frozen=True)
class Missed(Fired):
    """Record of a rule that was nearly applied, and the reason why it was not."""

    reason: str

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.reason}"


@dataclass(frozen=True)
class Rewritten:
    """Optimized plan, with the rules that were applied or nearly applied."""

    plan: Node
    fired: tuple[Fired, ...]
    missed: tuple[Missed, ...]
    rules_of: Mapping[Node, tuple[str, ...]]
    """For each node of ``plan`` that the optimizer created, the rules that created it."""
