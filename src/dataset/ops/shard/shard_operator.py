"""Operator of shard and shard_by_process: the elements of one shard, and the substitute for a missing turn.

If the number of elements is known and none can fail, an element is returned as soon as it is read. Then all processes
that have returned equally many elements are at the start of the same round, so any state gives the position of all of
them. From there, sharding can restart with a different number of processes: ``base`` elements have been returned, and
the rest is sharded as a sequence of its own (runtime/state/resharding.py).

Otherwise elements are returned in complete turns, so that an exception of the input never occurs within a batch that is
made of a turn; with "drop", only after the input has shown that their round is complete. An exception is not an
element; every process raises it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dataset.amounts import ENDLESS, FAR
from dataset.errors import StateError
from dataset.ops.sources.row_source import open_on_numbers
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from dataset.plan.node import UnaryNode, is_infallible
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.padding_slots import AbsentError
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator, assumes_no_failures
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position

_STEP_MAX = 32768  # maximum elements per pull


def open_shard(context: ExecutionContext, node: UnaryNode, shard: BlockCyclicShard) -> Operator:
    """Open the operator of a node that outputs a shard of its input; on row numbers, if reading rows may fail."""
    if shard.remainder == "pad":  # an absent element has no row number
        return ShardOperator(context(node.source), node, shard, is_infallible=is_infallible(node.source))
    return open_on_numbers(context, node, partial(ShardOperator, shard=shard))


class ShardOperator(UnaryOperator):
    """Operator that counts the input elements read since ``base``, and the elements returned since then.

    Args:
        source: the input.
        node: the node, whose input determines the number of elements.
        shard: which elements to return.
        is_infallible: whether no element of the input can fail.
    """

    saved = ("ended",)

    def __init__(self, source: Operator, node: UnaryNode, shard: BlockCyclicShard, *, is_infallible: bool) -> None:
        super().__init__(source)
        self.node = node
        self.whole = shard  # the shard if the input is sharded from its beginning
        self.is_infallible = is_infallible
        self.elements = node.source.cardinality() if is_infallible else UNKNOWN_CARDINALITY
        self.read = 0
        self.ended = False
        self._held = OutcomeQueue()  # elements that were read but not returned; after the end, also the substitute
        self._first = OutcomeQueue()  # the elements at the positions ``_kept``
        self._begin(0)

    def _begin(self, base: int) -> None:
        self.base = base
        self.shard, self._own, self._kept = self._sharded_from(base)

    def _sharded_from(self, base: int) -> tuple[BlockCyclicShard, int | None, range]:
        """Return how the input from position ``base`` on is sharded.

        Returns:
            The shard, its number of elements if it is known, and the positions of the elements that must be kept
            because they may become the substitute.
        """
        shard = self.whole
        if self.elements == UNKNOWN_CARDINALITY:
            return shard, None, range(shard.rank * shard.turn if shard.remainder == "repeat" else 0)
        if self.elements == INFINITE_CARDINALITY:
            return shard, ENDLESS, range(0)
        found = shard.begun_behind(self.elements - base) if base else shard
        if found is None:
            raise StateError(
                f"{self.node}: {base:,} of {self.elements:,} elements have been consumed, and the rest "
                f"cannot be divided evenly among {shard.world_size} processes, which a downstream op requires (such as "
                'repeat followed by batch with "pad"); restore with as many processes as saved the state'
            )
        own, again = found.share_of(self.elements - base)
        return found, own, again if found.remainder == "repeat" else range(0)

    def pull(self, n: int) -> Chunk | None:
        # If the count is known, a state can move to another number of processes. Then the input must not be read into
        # a round whose elements were not returned, which happens if it returns fewer elements than requested.
        while not self.ended and (self._ready() <= 0 or (self._own is not None and self.read < self._wanted(n))):
            if not self._read(n):
                self._end()
        waiting = len(self._held)
        try:
            return self._held.give_joined(n if self.ended else min(n, self._ready()))
        finally:
            self.at += waiting - len(self._held)

    def _ready(self) -> int:
        """Return how many elements may be returned; at most 0 if more of the input must be read."""
        if self._own is not None:
            return self.shard.own_in(max(self.read, 0)) - self.at
        rounds, place = divmod(self.read, self.shard.round)
        return (rounds + (place >= self.shard.shown)) * self.shard.turn - self.at

    def _wanted(self, n: int) -> int:
        """Return how many input elements must be read to return ``n`` more elements, or to know that there are none."""
        if self._own is None:
            return (self.at + n - 1) // self.shard.turn * self.shard.round + self.shard.shown
        given = min(self.at + n, self._own)
        return max(self._kept.stop, self.shard.places(given - 1) + 1 if given else 0)

    def _read(self, n: int) -> bool:
        """Read a part of what is required for ``n`` elements, or skip elements of others; return False at the end."""
        shard, stop = self.shard, self._wanted(n)
        if self.read >= stop:
            return False
        own = shard.places(shard.own_in(max(self.read, 0)))  # the position of the next own element
        others = min(own, stop, self._kept.start if self.read < self._kept.stop else stop) - self.read
        if self.read < 0 or others >= FAR:
            count = self.source.skip(others)
        else:
            if shard.turn >= FAR:  # the turns of others will be skipped
                stop = min(stop, own - own % shard.turn + shard.turn)
            chunk = self.source.pull(min(stop - self.read, _STEP_MAX))
            count = 0 if chunk is None else chunk.length
            if chunk is not None:
                self._keep(chunk)
        self.read += count
        return count > 0

    def _keep(self, chunk: Chunk) -> None:
        """Hold the own elements of a chunk that begins at the current position, and those for the substitute."""
        first, stop = (min(max(place - self.read, 0), chunk.length) for place in (self._kept.start, self._kept.stop))
        if first < stop:
            self._first.put(chunk.slice(first, stop))
        mine = _own_part(chunk, self.shard, self.read)
        if mine is not None:
            self._held.put(mine)

    def _end(self) -> None:
        """Handle the end of the input, which may be within a round."""
        self.ended = True
        own, again = self.shard.share_of(self.read if self._own is None else self.elements - self.base)
        if self.at < own:
            return  # the last turn is held, and complete
        self._held.clear()  # a round that is left out
        if again and self.shard.remainder == "pad":
            self._held.put(AbsentError())
        elif again:
            first = self._first.give_joined(again.stop - self._kept.start)
            if first is not None:
                self._held.put(first.slice(again.start - self._kept.start, first.length))
        self._first.clear()

    def save(self) -> Position:
        position = super().save().with_held(held=self._held.save(), first=self._first.save())
        return position.with_own(
            rank=self.shard.rank,
            world_size=self.shard.world_size,
            elements=self.elements,
            turn=self.shard.turn,
            base=self.base,
            read=self.base + self.read,
        )

    def advance(self, position: Position, count: int) -> Position | None:
        if "held" in position.held or position.own["ended"] or not (self.is_infallible or assumes_no_failures()):
            return None
        base, read, given = position.count("base"), position.count("read"), position.at + count
        shard, own, kept = self._sharded_from(base)
        if (own is not None and given > own) or read < base + kept.stop:
            return None
        reached = base + shard.places(given - 1) + 1
        below = self.source.advance(position.source, reached - read)
        return None if below is None else position.after(count, below, read=reached)

    def load(self, position: Position) -> None:
        share = [self.whole.rank, self.whole.world_size, self.elements]
        if [position.own[name] for name in ("rank", "world_size", "elements")] != share:
            raise StateError(f"{self.node}: the state is from a different process or has different elements")
        base, read = position.count("base"), position.count("read")
        if max(base, read) > self.elements >= 0:
            raise StateError(f"{self.node}: saved position {base} exceeds {self.elements} elements")
        self._begin(base)
        super().load(position)
        self.read = read - base
        self._held.load(position.held.get("held", ()), lambda: self.node.source.element_spec)
        self._first.load(position.held.get("first", ()), lambda: self.node.source.element_spec)


def _own_part(chunk: Chunk, shard: BlockCyclicShard, start: int) -> Chunk | None:
    """Return the elements of this process in a chunk that begins at position ``start``."""
    numbers = range(shard.own_in(start), shard.own_in(start + chunk.length))
    if not numbers:
        return None
    first, last = shard.places(numbers[0]) - start, shard.places(numbers[-1]) - start
    if last - first == len(numbers) - 1:
        return chunk.slice(first, last + 1)
    if shard.turn == 1:
        return chunk.stride(first, shard.world_size)
    return chunk.take(shard.places(np.arange(numbers.start, numbers.stop)) - start)
