"""Parallel interleave operator: orders the elements that reader_pool.py reads in the background."""

from __future__ import annotations

import contextlib
from typing import Any

from dataset.amounts import AHEAD_BYTES, AHEAD_ELEMENTS, EACH_BYTES, EACH_ELEMENTS
from dataset.ops.interleave.reader_pool import AHEAD_ELEMENTS_MAX, ReaderPool, ReaderSlot
from dataset.ops.interleave.round_robin import RoundRobin, Rounds
from dataset.ops.interleave.subdatasets import Inputs, Subdatasets
from dataset.runtime.choice import Learned
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import HoldingOperator, Operator
from dataset.runtime.metrics.background import BackgroundOperator, Tunable
from dataset.runtime.parallel.buffered_operator import BufferedOperator
from dataset.runtime.parallel.controller import Controller
from dataset.runtime.position import Position


class ParallelInterleaveOperator(BufferedOperator, HoldingOperator, BackgroundOperator):
    """Operator that goes around the cycle and takes the elements that were read.

    In order, it waits for the dataset that has the turn, and the results equal those of InterleaveOperator. Otherwise
    it skips datasets without ready elements, and waits only if none has any.

    In addition to the cycle, ``min(cycle_length, calls)`` inputs are opened ahead, as many as could be needed soon.

    Args:
        source: the input, whose elements the datasets are created from.
        datasets: the factory of the datasets.
        cycle: the cycle, with all places empty.
        context: provides the worker threads.
        calls: how many datasets to read concurrently.
        in_order: whether the order must not depend on timing.
    """

    def __init__(
        self,
        source: Operator,
        datasets: Subdatasets,
        cycle: RoundRobin[ReaderSlot],
        context: ExecutionContext,
        calls: Tunable,
        *,
        in_order: bool,
    ) -> None:
        super().__init__(datasets.node)
        self.datasets = datasets
        self.inputs = Inputs(source, datasets, leaves_marks=True)
        self.cycle = cycle
        self.coordinator = context.iteration.coordinator
        self.counters = context.counters
        self.knob = calls
        self.in_order = in_order
        opened_max = min(len(cycle.places), calls.value)
        self.readers = ReaderPool(self.inputs, context, calls, opened_max, cycle.block_length)
        self.readers.places = len(cycle.places)
        self.controller: Controller = self.readers.controller
        self.controller.may_compare = self.may_compare
        self._context = context

    def produce(self, n: int) -> Chunk | None:
        if self.coordinator.forked:  # before the lock, which a thread of the parent may have held
            self.coordinator.check_usable()
        self.readers.start()
        controller = self.controller
        if controller.measures:
            with self.readers.lock:
                controller.requested(self.readers.given)
        chunk = self.outbox.collect(self._next, n)
        if chunk is not None:
            self.counters.taken += chunk.length
        return chunk

    def _next(self, n: int) -> Chunk | None:
        """Wait for 1 to ``n`` elements; None at the end."""
        cycle = self.cycle
        while cycle.rounds is None:
            with self.readers.lock:
                cycle.rounds = self._take_rounds(n)
                chunk = None if cycle.rounds else self._take(n)
                ended = self._at_end
            if cycle.rounds:
                self.readers.call_workers()
            elif chunk is not None or ended:
                self.readers.call_workers()
                return chunk
            else:
                self.readers.wait()
        return cycle.give_rounds(n)

    @property
    def _at_end(self) -> bool:
        return not self.cycle.filled and self.readers.no_more_inputs

    def _take(self, n: int) -> Chunk | None:
        """Take up to ``n`` elements of one dataset. If it must wait, return None after calling ``expect``."""
        return self._take_in_order(n) if self.in_order else self._take_ready(n)

    def _take_in_order(self, n: int) -> Chunk | None:
        cycle, readers = self.cycle, self.readers
        while not self._at_end:
            reader = cycle.current
            if reader is None:
                if not self._fill(cycle.turn):
                    if not readers.no_more_inputs:
                        readers.expect(an_input=True)
                        return None
                    cycle.pass_on()
                continue
            chunk = self._take_from(reader, n)
            if chunk is not None:
                return chunk
            if not reader.inner.ended:
                readers.expect(reader, an_input=False)
                return None
            self._empty()
        return None

    def _take_ready(self, n: int) -> Chunk | None:
        cycle = self.cycle
        self._fill_all()
        passed = 0
        while passed < len(cycle.places) and not self._at_end:
            reader = cycle.current
            if reader is not None:
                chunk = self._take_from(reader, n)
                if chunk is not None:
                    return chunk
                if reader.inner.ended:
                    place = cycle.turn
                    self._empty()
                    passed = 0 if self._fill(place) else passed + 1
                    continue
            cycle.pass_on()
            passed += 1
        self.readers.expect(*[reader for reader in cycle.places if reader is not None], an_input=True)
        return None

    def _take_from(self, reader: ReaderSlot, n: int) -> Chunk | None:
        chunk = self.readers.take(reader, min(n, self.cycle.left))
        if chunk is not None:
            self.cycle.advance(chunk.length)
        return chunk

    def _empty(self) -> None:
        reader = self.cycle.current
        assert reader is not None  # it has just ended
        reader.inner.leave()
        self.cycle.empty()
        self.readers.free_place()

    def _fill(self, place: int) -> bool:
        """Put the next input at ``place`` if it is open; raise the exception that replaced it."""
        reader = self.readers.next_opened()
        if reader is None:
            return False
        self.cycle.fill(place, reader)
        return True

    def _fill_all(self) -> None:
        if self.readers.places and not self.readers.no_more_inputs:
            for place in self.cycle.empty_places():
                if not self._fill(place):
                    return

    def _take_rounds(self, n: int) -> Rounds | None:
        """Take as many blocks of each dataset as form whole rounds; None if no whole round is waiting.

        Taking more than ``n`` pays off for small elements; copying many large elements does not.
        """
        cycle, readers = self.cycle, self.readers
        block = cycle.block_length
        if cycle.given or not self.datasets.has_given or not (self._is_full or not self.in_order):
            return None
        ready: dict[int, ReaderSlot] = {}
        rounds = max(n, AHEAD_ELEMENTS) // block
        for place in cycle.places_in_turn():
            reader = cycle.places[place]
            if reader is not None:
                blocks = self.datasets.waiting(reader.inner) // block
                if blocks:
                    ready[place] = reader
                    rounds = min(rounds, blocks)
                elif self.in_order:
                    return None
        if not ready:
            return None
        bytes_max = max(AHEAD_BYTES, EACH_BYTES * len(ready))
        small = bytes_max // max(reader.element_bytes for reader in ready.values())
        most = max(n, min(max(AHEAD_ELEMENTS, EACH_ELEMENTS * len(ready)), small))
        rounds = min(rounds, most // (len(ready) * block))
        if not rounds:
            return None
        return Rounds(list(ready), readers.lend(list(ready.values()), rounds * block), block)

    @property
    def _is_full(self) -> bool:
        """Whether no empty place can be filled any more."""
        return self.cycle.filled == len(self.cycle.places) or self.readers.no_more_inputs

    def save(self) -> Position:
        """Save the position. Does not wait for running reads or hold elements read ahead, if the inputs can repeat.

        Otherwise, it waits for the reads that cannot be repeated, those from the source or all, and saves buffered
        elements by value. Reading continues afterwards.
        """
        if self.coordinator.forked:
            self.coordinator.check_usable()
        if not self.datasets.repeats:
            with self.readers.still():
                self.outbox.extend(self.cycle.end_rounds())
                cycle = self.cycle.save(lambda reader, _: self.datasets.save(reader.inner))
                return self._position(*cycle, by_place=False)
        if not self._context.input_is_replayable:
            with self.readers.still_source():
                return self._position(*self._cycle_by_place(), by_place=False)
        return self.save_before(0)

    @property
    def held(self) -> int:
        """The number of elements in the rounds."""
        repeats = self.datasets.repeats and self._context.input_is_replayable
        return self.cycle.held if repeats and not self.outbox else 0

    def save_before(self, count: int) -> Position:
        return self._position(*self._cycle_by_place(count), by_place=True)

    def _position(self, slots: list[Position | None], turn: dict[str, int], *, by_place: bool) -> Position:
        position = self.readers.save_inputs(slots, by_place=by_place)
        return position.having(held=super().save().held).with_own(**turn)

    def _cycle_by_place(self, before: int = 0) -> tuple[list[Position | None], dict[str, int]]:
        return self.cycle.save(lambda reader, n: self.datasets.save_by_place(reader.inner, n), before)

    def load(self, position: Position) -> None:
        super().load(position)
        slots = self.inputs.load(position)
        self.cycle.load(slots, position, lambda saved: self.readers.adopt(self.inputs.reopen(saved)))
        self.readers.places = len(self.cycle.places) - self.cycle.filled

    @property
    def inline(self) -> bool:
        """Whether the consumer reads the datasets, which the workers only open."""
        return self.controller.inline

    def warm_start(self, learned: Learned) -> None:
        with self.readers.lock:
            super().warm_start(learned)

    @property
    def capacity(self) -> int:
        """The maximum number of elements read ahead from all datasets together."""
        return len(self.cycle.places) * AHEAD_ELEMENTS_MAX

    def buffered(self) -> tuple[int, int]:
        """Return the number of buffered elements and their approximate size in bytes."""
        with self.readers.lock:
            held = self._readers()
            count, nbytes = sum(reader.held for reader in held), sum(reader.nbytes for reader in held)
        rounds = self.cycle.rounds
        joined = [] if rounds is None else rounds.rest()
        return count + sum(chunk.length for chunk in joined), nbytes + sum(chunk.nbytes for chunk in joined)

    def _readers(self) -> list[ReaderSlot]:
        everybody: list[Any] = [*self.cycle.places, *self.readers.opened()]
        return [item for item in everybody if isinstance(item, ReaderSlot)]

    def close(self) -> None:
        """Close everything. Waits for running reads, which may be in user code."""
        if self.coordinator.forked:
            return
        self.readers.end_workers()
        with contextlib.ExitStack() as stack:  # closes all, even if one fails
            stack.callback(super().close)
            stack.callback(self.inputs.close)
            for reader in self._readers():
                stack.callback(reader.inner.close)
                stack.callback(reader.inner.ahead.clear)
            stack.callback(self.readers.forget_opened)
