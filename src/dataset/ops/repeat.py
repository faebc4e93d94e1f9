"""Node and operator of repeat(count): several passes over one dataset. Each pass reopens the input."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from dataset.errors import StateError
from dataset.ops.repeat_in_memory import PASS_MAX, open_in_memory
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY, is_known, map_known
from dataset.plan.checks import require_int
from dataset.plan.epochs import openings
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, RewritableNode, Sharding, UnaryNode, inputs_first, is_exact, is_infallible
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.padding_slots import AbsentError
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, Upstream, assumes_no_failures
from dataset.runtime.position import Position


@dataclass(frozen=True, eq=False)
class Repeat(
    UnaryNode,
    RewritableNode,
    seekable=True,
    exact=True,
    only_reorders=True,
    positional=True,
    views=True,
    separable=True,
    elastic=True,
):
    """Node that repeats ``source`` ``count`` times; endlessly if ``count`` is None or negative."""

    op: ClassVar[str] = "repeat"
    rule: ClassVar[str] = "repeat_pushdown"
    count: int | None
    in_memory: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer if the elements of one pass may be held in memory."""
    process: str = field(default="", kw_only=True, repr=False)
    """The process whose files are read; empty if no other process repeats other files and would wait for this one."""

    def __post_init__(self) -> None:
        count = -1 if self.count is None else require_int("repeat", "count", self.count)
        self._set("count", max(count, -1))

    @property
    def times(self) -> int:
        """The number of passes; -1 for endless repetition."""
        return -1 if self.count is None else self.count

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(passes=self.times)

    def cardinality(self) -> int:
        available = self.source.cardinality()
        if self.times < 0:
            return 0 if available == 0 else INFINITE_CARDINALITY
        return 0 if self.times == 0 else map_known(lambda n: n * self.times, available)

    def sharded(self, shard: BlockCyclicShard, below: Sharding) -> Self | None:
        """Shard each pass separately, so that all processes end it together.

        A batch may span two passes; then its elements are sharded one by one.
        """
        length = self.source.cardinality()
        if is_known(length) and length % shard.round == 0:
            shard = shard.relying_on_even()
        elif shard.in_order or (shard.remainder == "keep" and self.times >= 0):
            return None  # the same processes would get more elements in each pass
        elif shard.turn > 1:
            if shard.remainder == "pad":
                return None
            shard = shard.one_by_one()
        return self.with_inputs([below(self.source, shard)])

    def input_positions(self, positions: Array) -> Array | None:
        length = self.source.cardinality()
        if self.times == 1:
            return positions
        return positions % length if length > 0 else None

    def simplified(self) -> Node | None:
        return self.source if self.times == 1 else None

    def rewritten(self) -> Node | None:
        """Return the op, set to hold the elements of a source that is exact, so that all passes are alike.

        They must be numbers, views or a single element, and at most PASS_MAX.
        """
        source, traits = self.source, self.source.traits
        if self.in_memory or self.times == 0 or source.inputs:
            return None
        is_cheap = traits.generated or traits.views or source.cardinality() == 1
        fits = is_cheap and is_exact(source) and 0 < source.cardinality() <= PASS_MAX
        return replace(self, in_memory=True) if fits else None

    def label(self) -> str:
        return "repeat()" if self.times < 0 else f"repeat({self.count})"

    def annotation(self) -> str:
        return "in memory" if self.in_memory else ""

    def lower(self, context: ExecutionContext) -> Operator:
        if self.in_memory:
            return open_in_memory(context, self.source, self.times)
        return RepeatOperator(context, self.source, self.times, self.process)


_REMEMBERED = 4  # passes that a reader may be ahead by


