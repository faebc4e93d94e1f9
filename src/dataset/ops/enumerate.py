"""enumerate(start): each element with its number before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from dataset.plan.cardinality import is_known
from dataset.plan.checks import require_int
from dataset.plan.deal import Deal, places_in
from dataset.plan.node import Node, UnaryNode
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import LEAF, tuple_of
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State, UnaryOperator

_INT64_MAX = 2**63 - 1
_NEVER_READ = 2**62  # as many elements of an endless dataset as nobody lives to see


@dataclass(frozen=True, eq=False)
class Enumerate(UnaryNode):
    """(int64 number, element), counted from ``start``."""

    op: ClassVar[str] = "enumerate"
    seeks: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    start: int
    deals: tuple[Deal, ...] = field(default=(), kw_only=True, repr=False)
    """Where only a share of the elements comes through here: which share, of which share."""

    def __post_init__(self) -> None:
        start = require_int("enumerate", "start", self.start, minimum=-_INT64_MAX - 1, maximum=_INT64_MAX)
        self._set("start", start)

    def _element_spec(self) -> Any:
        return (TensorSpec((), np.int64), self.source.element_spec)

    @property
    def is_certain(self) -> bool:
        """If the numbers do not end before the elements."""
        available = self.source.cardinality()
        needed = available if is_known(available) else _NEVER_READ
        return super().is_certain and self.start + needed <= _INT64_MAX

    def deal_below(self, deal: Deal) -> Deal | None:
        return deal.ordered() if deal.gives_all else None

    def over_share(self, inputs: Sequence[Node], deal: Deal) -> Self:
        return replace(self.with_inputs(inputs), deals=(*self.deals, deal))

    def lower(self, build: Build) -> Operator:
        return EnumerateOperator(build(self.source), self)


class EnumerateOperator(UnaryOperator):
    """Counts; an element that fails uses up its number, as in tf.data."""

    def __init__(self, source: Operator, node: Enumerate) -> None:
        super().__init__(source)
        self.node = node
        self.next = node.start

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
        if self.node.deals:
            numbers = self.node.start + places_in(self.node.deals, numbers - self.node.start)
        self.next += chunk.length
        return Chunk(tuple_of(LEAF, chunk.structure), chunk.length, [numbers, *chunk.columns()])

    def seek(self, count: int) -> None:
        self.next = min(self.next + count, _INT64_MAX)
        self.source.seek(count)

    def state_dict(self) -> State:
        return {**super().state_dict(), "next": self.next}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.next = int(state["next"])
