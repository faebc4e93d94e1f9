"""interleave(map_func, cycle_length, block_length): datasets side by side, a block from each in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataset.ops.flat_map import FlatMap
from dataset.plan.checks import require_int
from dataset.plan.node import holds_user_code
from dataset.runtime.chunk import Chunk, Remainder
from dataset.runtime.inner import Inner, InnerDatasets
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.pending import Pending
from dataset.runtime.state import load_chunk, load_error, save_chunk, save_error

DEFAULT_CYCLE_LENGTH = 4
"""Where the user gives none. tf.data takes the number of cores; a fixed number gives one order on every machine."""

READ_AHEAD_ELEMENTS = 128
READ_AHEAD_BYTES = 256 * 1024  # for each open dataset, unless one element is larger


@dataclass(frozen=True, eq=False)
class Interleave(FlatMap):
    """``block_length`` elements from each of ``cycle_length`` open datasets in turn; a finished one is replaced."""

    op: ClassVar[str] = "interleave"
    cycle_length: int = DEFAULT_CYCLE_LENGTH
    block_length: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("cycle_length", require_int("interleave", "cycle_length", self.cycle_length, minimum=1))
        self._set("block_length", require_int("interleave", "block_length", self.block_length, minimum=1))

    def described(self) -> str:
        return f"{super().described()[:-1]}, cycle_length={self.cycle_length}, block_length={self.block_length})"

    def lower(self, build: Build) -> Operator:
        return InterleaveOperator(build(self.source), InnerDatasets(build, self, self.function), self)


class _Slot:
    """A place of the cycle: an open dataset, and what was read from it ahead of its turn."""

    def __init__(self, inner: Inner) -> None:
        self.inner = inner
        # Only where no user code runs can reading ahead not be seen.
        self.reads_ahead = not holds_user_code(inner.plan)
        self.ahead = Remainder()
        self.element_bytes = 0
        self.ended = False
        self.error: Exception | None = None

    def ahead_count(self, needed: int) -> int:
        """How many elements to ask for when ``needed`` are wanted."""
        if not self.reads_ahead or not self.element_bytes:
            return needed
        return max(needed, min(READ_AHEAD_ELEMENTS, READ_AHEAD_BYTES // self.element_bytes))


class InterleaveOperator(UnaryOperator):
    """Goes round the cycle, as tf.data does: a finished dataset leaves its place empty until the next turn.

    Where all places have elements waiting, whole rounds are put in order by one take over all of them.
    """

    def __init__(self, source: Operator, datasets: InnerDatasets, node: Interleave) -> None:
        super().__init__(source)
        self.datasets = datasets
        self.block_length = node.block_length
        self.slots: list[_Slot | None] = [None] * node.cycle_length
        self.turn = 0  # whose
        self.given = 0  # elements of its block
        self.source_ended = False
        self._pending = Pending()  # an exception behind elements that came first

    def pull(self, n: int) -> Chunk | None:
        if self._pending:
            return self._pending.give(n)
        return self._pending.collect(lambda wanted: self._rounds(wanted) or self._next(wanted), n)

    def _next(self, n: int) -> Chunk | None:
        """Up to ``n`` elements from the dataset whose turn it is, or the next that has any."""
        while not self.source_ended or any(self.slots):
            slot = self.slots[self.turn]
            if slot is not None:
                chunk = self._read(slot, min(n, self.block_length - self.given))
                if chunk is not None:
                    self._advance(chunk.length)
                    return chunk
                slot.inner.operator.close()
                self.slots[self.turn] = None
                self._pass_on()
            elif not self.source_ended:
                self._fill_slot()
            else:
                self._pass_on()
        return None

    def _fill_slot(self) -> None:
        inner = self.datasets.open_next(self.source)
        if inner is None:
            self.source_ended = True
        else:
            self.slots[self.turn] = _Slot(inner)

    def _pass_on(self) -> None:
        self.turn = (self.turn + 1) % len(self.slots)
        self.given = 0

    def _advance(self, count: int) -> None:
        self.given += count
        if self.given == self.block_length:
            self._pass_on()

    def _read(self, slot: _Slot, n: int) -> Chunk | None:
        self._read_ahead(slot, n)
        if not slot.ahead and slot.error is not None:
            error, slot.error = slot.error, None
            try:
                raise error
            finally:
                del error
        return slot.ahead.give(n)

    def _read_ahead(self, slot: _Slot, needed: int) -> None:
        """See to it that the slot has elements, unless it has ended or an exception is next."""
        if slot.ahead or slot.ended or slot.error is not None:
            return
        try:
            chunk = self.datasets.pull(slot.inner, slot.ahead_count(needed))
        except Exception as error:  # noqa: BLE001  # raised when its turn comes
            slot.error = error
            return
        if chunk is None:
            slot.ended = True
        elif slot.reads_ahead and not slot.element_bytes:
            slot.element_bytes = max(1, chunk.nbytes // chunk.length)
        slot.ahead = Remainder(chunk)

    def _rounds(self, n: int) -> Chunk | None:
        """As many whole rounds of the cycle as are waiting, at most ``n`` elements; None for less than one."""
        block, cycle = self.block_length, len(self.slots)
        wanted = n // (block * cycle)
        if not wanted or self.given:
            return None
        waiting = []
        for slot in self.slots:
            if slot is None or not slot.reads_ahead:
                return None
            self._read_ahead(slot, block)
            ahead = slot.ahead.rest()
            if ahead is None:
                return None
            waiting.append(ahead)
        rounds = min(wanted, *(chunk.length // block for chunk in waiting))
        return self._take_rounds(waiting, rounds) if rounds else None

    def _take_rounds(self, waiting: list[Chunk], rounds: int) -> Chunk:
        length = rounds * self.block_length
        in_order = waiting[self.turn :] + waiting[: self.turn]
        joined = Chunk.concatenate([chunk.slice(0, length) for chunk in in_order])
        for slot in self.slots:
            assert slot is not None
            slot.ahead.give(length)
        return joined.take(_round_order(len(waiting), rounds, self.block_length))

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "opened": self.datasets.opened,
            "turn": self.turn,
            "given": self.given,
            "source_ended": self.source_ended,
            "slots": [self._save(slot) for slot in self.slots],
            "pending": self._pending.save(),
        }

    def _save(self, slot: _Slot | None) -> Any:
        if slot is None:
            return None
        error = None if slot.error is None else save_error(slot.error)
        saved = self.datasets.save(slot.inner)
        return {**saved, "ahead": save_chunk(slot.ahead.rest()), "ended": slot.ended, "error": error}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.datasets.opened = int(state["opened"])
        self.turn, self.given = int(state["turn"]), int(state["given"])
        self.source_ended = bool(state["source_ended"])
        self.slots = [self._load(saved) for saved in state["slots"]]
        self._pending.load(state["pending"], lambda: self.datasets.node.element_spec)

    def _load(self, state: State | None) -> _Slot | None:
        inner = self.datasets.load(state)
        if inner is None or state is None:
            return None
        slot = _Slot(inner)
        slot.ahead = Remainder(load_chunk(state["ahead"], lambda: inner.plan.element_spec))
        slot.ended = bool(state["ended"])
        slot.error = None if state["error"] is None else load_error(state["error"])
        return slot

    def close(self) -> None:
        for slot in self.slots:
            if slot is not None:
                slot.inner.operator.close()
        super().close()


def _round_order(cycle: int, rounds: int, block: int) -> npt.NDArray[np.intp]:
    """Where the elements of whole rounds stand when the datasets' elements are joined end to end."""
    return np.arange(cycle * rounds * block).reshape(cycle, rounds, block).transpose(1, 0, 2).ravel()