class RepeatOperator(Operator):
    """Operator that holds the open input of the current pass.

    ``at`` is the position in the pass; a failed element counts. It remembers how recent passes began and how long they
    were; ``advance`` needs both to cross the end of a pass. The input of the last pass stays open after its end:
    its position says which pass a cache upstream has kept, and that pass is still needed if another operator repeats
    this one.
    """

    op = Repeat.op
    saved = ("finished", "pass_is_empty", "over")

    def __init__(self, context: ExecutionContext, source: Node, times: int, process: str = "") -> None:
        self.context = context
        self.process = process
        self.node = source
        self.times = times
        self.finished = 0  # passes
        self.pass_is_empty = True  # so far
        self.over = not times
        self.source: Operator | None = context(source) if times else None
        self._lengths: dict[int, int] = {}  # of finished passes
        self._beginnings: dict[int, Position] = {}  # position of the input at the beginning of a pass

    def pull(self, n: int) -> Chunk | None:
        while self.source is not None and not self.over:
            try:
                chunk = self.source.pull(n)
            except Exception as error:
                self.at += 1
                self.pass_is_empty &= not isinstance(error, AbsentError)  # other processes have elements
                raise
            if chunk is not None:
                self.pass_is_empty = False
                self.at += chunk.length
                return chunk
            self._next_pass()
        return None

    def _next_pass(self) -> None:
        assert self.source is not None
        self._lengths[self.finished] = self.at
        self._lengths.pop(self.finished - _REMEMBERED, None)
        self._beginnings.pop(self.finished - _REMEMBERED, None)
        self.finished += 1
        # An endless repetition of an empty input would never return.
        self.over = self.finished == self.times or (self.times < 0 and self.pass_is_empty)
        self.pass_is_empty, self.at = True, 0
        if self.over and self.times < 0 and self.process:
            raise ValueError(
                f"process {self.process}: repeat() ends, because the files of this process contain no elements; the "
                'processes whose files do would wait for it: pass by="elements" to shard_by_process()'
            )
        if not self.over:
            self.source.close()
            self.source = self.context(self.node, self.finished)
            with contextlib.suppress(StateError):  # only ``advance`` needs it
                self._beginnings[self.finished] = self.source.save()

    def upstream(self) -> Sequence[Upstream]:
        return () if self.source is None else (self.source,)

    def advance(self, position: Position, count: int) -> Position | None:
        """Return a position in the same pass or one that has begun; how a later pass begins is unknown until then."""
        if self.source is None or position.own["over"]:
            return None
        finished, beginning, passed = position.count("finished"), position.source, position.at + count
        below = self._advance_in(finished, beginning, count)
        while below is None and passed > (length := self._length_of(finished, passed)):
            passes = max(1, (passed - 1) // length) if self._passes_are_alike else 1
            passed -= passes * length
            finished += passes
            start = self._fresh if self._passes_are_alike else self._beginnings.get(finished)
            below = None if start is None else self._advance_in(finished, start, passed)
        if below is None or 0 <= self.times <= finished or not self._gives_elements(finished, position):
            return None
        return position.having(
            at=passed, inputs=(below,), own={"finished": finished, "pass_is_empty": False, "over": False}
        )

    def _advance_in(self, number: int, position: Position, count: int) -> Position | None:
        """Return the position of the input ``count`` elements later in a pass.

        A repetition below remembers only the passes that it makes in the present one of this operator.
        """
        source = self.source  # before ``finished``: another thread sets it later
        assert source is not None
        is_present = number == self.finished or self._passes_are_alike or not self._is_over_another
        return source.advance(position, count) if is_present else None

    @lazy_property
    def _is_over_another(self) -> bool:
        return any(node.traits.passes != 1 for node in inputs_first(self.node))

    def _length_of(self, number: int, default: int) -> int:
        """Return how many elements a pass has, if it is known; failed elements count."""
        length = self.node.cardinality()
        is_certain = length > 0 and (is_infallible(self.node) or assumes_no_failures())
        return length if is_certain else self._lengths.get(number, default)

    @lazy_property
    def _passes_are_alike(self) -> bool:
        """Whether all passes begin at the same position and yield the same, failures included."""
        keeps_pass = any(part.traits.keeps_pass for part in inputs_first(self.node))
        return not openings(self.node) and (not keeps_pass or is_infallible(self.node))

    @lazy_property
    def _fresh(self) -> Position:
        """The position of the input at the beginning of a pass."""
        operator = self.context.unprofiled()(self.node)
        try:
            return operator.save()
        finally:
            operator.close()

    def _gives_elements(self, number: int, position: Position) -> bool:
        """Return whether a pass is known to have elements that do not fail; without them an endless repetition ends."""
        if self.times > 0 or is_infallible(self.node) or number < self.finished or assumes_no_failures():
            return True
        is_of_position = number == position.own["finished"] and not position.own["pass_is_empty"]
        return is_of_position or (number == self.finished and not self.pass_is_empty)

    def load(self, position: Position) -> None:
        number = position.count("finished") - position.like("over", False)
        # Random operators upstream, and the lineage of sources, need the number of the pass.
        if self.source is not None and number and (openings(self.node) or self.context.is_traced):
            self.source.close()
            self.source = self.context(self.node, number)
        super().load(position)
