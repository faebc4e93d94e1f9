"""interleave(map_func, cycle_length, block_length): datasets side by side, a block from each in turn.

Here are the node, and the operator that reads when it is asked. The one that reads in the background is in
parallel_interleave.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.ops.flat_map import FlatMap
from dataset.ops.parallel_interleave import ParallelInterleaveOperator
from dataset.plan.checks import require_int
from dataset.plan.node import holds_user_code
from dataset.runtime.chunk import Chunk
from dataset.runtime.cycle import Cycle, join_rounds
from dataset.runtime.inner import Inner, InnerDatasets, Inputs
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.parallel import parallel_detail
from dataset.runtime.pending import Pending

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
    num_parallel_calls: int | None = field(default=None, kw_only=True, repr=False)
    deterministic: bool | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("cycle_length", require_int("interleave", "cycle_length", self.cycle_length, minimum=1))
        self._set("block_length", require_int("interleave", "block_length", self.block_length, minimum=1))

    def described(self) -> str:
        return f"{super().described()[:-1]}, cycle_length={self.cycle_length}, block_length={self.block_length})"

    def detail(self) -> str:
        return parallel_detail(self.num_parallel_calls, self.deterministic)

    def lower(self, build: Build) -> Operator:
        source, datasets = build(self.source), self.datasets(build)
        cycle_length, block_length = self.cycle_length, self.block_length
        # Reading is mostly waiting; beside the datasets of the cycle, as many again are opened ahead.
        calls = build.parallel_calls(self.num_parallel_calls, autotuned=cycle_length, maximum=2 * cycle_length)
        if calls is None:
            return InterleaveOperator(source, datasets, Cycle(cycle_length, block_length))
        in_order = build.keeps_order(self.deterministic)
        if not in_order:
            build.say_unrepeatable()
        return ParallelInterleaveOperator(
            source,
            datasets,
            Cycle(cycle_length, block_length),
            build,
            calls,
            in_order=in_order,
        )


class _Slot:
    """An open dataset in the cycle, and how far to read from it ahead of its turn."""

    def __init__(self, inner: Inner) -> None:
        self.inner = inner
        # Only where no user code runs can reading ahead not be seen.
        self.reads_ahead = not holds_user_code(inner.plan)
        self.element_bytes = 0

    def ahead_count(self, needed: int) -> int:
        """How many elements to ask for when ``needed`` are wanted."""
        if not self.reads_ahead or not self.element_bytes:
            return needed
        return max(needed, min(READ_AHEAD_ELEMENTS, READ_AHEAD_BYTES // self.element_bytes))


class InterleaveOperator(UnaryOperator):
    """Reads from one dataset at a time, in the consumer's thread.

    Where all places have elements waiting, whole rounds are put in order by one take over all of them.
    """

    def __init__(self, source: Operator, datasets: InnerDatasets, cycle: Cycle[_Slot]) -> None:
        super().__init__(source)
        self.datasets = datasets
        self.inputs = Inputs(source, datasets)
        self.cycle = cycle
        self._pending = Pending()  # an exception behind elements that came first

    def pull(self, n: int) -> Chunk | None:
        if self._pending:
            return self._pending.give(n)
        return self._pending.collect(lambda wanted: self._rounds(wanted) or self._next(wanted), n)

    def _next(self, n: int) -> Chunk | None:
        """Up to ``n`` elements from the dataset whose turn it is, or the next that has any."""
        cycle = self.cycle
        while cycle.filled or not self.inputs.ended:
            slot = cycle.current
            if slot is not None:
                chunk = self._read(slot, min(n, cycle.left))
                if chunk is not None:
                    cycle.advance(chunk.length)
                    return chunk
                slot.inner.close()
                cycle.empty()
            elif self.inputs.ended:
                cycle.pass_on()
            else:
                self._fill_slot()
        return None

    def _fill_slot(self) -> None:
        try:
            inner = self.inputs.open_next()
        finally:
            self.inputs.note()
        if inner is not None:
            self.cycle.fill(self.cycle.turn, _Slot(inner))

    def _read(self, slot: _Slot, n: int) -> Chunk | None:
        self._read_ahead(slot, n)
        return self.datasets.take(slot.inner, n)

    def _read_ahead(self, slot: _Slot, needed: int) -> None:
        """See to it that the slot has elements, unless it has ended or an exception is next."""
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
        inner.ahead.put(chunk)

    def _rounds(self, n: int) -> Chunk | None:
        """As many whole rounds of the cycle as are waiting, at most ``n`` elements; None for less than one."""
        cycle = self.cycle
        if cycle.given or not cycle.filled or (None in cycle.places and not self.inputs.ended):
            return None
        slots = [slot for slot in cycle.in_turn() if slot is not None]
        rounds = n // (len(slots) * cycle.block_length)
        if not rounds:
            return None
        for slot in slots:
            if not slot.reads_ahead:
                return None
            self._read_ahead(slot, cycle.block_length)
            rounds = min(rounds, self.datasets.waiting(slot.inner) // cycle.block_length)
            if not rounds:
                return None
        length = rounds * cycle.block_length
        waiting = [chunk for slot in slots if (chunk := slot.inner.give(length)) is not None]
        return join_rounds(waiting, cycle.block_length)

    def state_dict(self) -> State:
        return {
            "op": self.datasets.node.op,
            **self.inputs.save([], by_place=False),
            **self.cycle.state_dict(lambda slot, _: self._save(slot)),
            "pending": self._pending.save(),
        }

    def _save(self, slot: _Slot) -> Any:
        """By place where something was read ahead, and can be read again; the dataset's own place is beyond it."""
        if slot.inner.ahead and slot.reads_ahead and self.datasets.repeats:
            return self.datasets.save_by_place(slot.inner)
        return self.datasets.save(slot.inner)

    def load_state_dict(self, state: State) -> None:
        self.inputs.load(state)
        self.cycle.load_state_dict(state, lambda saved: _Slot(self.datasets.reopen(saved)))
        self._pending.load(state["pending"], lambda: self.datasets.node.element_spec)

    def close(self) -> None:
        for slot in self.cycle.places:
            if slot is not None:
                slot.inner.close()
        super().close()
