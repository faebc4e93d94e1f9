"""The operator of shard_by_process for elements that are counted, and none of which can fail.

Whose element comes next is arithmetic then, and nothing is held for that. So a state tells where all processes stand,
if they have been given equally many elements: in front of a round. There the deal can begin anew, with other
processes: ``base`` elements have been given, and the rest is dealt out like a sequence of its own
(runtime/state/resharding.py).
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from dataset.errors import StateError
from dataset.plan.block_cyclic_shard import BlockCyclicShard, Share
from dataset.plan.cardinality import INFINITE_CARDINALITY
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.padding_slots import AbsentError
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk

_STEP_MAX = 32768  # elements asked for at once, beyond the next that is wanted
_FAR = 64  # elements that nobody wants, from which on they are passed over
_ENDLESS = Share(own=2**62)  # as many elements as nobody lives to see


class DealtNode(Protocol):
    """What the operator asks of its node: ShardByProcess, which knows this operator."""

    op: ClassVar[str]

    @property
    def source(self) -> Node:
        """The input."""

    @property
    def deal(self) -> BlockCyclicShard:
        """Whose turn is when."""

    @property
    def share(self) -> tuple[int, int]:
        """Which process of how many."""

    def located(self) -> str:
        """The op and the user's line, for messages."""


class SizedShardOperator(UnaryOperator):
    """Knows how many elements it has given, and how many of the input were read for that."""

    def __init__(self, source: Operator, node: DealtNode) -> None:
        super().__init__(source)
        self.node = node
        self.elements = node.source.cardinality()  # may be INFINITE_CARDINALITY
        self.read = 0
        self._first: list[Chunk] = []  # those that are given again at the end
        self._begin(0, 0)

    def _begin(self, base: int, given: int) -> None:
        """Stand behind ``given`` elements of the share of what comes behind ``base``."""
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
                f"{self.node.located()}: {base:,} of {self.elements:,} elements have been given, and what is left does "
                f"not come out even among {self.node.deal.world_size} processes, on which an op above it relies, as "
                'repeat does below batch with "pad"; restore with as many processes as saved the state'
            )
        return deal, deal.share_of(self.elements - base)

    def _place(self, number: int) -> int:
        """Where in the input an element of this process is."""
        return self.base + self.deal.places(number)

    def pull(self, n: int) -> Chunk | None:
        while self.given < self.share.own:
            place = self._place(self.given)
            is_far = self.given == 0 or place - self.read >= _FAR
            if is_far:
                self._go_to(place)
            chunk = self.source.pull(self._wanted(min(n, self.share.own - self.given), place, in_turns=is_far))
            if chunk is None:
                return None  # it has become shorter
            start, self.read = self.read - self.base, self.read + chunk.length
            mine = own_part(chunk, self.deal, start % self.deal.round)
            if mine is not None:
                self.given += mine.length
                return mine
        return self._behind_own(n)

    def _wanted(self, n: int, place: int, *, in_turns: bool) -> int:
        """How many elements of the input to ask for, for ``n`` of this process, the first of which is at ``place``."""
        turn = self.deal.turn
        if in_turns and turn >= _FAR:  # others' turns are passed over
            n = min(n, turn - self.given % turn)
        return min(self._place(self.given + n - 1) + 1, place + 1 + _STEP_MAX) - self.read

    def _go_to(self, place: int) -> None:
        """Go forward to a place in the input, and remember what is to be given again."""
        again = self._again
        while self.read < place:
            if self.read in again:
                chunk = self.source.pull(min(place, again.stop) - self.read)
                if chunk is not None:
                    self._first.append(chunk)
                passed = 0 if chunk is None else chunk.length
            else:
                passed = self.source.pass_over(
                    (min(place, again.start) if self.read < again.start else place) - self.read
                )
            if not passed:
                return  # it has become shorter
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
        """How much of the input is read behind so many elements of its own, at the least."""
        return self._place(given - 1) + 1 if given else self.base

    @property
    def picks(self) -> bool:  # type: ignore[override]  # here it depends on the input
        return self.source.picks and not self.base and not self.share.again and not self.share.is_absent

    def pick(self, positions: Array) -> Chunk:
        return self.source.pick(self.deal.places(positions))

    def seek(self, count: int) -> None:
        self.given += count
        read = self._read_behind(self.given)
        self.source.seek(read - self.read)
        self.read = read

    def state_dict(self) -> State:
        return {
            "op": self.node.op,
            **super().state_dict(),
            "share": list(self.node.share),
            "elements": self.elements,
            "turn": self.deal.turn,
            "base": self.base,
            "given": self.given,
            "read": self.read,
            "first": save_chunk(Chunk.concatenate(self._first)) if self._first else None,
        }

    def state_after(self, state: State, count: int) -> State | None:
        base, given, read = int(state["base"]), int(state["given"]) + count, int(state["read"])
        deal, share = self._share_behind(base)
        if given > share.own or (share.again and read < base + share.again.stop):
            return None
        now = base + deal.places(given - 1) + 1
        below = state["source"] if now == read else self.source.state_after(state["source"], now - read)
        return None if below is None else {**state, "source": below, "given": given, "read": now}

    def load_state_dict(self, state: State) -> None:
        if state["share"] != list(self.node.share) or state["elements"] != self.elements:
            raise StateError(f"{self.node.located()}: the state is that of another process, or of other elements")
        super().load_state_dict(state)
        base, given, read = int(state["base"]), int(state["given"]), int(state["read"])
        if min(base, given, read) < 0 or max(base, read) > self.elements != INFINITE_CARDINALITY:
            raise StateError(f"{self.node.located()}: the state is behind {base} elements, of {self.elements}")
        self._begin(base, given)
        self.read = read
        first = load_chunk(state["first"], lambda: self.node.source.element_spec)
        self._first = [] if first is None else [first]


def own_part(chunk: Chunk, deal: BlockCyclicShard, start: int) -> Chunk | None:
    """The elements of a chunk that are this process's, if it begins at place ``start`` of a round."""
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
