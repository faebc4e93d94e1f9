"""Operator of shard_by_process for inputs with a known count whose elements cannot fail.

Which process the next element belongs to is computed arithmetically, without buffering. If all processes have returned
equally many elements, any state gives the position of all of them: the start of a round. From there, sharding can
restart with a different number of processes: ``base`` elements have been returned, and the rest is sharded as a
sequence of its own (runtime/state/resharding.py).
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from dataset.errors import StateError
from dataset.plan.block_cyclic_shard import BlockCyclicShard, Share
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.padding_slots import AbsentError
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk

_STEP_MAX = 32768  # maximum elements to request beyond the next own element
_FAR = 64  # minimum number of elements of other processes to skip instead of pulling them
_ENDLESS = Share(own=2**62)  # more elements than can ever be read


class DealtNode(Protocol):
    """Interface of the operator's node, ShardByProcess, which imports this module."""

    op: ClassVar[str]

    @property
    def source(self) -> Node:
        """The input."""

    @property
    def deal(self) -> BlockCyclicShard:
        """The assignment of elements to processes."""

    @property
    def share(self) -> tuple[int, int]:
        """Rank and world size."""

    def location(self) -> str:
        """Return the op and the user's source line, for messages."""


class SizedShardOperator(UnaryOperator):
    """Operator that counts the elements it has returned and the input elements read for them."""

    def __init__(self, source: Operator, node: DealtNode) -> None:
        super().__init__(source)
        self.node = node
        self.elements = node.source.cardinality()  # may be INFINITE_CARDINALITY
        self.read = 0
        self._first: list[Chunk] = []  # elements that are repeated at the end
        self._begin(0, 0)

    def _begin(self, base: int, given: int) -> None:
        """Position the operator after ``given`` elements of the share of the input from ``base`` on."""
        self.base, self.given = base, given
        self.deal, self.share = self._share_behind(base)
        again = self.share.again
        self._again = range(base + again.start, base + again.stop)

    def _share_behind(self, base: int) -> tuple[BlockCyclicShard, Share]:
        if self.elements == INFINITE_CARDINALITY:
            return self.node.deal, _ENDLESS
        deal = self.node.deal.begun_behind(self.elements - base) if base else self.node.deal
        if deal is None:
            raise StateError(
                f"{self.node.location()}: {base:,} of {self.elements:,} elements have been consumed, and the rest "
                f"cannot be divided evenly among {self.node.deal.world_size} processes, which a downstream op requires "
                '(such as repeat followed by batch with "pad"); restore with as many processes as saved the state'
            )
        return deal, deal.share_of(self.elements - base)

    def _place(self, number: int) -> int:
        """Return the input position of an element of this process."""
        return self.base + self.deal.places(number)

    def pull(self, n: int) -> Chunk | None:
        while self.given < self.share.own:
            place = self._place(self.given)
            is_far = self.given == 0 or place - self.read >= _FAR
            if is_far:
                self._go_to(place)
            chunk = self.source.pull(self._wanted(min(n, self.share.own - self.given), place, in_turns=is_far))
            if chunk is None:
                return None  # the input is shorter than expected
            start, self.read = self.read - self.base, self.read + chunk.length
            mine = own_part(chunk, self.deal, start % self.deal.round)
            if mine is not None:
                self.given += mine.length
                return mine
        return self._behind_own(n)

    def _wanted(self, n: int, place: int, *, in_turns: bool) -> int:
        """Return how many input elements to request for ``n`` own elements from ``place`` on."""
        turn = self.deal.turn
        if in_turns and turn >= _FAR:  # the turns of other processes are skipped
            n = min(n, turn - self.given % turn)
        return min(self._place(self.given + n - 1) + 1, place + 1 + _STEP_MAX) - self.read

    def _go_to(self, place: int) -> None:
        """Advance to a position in the input, and keep the elements that will be repeated."""
        again = self._again
        while self.read < place:
            if self.read in again:
                chunk = self.source.pull(min(place, again.stop) - self.read)
                if chunk is not None:
                    self._first.append(chunk)
                passed = 0 if chunk is None else chunk.length
            else:
                passed = self.source.skip((min(place, again.start) if self.read < again.start else place) - self.read)
            if not passed:
                return  # the input is shorter than expected
            self.read += passed

    def _behind_own(self, n: int) -> Chunk | None:
        index = self.given - self.share.own
        if self.share.is_absent:
            if not index:
                self.given += 1
                raise AbsentError(example_follows=bool(self._again))
            index -= 1
        if index >= len(self._again):
            return None
        self._go_to(self._again.stop)
        if not self._first:
            return None
        chunk = Chunk.concatenate(self._first)
        stop = min(index + n, chunk.length)
        self.given += stop - index
        return chunk.slice(index, stop) if index < stop else None

    def _read_behind(self, given: int) -> int:
        """Return how many input elements must be read for ``given`` own elements."""
        return self._place(given - 1) + 1 if given else self.base

    def save(self) -> State:
        return {
            "op": self.node.op,
            **super().save(),
            "share": list(self.node.share),
            "elements": self.elements,
            "turn": self.deal.turn,
            "base": self.base,
            "given": self.given,
            "read": self.read,
            "first": save_chunk(Chunk.concatenate(self._first)) if self._first else None,
        }

    def advance(self, state: State, count: int) -> State | None:
        base, given, read = int(state["base"]), int(state["given"]) + count, int(state["read"])
        deal, share = self._share_behind(base)
        if given > share.own or (share.again and read < base + share.again.stop):
            return None
        now = base + deal.places(given - 1) + 1
        below = state["source"] if now == read else self.source.advance(state["source"], now - read)
        return None if below is None else {**state, "source": below, "given": given, "read": now}

    def load(self, state: State) -> None:
        if state["share"] != list(self.node.share) or state["elements"] != self.elements:
            raise StateError(f"{self.node.location()}: the state is from a different process or has different elements")
        super().load(state)
        base, given, read = int(state["base"]), int(state["given"]), int(state["read"])
        if min(base, given, read) < 0 or max(base, read) > self.elements != INFINITE_CARDINALITY:
            raise StateError(f"{self.node.location()}: saved position {base} exceeds {self.elements} elements")
        self._begin(base, given)
        self.read = read
        first = load_chunk(state["first"], lambda: self.node.source.element_spec)
        self._first = [] if first is None else [first]


def own_part(chunk: Chunk, deal: BlockCyclicShard, start: int) -> Chunk | None:
    """Return the elements of this process in a chunk that begins at place ``start`` of a round."""
    if deal.world_size == 1:
        return chunk
    if deal.turn == 1:
        first = (deal.rank - start) % deal.world_size
        return chunk.stride(first, deal.world_size) if first < chunk.length else None
    places = np.arange(start, start + chunk.length) % deal.round // deal.turn
    own = np.flatnonzero(places == deal.rank)
    if not len(own):
        return None
    first, stop = int(own[0]), int(own[-1]) + 1
    return chunk.slice(first, stop) if stop - first == len(own) else chunk.take(own)
