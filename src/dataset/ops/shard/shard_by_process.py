"""Node and operators of shard_by_process: the share of one process, with equally many elements per process.

The node assigns elements to processes (plan/block_cyclic_shard.py), and the operator in this file implements that.
sized_shard.py has an operator for inputs with a known count, such as arrays; other processes can resume from its
states. optimize/sharding/ decides how far upstream the node is placed, and whether files are sharded instead. At the
end of the plan, a row of zeros replaces a missing element (``PadMissing``); until then, an ``AbsentError`` does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from dataset.errors import StateError
from dataset.ops.shard.sized_shard import SizedShardOperator, own_part
from dataset.ops.shuffle.shuffle import Shuffle
from dataset.ops.sources.row_source import RowsOperator, RowSource, on_numbers
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.cardinality import UNKNOWN_CARDINALITY, is_known, map_known
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk, Remainder
from dataset.runtime.chunks.padding_slots import AbsentError, zeros_like
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator, assumes_no_failures
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk

_STEP_MAX = 32768  # maximum elements to request beyond the current round
_LONG_TURN = 64  # minimum turn length to skip the turns of other processes when single turns are requested
_NO_END = -1


@dataclass(frozen=True, eq=False)
class ShardByProcess(UnaryNode, elastic=True):
    """Node with the elements that ``deal`` assigns to one process."""

    op: ClassVar[str] = "shard_by_process"
    deal: BlockCyclicShard

    @property
    def gives_only_elements(self) -> bool:
        """Whether the share has no padding."""
        return self.deal.gives_all or self.comes_out_even

    @lazy_property
    def comes_out_even(self) -> bool:
        """Whether the last round is known to be complete; failed elements count."""
        count, deal = self.source.cardinality(), self.deal
        return is_known(count) and self.is_counted and deal.turns_in(count % deal.round) in {0, deal.world_size}

    @property
    def is_counted(self) -> bool:
        """Whether the number of elements is known; failed elements count."""
        return self.source.cardinality() != UNKNOWN_CARDINALITY and _is_counted(self.source)

    @lazy_property
    def traits(self) -> Traits:
        whole = self.gives_only_elements
        positional = self.deal.remainder != "pad"  # a marker for an absent element has no row number
        return dataclasses.replace(
            super().traits, seekable=whole, exact=whole, only_reorders=whole, positional=positional
        )

    @property
    def share(self) -> tuple[int, int]:
        return self.deal.rank, self.deal.world_size

    def cardinality(self) -> int:
        return map_known(self.deal.count, self.source.cardinality())

    def input_positions(self, positions: Array) -> Array | None:
        return self.deal.places(positions) if self.deal.gives_all else None

    def parameters(self) -> dict[str, Any]:
        """Return what must match a saved state: rank and world size may change."""
        return {"remainder": self.deal.remainder}

    def fingerprint_fields(self) -> Any:
        return dataclasses.asdict(self.deal)

    def simplified(self) -> Node | None:
        return self.source if self.deal.world_size == 1 and not self.is_counted else None

    def label(self) -> str:
        deal = self.deal
        turns = f", {deal.turn} at a time" if deal.turn > 1 else ""
        return f"{self.op}({deal.rank} of {deal.world_size}, {deal.remainder!r}{turns})"

    def lower(self, context: ExecutionContext) -> Operator:
        source = context(self.source)
        is_counted = self.source.cardinality() != UNKNOWN_CARDINALITY
        if self.deal.remainder == "pad":  # an absent element has no row number
            kind = SizedShardOperator if is_counted and self.source.is_infallible else ShardByProcessOperator
            return kind(source, self)
        is_infallible = self.source.is_infallible or (isinstance(source, RowsOperator) and source.rows_may_fail)
        kind = SizedShardOperator if is_counted and is_infallible else ShardByProcessOperator
        return on_numbers(source, lambda numbers: kind(numbers, self))


def _is_counted(node: Node) -> bool:
    """Return whether the node yields exactly as many elements, or exceptions in their place, as it declares."""
    return node.is_infallible or isinstance(node, RowSource) or (isinstance(node, Shuffle) and _is_counted(node.source))


class ShardByProcessOperator(UnaryOperator):
    """Operator that tracks the current round, and buffers the elements of this process in it.

    A turn is returned as a whole, so that an exception of the input never occurs within a batch. With "drop", a round
    is read until it is known to be complete, unless the input has a known count. An exception is not an element; it is
    raised in every process.
    """

    def __init__(self, source: Operator, node: ShardByProcess) -> None:
        super().__init__(source)
        self.node = node
        self.deal = dataclasses.replace(node.deal, remainder="keep") if node.comes_out_even else node.deal
        self.rounds = 0  # complete rounds
        self.place = 0  # position in the current round
        self._stop = self._place_of_giving()
        self._gone = 0  # elements of its turn that ``advance`` has skipped
        self._left = node.cardinality() if self._ends_early else _NO_END
        self._held: list[Chunk] = []  # of the current round
        self._ready = Remainder()
        self._first: list[Chunk] = []  # the first elements of the input, which may serve as padding
        self._ending = OutcomeQueue()  # the padding for a missing turn
        self._ended = False

    @property
    def _ends_early(self) -> bool:
        """Whether the last complete round is known in advance."""
        source = self.node.source
        return self.deal.remainder == "drop" and source.is_exact and is_known(source.cardinality())

    def _place_of_giving(self) -> int:
        """Return how far a round must be read before this process may return its turn."""
        deal = self.deal
        end_of_turn = (deal.rank + 1) * deal.turn
        if deal.remainder != "drop" or self._ends_early or end_of_turn == deal.round:
            return end_of_turn
        return deal.round - deal.turn + deal.least

    @property
    def _first_wanted(self) -> int:
        """How many of the first elements may be needed as padding."""
        if self.deal.remainder == "repeat":
            return self.deal.rank * self.deal.turn
        return min(self.deal.rank, 1) * self.deal.turn if self.deal.remainder == "pad" and not self.rounds else 0

    def pull(self, n: int) -> Chunk | None:
        if not self._left:
            return None
        while not self._ready and not self._ended:
            self._read(n)
        if not self._ready:
            return self._ending.give(n)
        chunk = self._ready.give(n if self._left == _NO_END else min(n, self._left))
        assert chunk is not None
        if self._left != _NO_END:
            self._left -= chunk.length
        return chunk

    def _read(self, n: int) -> None:
        """Read more of the input, to get ``n`` elements."""
        in_turns = self.deal.turn >= _LONG_TURN and n <= self.deal.turn
        others = self._others_next() if in_turns else 0
        if others:
            self._advance(self.source.skip(others), None)
            return
        chunk = self.source.pull(self._rest_of_turn() if in_turns else self._wanted(n))
        if chunk is not None:
            self._remember(chunk)
        self._advance(0 if chunk is None else chunk.length, chunk)

    def _others_next(self) -> int:
        """Return how many elements of other processes precede the next element of this process."""
        if self._missing_first():
            return 0
        start, stop = self.deal.rank * self.deal.turn, (self.deal.rank + 1) * self.deal.turn
        if self.place < start:
            return start - self.place
        if self.place < stop:
            return 0
        return self._stop - self.place if self.place < self._stop else self.deal.round - self.place + start

    def _rest_of_turn(self) -> int:
        return self._missing_first() or (self.deal.rank + 1) * self.deal.turn - self.place

    def _missing_first(self) -> int:
        """Return how many of the first elements must still be kept."""
        return max(0, self._first_wanted - self.rounds * self.deal.round - self.place)

    def _wanted(self, n: int) -> int:
        """Return how many input elements to request for up to ``n`` own elements."""
        deal = self.deal
        ahead = self._stop - self.place
        rounds = min(-(-n // deal.turn) - 1, _STEP_MAX // deal.round)
        return ahead + (deal.round if ahead <= 0 else 0) + rounds * deal.round

    def _advance(self, count: int, chunk: Chunk | None) -> None:
        """Advance by ``count`` elements. ``chunk`` holds them unless none is this process's; 0 means the end."""
        if not count:
            self._end()
            return
        deal, start = self.deal, self.place
        rounds, self.place = divmod(start + count, deal.round)
        self.rounds += rounds
        mine = None if chunk is None else own_part(chunk, deal, start)
        if mine is not None:
            self._held.append(mine)
        turns = rounds + (self.place >= self._stop) - (start >= self._stop)
        if turns:
            self._make_ready(turns * deal.turn)

    def _make_ready(self, count: int) -> None:
        count -= self._gone
        self._gone = 0
        held = Chunk.concatenate(self._held)
        self._ready = Remainder(held.slice(0, count))
        self._held = [held.slice(count, held.length)] if held.length > count else []

    def _remember(self, chunk: Chunk) -> None:
        wanted = self._missing_first()
        if wanted:
            self._first.append(chunk.slice(0, min(wanted, chunk.length)))
        elif self._first and not self._first_wanted:
            self._first = []

    def _end(self) -> None:
        """Handle the end of the input, which may be within a round."""
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

    def save(self) -> State:
        return {
            "op": ShardByProcess.op,
            **super().save(),
            "share": list(self.node.share),
            "rounds": self.rounds,
            "place": self.place,
            "gone": self._gone,
            "left": self._left,
            "held": save_chunk(Chunk.concatenate(self._held) if self._held else None),
            "ready": save_chunk(self._ready.rest()),
            "first": save_chunk(Chunk.concatenate(self._first) if self._first else None),
            "ending": self._ending.save(),
            "ended": self._ended,
        }

    def advance(self, state: State, count: int) -> State | None:
        """Return the state after the first ``count`` elements, if failed elements count and none is needed later."""
        deal, read = self.deal, state["rounds"] or state["place"] or state["ended"] or state["ready"]
        needs_first = deal.remainder == "repeat" or (deal.remainder == "pad" and count < deal.turn)
        if read or needs_first or not assumes_no_failures():
            return None
        rounds, gone = divmod(count, deal.turn)
        place = deal.rank * deal.turn + gone
        below = self.source.advance(state["source"], rounds * deal.round + place)
        left = state["left"] if state["left"] == _NO_END else state["left"] - count
        moved = {"source": below, "rounds": rounds, "place": place, "gone": gone, "left": left}
        return None if below is None else {**state, **moved}

    def load(self, state: State) -> None:
        if state["share"] != list(self.node.share):
            raise StateError(
                f"{self.node.location()}: the state is from a different process; if the number of elements is unknown "
                "or some may fail, each process can only resume from its own state"
            )
        super().load(state)
        self.rounds, self.place = int(state["rounds"]), int(state["place"])
        self._gone, self._left = int(state["gone"]), int(state["left"])
        self._held = self._loaded(state["held"])
        self._ready = Remainder(load_chunk(state["ready"], self._spec))
        self._first = self._loaded(state["first"])
        self._ending.load(state["ending"], self._spec)
        self._ended = bool(state["ended"])

    def _loaded(self, data: Any) -> list[Chunk]:
        chunk = load_chunk(data, self._spec)
        return [] if chunk is None else [chunk]

    def _spec(self) -> Any:
        return self.node.source.element_spec


@dataclass(frozen=True, eq=False)
class PadMissing(UnaryNode, seekable=True, exact=True, only_reorders=True, elastic=True):
    """Node that replaces each absent element of ``source`` by an element of zeros."""

    op: ClassVar[str] = "shard_by_process.pad"

    def lower(self, context: ExecutionContext) -> Operator:
        return PadMissingOperator(context(self.source), self)


class PadMissingOperator(UnaryOperator):
    """Operator that keeps the last element, which determines the shapes and dtypes of the zeros."""

    def __init__(self, source: Operator, node: PadMissing) -> None:
        super().__init__(source)
        self.node = node
        self._last: Chunk | None = None
        self._due = False  # an element is absent, and the next one is its example

    def pull(self, n: int) -> Chunk | None:
        try:
            chunk = None if self._due else self.source.pull(n)
        except AbsentError as absent:
            if not absent.example_follows:
                assert self._last is not None  # otherwise an example would follow
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

    def save(self) -> State:
        return {"op": PadMissing.op, **super().save(), "last": save_chunk(self._last), "due": self._due}

    def load(self, state: State) -> None:
        super().load(state)
        self._last = load_chunk(state["last"], lambda: self.node.element_spec)
        self._due = bool(state["due"])
