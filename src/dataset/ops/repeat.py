"""repeat(count): the same dataset again and again. Each pass opens the input anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dataset.plan.cardinality import INFINITE_CARDINALITY, is_known, map_known
from dataset.plan.checks import require_int
from dataset.plan.deal import Deal
from dataset.plan.node import Node, UnaryNode
from dataset.runtime.chunk import Chunk
from dataset.runtime.operator import Build, Operator, State


@dataclass(frozen=True, eq=False)
class Repeat(UnaryNode):
    """``source``, ``count`` times; endlessly where ``count`` is None or negative."""

    op: ClassVar[str] = "repeat"
    seeks: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    count: int | None

    def __post_init__(self) -> None:
        count = -1 if self.count is None else require_int("repeat", "count", self.count)
        self._set("count", max(count, -1))

    @property
    def times(self) -> int:
        """How often; -1 for endlessly."""
        return -1 if self.count is None else self.count

    def cardinality(self) -> int:
        available = self.source.cardinality()
        if self.times < 0:
            return 0 if available == 0 else INFINITE_CARDINALITY
        return 0 if self.times == 0 else map_known(lambda n: n * self.times, available)

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: Deal) -> Deal | None:
        """Each pass is dealt out for itself, so that all processes end it together.

        A batch may reach from one pass into the next; then its elements are dealt out one by one.
        """
        length = self.source.cardinality()
        if is_known(length) and length % deal.round == 0:
            return deal
        if deal.in_order or (deal.remainder == "keep" and self.times >= 0):
            return None  # in each pass the same processes would have more
        return deal if deal.turn == 1 else None if deal.remainder == "pad" else deal.one_by_one()

    def described(self) -> str:
        return "repeat()" if self.times < 0 else f"repeat({self.count})"

    def lower(self, build: Build) -> Operator:
        return RepeatOperator(build, self.source, self.times)


class RepeatOperator(Operator):
    """Holds the open input of the current pass."""

    def __init__(self, build: Build, source: Node, times: int) -> None:
        self.build = build
        self.node = source
        self.times = times
        self.finished = 0  # passes
        self.pass_is_empty = True  # so far
        self.source: Operator | None = build(source) if times else None

    def pull(self, n: int) -> Chunk | None:
        while self.source is not None:
            chunk = self.source.pull(n)
            if chunk is not None:
                self.pass_is_empty = False
                return chunk
            self._next_pass()
        return None

    def seek(self, count: int) -> None:
        assert self.source is not None
        length = self.node.cardinality()
        if length > 0:
            passes, count = divmod(count, length)
            self.finished += passes
        self.source.seek(count)

    def _next_pass(self) -> None:
        assert self.source is not None
        self.source.close()
        self.finished += 1
        # An endless repetition of nothing would never come back.
        over = self.finished == self.times or (self.times < 0 and self.pass_is_empty)
        self.source = None if over else self.build(self.node)
        self.pass_is_empty = True

    def state_dict(self) -> State:
        return {
            "finished": self.finished,
            "pass_is_empty": self.pass_is_empty,
            "source": None if self.source is None else self.source.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self.finished = int(state["finished"])
        self.pass_is_empty = bool(state["pass_is_empty"])
        if state["source"] is None:
            self.close()
        elif self.source is not None:
            self.source.load_state_dict(state["source"])

    def close(self) -> None:
        if self.source is not None:
            self.source.close()
            self.source = None
