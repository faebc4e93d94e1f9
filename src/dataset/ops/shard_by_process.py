"""shard_by_process: the share of one of several processes, with equally many elements for each.

The node says which deal it is (plan/deal.py), the operator below carries it out. How far down in a plan it stands, and
whether files are dealt out instead, is decided in distribute.py. A stand-in of zeros is made where the elements are
those that come out (``StandIn``); where the deal stands further down, an ``AbsentError`` takes its place up to there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dataset.ops.row_source import on_numbers
from dataset.plan.cardinality import is_known, map_known
from dataset.plan.deal import Deal
from dataset.plan.node import UnaryNode
from dataset.runtime.absent import AbsentError, zeros_like
from dataset.runtime.chunk import Chunk, Remainder
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending
from dataset.runtime.state import load_chunk, save_chunk

_ROUNDS_BYTES = 4096  # elements asked for at once of rounds that are short


@dataclass(frozen=True, eq=False)
class ShardByProcess(UnaryNode):
    """The elements that ``deal`` gives one process."""

    op: ClassVar[str] = "shard_by_process"
    seeks: ClassVar[bool] = True
    deal: Deal

    @property
    def random_access(self) -> bool:
        """Not with stand-ins, which are not in the input."""
        return self.deal.remainder in {"drop", "keep"} and super().random_access

    @property
    def is_certain(self) -> bool:
        return self.deal.remainder in {"drop", "keep"} and self.source.is_certain

    def cardinality(self) -> int:
        return map_known(self.deal.count, self.source.cardinality())

    def described(self) -> str:
        deal = self.deal
        turns = f", {deal.turn} at a time" if deal.turn > 1 else ""
        return f"{self.op}({deal.rank} of {deal.world_size}, {deal.remainder!r}{turns})"

    def lower(self, build: Build) -> Operator:
        return on_numbers(build(self.source), lambda source: ShardByProcessOperator(source, self))


class ShardByProcessOperator(UnaryOperator):
    """Knows how far the current round has been read, and holds of it what is this process's and not given yet.

    A turn is given whole: an exception of the input then never stands in the middle of a batch. With "drop", a round is
    read until it is known to be complete, unless the input says how many elements it has. An exception is no element;
    it comes out in every process.
    """

    def __init__(self, source: Operator, node: ShardByProcess) -> None:
        super().__init__(source)
        self.node = node
        self.deal = deal = node.deal
        self.rounds = 0  # that are complete
        self.place = 0  # in the current one
        self._gone = 0  # elements of its turn that ``seek`` has passed over
        self._held: list[Chunk] = []
        self._ready = Remainder()
        self._ending = Pending()  # a stand-in
        self._ended = False
        self._first: list[Chunk] = []  # the elements from the first on that may have to stand in for others
        self._first_wanted = self._stand_ins() if deal.remainder in {"pad", "repeat"} else 0
        self._looks = deal.remainder == "drop" and not (node.source.is_certain and is_known(node.source.cardinality()))
        self._left = node.cardinality() if deal.remainder == "drop" and not self._looks else -1
        last = deal.rank == deal.world_size - 1
        self._stop = (
            deal.round
            if last
            else (deal.round - deal.turn + deal.least)
            if self._looks
            else (deal.rank + 1) * deal.turn
        )
        """The place in a round behind which a turn of this process may be given."""

    def _stand_ins(self) -> int:
        """How many elements have to be remembered in case that this process's last turn is missing."""
        turns = self.deal.rank if self.deal.remainder == "repeat" else min(self.deal.rank, 1)
        return turns * self.deal.turn

    def pull(self, n: int) -> Chunk | None:
        if not self._left:
            return None
        while not self._ready and not self._ended:
            chunk = self.source.pull(self._wanted(n))
            if chunk is None:
                self._end()
            else:
                self._read(chunk)
        if not self._ready:
            return self._ending.give(n)
        chunk = self._ready.give(min(n, self._left) if self._left > 0 else n)
        assert chunk is not None
        if self._left > 0:
            self._left -= chunk.length
        return chunk

    def _wanted(self, n: int) -> int:
        """How many elements of the input it takes for ``n``, as far as they are in one stretch of work."""
        more = -(-n // self.deal.turn) - 1
        ahead = self._stop - self.place
        if ahead <= 0:
            ahead += self.deal.round
        rounds = min(more, max(0, _ROUNDS_BYTES // self.deal.round - 1))
        return ahead + rounds * self.deal.round

    def _read(self, chunk: Chunk) -> None:
        """Take what is this process's, and have it ready as far as it may be given."""
        self._remember(chunk)
        deal, start = self.deal, self.place
        given = deal.turn if start >= self._stop else 0
        rounds, self.place = divmod(start + chunk.length, deal.round)
        self.rounds += rounds
        mine = _own(chunk, deal, start)
        if mine is not None:
            self._held.append(mine)
        due = rounds * deal.turn + (deal.turn if self.place >= self._stop else 0) - given - self._gone
        if due > 0:
            self._gone = 0
            held = Chunk.concatenate(self._held)
            self._ready = Remainder(held.slice(0, due))
            self._held = [held.slice(due, held.length)] if held.length > due else []

    def _remember(self, chunk: Chunk) -> None:
        wanted = self._first_wanted - self.rounds * self.deal.round - self.place
        if self.rounds and self.deal.remainder == "pad":
            self._first = []  # the last element shows what zeros are like
        elif wanted > 0:
            self._first.append(chunk.slice(0, min(wanted, chunk.length)))

    def _end(self) -> None:
        self._ended = True
        deal, is_only = self.deal, self.rounds == 0
        turns = deal.turns_in(self.place)
        held, self._held = self._held, []
        if turns == 0 or (deal.remainder == "drop" and turns < deal.world_size):
            return
        if deal.rank < turns:
            self._ready = Remainder(Chunk.concatenate(held) if held else None)
        elif deal.remainder == "pad":
            self._ending.put(AbsentError(example_follows=is_only))
            if is_only:
                self._ending.put(Chunk.concatenate(self._first))
        elif deal.remainder == "repeat":
            first, stop = deal.repeated(turns, is_only=is_only)
            known = Chunk.concatenate(self._first)
            self._ending.put(known.slice(first, min(stop, known.length)))

    def seek(self, count: int) -> None:
        self.rounds, self._gone = divmod(count, self.deal.turn)
        self.place = self.deal.rank * self.deal.turn + self._gone
        self.source.seek(self.rounds * self.deal.round + self.place)
        if self._left > 0:
            self._left -= count

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "rounds": self.rounds,
            "place": self.place,
            "held": save_chunk(Chunk.concatenate(self._held) if self._held else None),
            "ready": save_chunk(self._ready.rest()),
            "first": save_chunk(Chunk.concatenate(self._first) if self._first else None),
            "ending": self._ending.save(),
            "ended": self._ended,
            "left": self._left,
            "gone": self._gone,
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.rounds, self.place = int(state["rounds"]), int(state["place"])
        self._held = self._loaded(state["held"])
        self._first = self._loaded(state["first"])
        self._ready = Remainder(load_chunk(state["ready"], self._spec))
        self._ending.load(state["ending"], self._spec)
        self._ended = bool(state["ended"])
        self._left, self._gone = int(state["left"]), int(state["gone"])

    def _loaded(self, data: object) -> list[Chunk]:
        chunk = load_chunk(data, self._spec)
        return [] if chunk is None else [chunk]

    def _spec(self) -> object:
        return self.node.source.element_spec


def _own(chunk: Chunk, deal: Deal, start: int) -> Chunk | None:
    """The elements of a chunk that are this process's, if it begins at place ``start`` of a round."""
    if deal.turn == 1:
        first = (deal.rank - start) % deal.world_size
        return chunk.stride(first, deal.world_size) if first < chunk.length else None
    places = np.arange(start, start + chunk.length) % deal.round // deal.turn
    own = np.flatnonzero(places == deal.rank)
    if not len(own):
        return None
    first, stop = int(own[0]), int(own[-1]) + 1
    return chunk.slice(first, stop) if stop - first == len(own) else chunk.take(own)


@dataclass(frozen=True, eq=False)
class StandIn(UnaryNode):
    """``source``, with an element of zeros wherever one is absent."""

    op: ClassVar[str] = "shard_by_process.pad"

    def lower(self, build: Build) -> Operator:
        return StandInOperator(build(self.source), self)


class StandInOperator(UnaryOperator):
    """Remembers the last element, whose shapes and dtypes the zeros have."""

    def __init__(self, source: Operator, node: StandIn) -> None:
        super().__init__(source)
        self.node = node
        self._last: Chunk | None = None
        self._due = False  # an element is absent, and the next one shows what it would be like

    def pull(self, n: int) -> Chunk | None:
        try:
            chunk = None if self._due else self.source.pull(n)
        except AbsentError as absent:
            if not absent.example_follows:
                assert self._last is not None  # there was one, or an example would follow
                return zeros_like(self._last)
            self._due = True
        if self._due:
            return self._like_example()
        if chunk is not None:
            self._last = chunk.slice(chunk.length - 1, chunk.length)
        return chunk

    def _like_example(self) -> Chunk | None:
        example = self.source.pull(1)
        self._due = False
        return None if example is None else zeros_like(example)

    def state_dict(self) -> State:
        return {**super().state_dict(), "last": save_chunk(self._last), "due": self._due}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._last = load_chunk(state["last"], lambda: self.node.element_spec)
        self._due = bool(state["due"])
