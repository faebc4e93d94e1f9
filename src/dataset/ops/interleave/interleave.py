"""Node and operator of interleave(map_func, cycle_length, block_length): a block from each open dataset in turn.

The operator here reads on demand. The operator that reads in the background is in parallel_interleave.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dataset.amounts import AHEAD_BYTES, AHEAD_ELEMENTS, AHEAD_FIRST, EACH_BYTES, EACH_ELEMENTS
from dataset.ops.interleave.flat_map import FlatMap
from dataset.ops.interleave.parallel_interleave import ParallelInterleaveOperator
from dataset.ops.interleave.round_robin import RoundRobin, Rounds
from dataset.ops.interleave.subdatasets import Inputs, Subdataset, Subdatasets
from dataset.options import AUTOTUNE, bounded
from dataset.plan.checks import require_int
from dataset.plan.node import ParallelNode, holds_user_code
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import HoldingOperator, Operator
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.parallel.pool import parallel_calls
from dataset.runtime.position import Position

DEFAULT_CYCLE_LENGTH = 4
"""The default. tf.data uses the number of cores; a fixed number gives the same order on every machine."""

_FIRST_BYTES = 64 * 1024  # of the first read, given the element size of earlier datasets


@dataclass(frozen=True, eq=False)
class Interleave(FlatMap, ParallelNode):
    """Node that reads ``block_length`` elements from each of ``cycle_length`` open datasets in turn."""

    op: ClassVar[str] = "interleave"
    rule: ClassVar[str] = "seq_interleave_prefetch"
    cycle_length: int = DEFAULT_CYCLE_LENGTH
    block_length: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        cycle_length = self.cycle_length
        if cycle_length == AUTOTUNE:
            cycle_length = bounded(cycle_length, DEFAULT_CYCLE_LENGTH)
        self._set("cycle_length", require_int("interleave", "cycle_length", cycle_length, minimum=1))
        self._set("block_length", require_int("interleave", "block_length", self.block_length, minimum=1))

    def label(self) -> str:
        return f"{super().label()[:-1]}, cycle_length={self.cycle_length}, block_length={self.block_length})"

    def lower(self, context: ExecutionContext) -> Operator:
        source, datasets = context(self.source), self.datasets(context)
        cycle_length, block_length = self.cycle_length, self.block_length
        # Reading is mostly waiting. In addition to the datasets of the cycle, the same number is opened ahead.
        calls = parallel_calls(context, self.num_parallel_calls, autotuned=cycle_length, maximum=2 * cycle_length)
        in_order = context.keeps_order(self.deterministic)
        if not in_order:  # also without workers: the pipeline that loads a state may have some
            context.mark_not_replayable()
        if calls is None:
            return InterleaveOperator(source, datasets, RoundRobin(cycle_length, block_length))
        return ParallelInterleaveOperator(
            source,
            datasets,
            RoundRobin(cycle_length, block_length),
            context,
            calls,
            in_order=in_order,
        )


class _Slot:
    """Open dataset in the cycle, with its read-ahead size."""

    def __init__(self, inner: Subdataset, cycle_length: int, likely_bytes: int) -> None:
        self.inner = inner
        self._first = _FIRST_BYTES // likely_bytes if likely_bytes else 0
        self._ahead_max = max(AHEAD_FIRST, AHEAD_ELEMENTS // cycle_length)
        self._ahead = AHEAD_FIRST
        # Reading ahead is only unobservable if no user code runs.
        self.reads_ahead = not holds_user_code(inner.plan)
        self.element_bytes = 0

    def ahead_count(self, needed: int) -> int:
        """Return how many elements to pull when ``needed`` are needed."""
        if not self.reads_ahead:
            return needed
        if not self.element_bytes:
            return max(needed, min(self._ahead, self._first))
        count = max(needed, min(self._ahead, AHEAD_BYTES // self.element_bytes))
        self._ahead = min(2 * self._ahead, self._ahead_max)
        return count


class InterleaveOperator(BufferedOperator, HoldingOperator):
    """Operator that reads from one dataset at a time, in the consumer's thread.

    If elements of all places are waiting, one take over all of them reorders whole rounds, which are then returned in
    pieces.
    """

    def __init__(self, source: Operator, datasets: Subdatasets, cycle: RoundRobin[_Slot]) -> None:
        super().__init__(datasets.node)
        self.datasets = datasets
        self.inputs = Inputs(source, datasets)
        self.cycle = cycle
        self._element_bytes = 0  # the largest average size per read so far
        self._blocked: int | None = None  # the place without a whole round, until its turn

    def pull(self, n: int) -> Chunk | None:
        return self.outbox.collect(self.produce, n)

    def produce(self, n: int) -> Chunk | None:
        cycle = self.cycle
        if cycle.rounds is None:
            cycle.rounds = self._take_rounds(n)
        return self._next(n) if cycle.rounds is None else cycle.give_rounds(n)

    def _next(self, n: int) -> Chunk | None:
        """Return up to ``n`` elements of the current dataset, or of the next one that has any."""
        cycle = self.cycle
        while cycle.filled or not self.inputs.ended:
            if cycle.turn == self._blocked:
                self._blocked = None
            slot = cycle.current
            if slot is not None:
                chunk = self._read(slot, min(n, cycle.left))
                if chunk is not None:
                    cycle.advance(chunk.length)
                    return chunk
                slot.inner.leave()
                cycle.empty()
            elif self.inputs.ended:
                cycle.pass_on()
            else:
                self._fill_slot()
        return None

    def _fill_slot(self) -> None:
        try:
            inner = self.inputs.open_next()
        except Exception:
            self.inputs.note()
            raise
        self.inputs.note()
        if inner is not None:
            self.cycle.fill(self.cycle.turn, self._slot(inner))

    def _slot(self, inner: Subdataset) -> _Slot:
        return _Slot(inner, len(self.cycle.places), self._element_bytes)

    def _read(self, slot: _Slot, n: int) -> Chunk | None:
        self._read_ahead(slot, n)
        return self.datasets.take(slot.inner, n)

    def _read_ahead(self, slot: _Slot, needed: int) -> None:
        """Ensure that the slot has elements, unless it has ended or an exception is next."""
        inner = slot.inner
        if inner.ahead or inner.ended:
            return
        try:
            chunk = self.datasets.read(inner, slot.ahead_count(needed), ahead=slot.reads_ahead)
        except Exception as error:  # noqa: BLE001  # raised when its turn comes
            inner.ahead.put(error)
            return
        if chunk is None:
            inner.ended = True
            return
        if slot.reads_ahead and not slot.element_bytes:
            slot.element_bytes = max(1, chunk.nbytes // chunk.length)
            self._element_bytes = max(self._element_bytes, slot.element_bytes)
        inner.ahead.put(chunk)

    def _take_rounds(self, n: int) -> Rounds | None:
        """Take as many blocks of each dataset as form whole rounds; None if no whole round is waiting."""
        cycle = self.cycle
        block = cycle.block_length
        if cycle.given or not cycle.filled or self._blocked is not None or not self.datasets.has_given:
            return None
        ready: dict[int, _Slot] = {}
        most = max(EACH_ELEMENTS, AHEAD_ELEMENTS // cycle.filled)
        rounds, element_bytes = max(n // (cycle.filled * block), most // block), 1
        for place in cycle.places_in_turn():
            slot = cycle.places[place]
            if slot is None and self.inputs.ended:
                continue
            blocks = 0 if slot is None else self._blocks_ahead(slot)
            if slot is None or not blocks:
                self._blocked = place
                return None
            ready[place] = slot
            rounds, element_bytes = min(rounds, blocks), max(element_bytes, slot.element_bytes)
        rounds = min(rounds, max(n // (len(ready) * block), EACH_BYTES // (element_bytes * block)))
        if not rounds:
            return None
        waiting = [chunk for slot in ready.values() if (chunk := slot.inner.ahead.give(rounds * block)) is not None]
        return Rounds(list(ready), waiting, block)

    def _blocks_ahead(self, slot: _Slot) -> int:
        """Return how many blocks are waiting. Read ahead if needed and unobservable."""
        if not slot.reads_ahead or slot.inner.given < slot.inner.log.given:
            return 0  # with user code, or elements restored by value, no more is taken than requested
        self._read_ahead(slot, self.cycle.block_length)
        return self.datasets.waiting(slot.inner) // self.cycle.block_length

    @property
    def held(self) -> int:
        """The number of elements in the rounds."""
        return self.cycle.held if self.datasets.repeats and not self.outbox else 0

    def save(self) -> Position:
        if not self.datasets.repeats:
            self.outbox.extend(self.cycle.end_rounds())  # saved by value
        return self.save_before(0)

    def save_before(self, count: int) -> Position:
        slots, turn = self.cycle.save(self._save, count)
        position = self.inputs.save(slots, by_place=False)
        return position.having(held=super().save().held).with_own(**turn)

    def _save(self, slot: _Slot, taken: int) -> Position | None:
        """Save a slot by place if it was read ahead and can be read again: the dataset itself is further ahead."""
        if slot.reads_ahead and self.datasets.repeats and (slot.inner.ahead or self.cycle.rounds is not None):
            return self.datasets.save_by_place(slot.inner, taken)
        return self.datasets.save(slot.inner)

    def load(self, position: Position) -> None:
        super().load(position)
        self.cycle.load(self.inputs.load(position), position, lambda saved: self._slot(self.inputs.reopen(saved)))

    def close(self) -> None:
        for slot in self.cycle.places:
            if slot is not None:
                slot.inner.close()
        self.inputs.close()
        super().close()
