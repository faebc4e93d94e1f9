"""Node and operators of skip(count): everything after the first count elements. See take.py for the counterpart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from dataset.ops.sources.row_source import open_on_numbers
from dataset.plan.cardinality import is_known
from dataset.plan.checks import require_int
from dataset.plan.node import Node, RewritableNode, UnaryNode, is_exact
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator, assumes_no_failures, seek
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class Skip(UnaryNode, RewritableNode, seekable=True, exact=True, only_reorders=True, positional=True, views=True):
    """Node that drops the first ``count`` elements; all elements if ``count`` is negative."""

    op: ClassVar[str] = "skip"
    rule: ClassVar[str] = "skip_by_seeking"
    count: int
    by_seeking: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer if not computing the skipped elements is unobservable."""

    def __post_init__(self) -> None:
        self._set("count", require_int("skip", "count", self.count))

    def cardinality(self) -> int:
        available = self.source.cardinality()
        if not is_known(available):
            return available
        return 0 if self.count < 0 else max(0, available - self.count)

    def input_positions(self, positions: Array) -> Array:
        return positions + (self.count if self.count >= 0 else self.source.cardinality())

    def simplified(self) -> Node | None:
        if not self.count:
            return self.source
        if isinstance(self.source, Skip):
            count = -1 if self.source.count < 0 or self.count < 0 else self.source.count + self.count
            return replace(self, source=self.source.source, count=count)
        return None

    def rewritten(self) -> Node | None:
        """Return the skip, set to seek if no element can fail, which it would not count, and no user code runs."""
        may_seek = self.count > 0 and not self.by_seeking and is_exact(self.source)
        return replace(self, by_seeking=True) if may_seek else None

    def label(self) -> str:
        return f"skip({self.count})"

    def annotation(self) -> str:
        return "by seeking" if self.by_seeking else ""

    def lower(self, context: ExecutionContext) -> Operator:
        if self.by_seeking:
            return SeekingSkipOperator(context(self.source), self)
        return open_on_numbers(context, self, SkipOperator)


class SkipOperator(UnaryOperator):
    """Operator that discards elements until none is left to skip."""

    saved = ("remaining",)

    def __init__(self, source: Operator, node: Skip, *, is_infallible: bool) -> None:
        super().__init__(source)
        self.node = node
        self.is_infallible = is_infallible  # else failures while skipping are raised and do not count
        self.remaining = node.count  # negative: skip everything, without running the input

    def pull(self, n: int) -> Chunk | None:
        while self.remaining:
            passed = self.source.skip(self.remaining) if self.remaining > 0 else 0
            if not passed:
                return None
            self.remaining -= passed
        return self.source.pull(n)

    def advance(self, position: Position, count: int) -> Position | None:
        remaining = position.like("remaining", self.node.count)
        if remaining < 0 or (remaining and not (self.is_infallible or assumes_no_failures())):
            return None
        return self.advance_input(position, count, remaining + count, remaining=0)


class SeekingSkipOperator(SkipOperator):
    """Operator that seeks past all skipped elements at once, at the first pull."""

    def __init__(self, source: Operator, node: Skip) -> None:
        super().__init__(source, node, is_infallible=True)
        self.nothing_is_left = node.cardinality() == 0

    def pull(self, n: int) -> Chunk | None:
        if self.nothing_is_left:
            return None
        if self.remaining == self.node.count:  # else a loaded state has already skipped some of them
            seek(self.source, self.remaining)
            self.remaining = 0
        return super().pull(n)
