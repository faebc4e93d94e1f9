"""Caching operator: store the elements of one full pass for later passes. Shared by cache() and snapshot().

A ``CacheStore`` holds the elements in memory (cache.py) or in files (io/elements/). ``CacheOperator`` fills or reads
it.
"""

from __future__ import annotations

import errno
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from dataset.amounts import STEP_ELEMENTS
from dataset.errors import StateError
from dataset.plan.epochs import random_states
from dataset.plan.node import Node, UnaryNode, walk
from dataset.plan.plain import digest
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.chunks.lineage import later
from dataset.runtime.context import ExecutionContext, LineageContext, source_lineage
from dataset.runtime.contract import Operator, assumes_no_failures
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position, holding
from dataset.runtime.resources.exceptions import CANNOT_CONTINUE, concerns_iteration, with_location
from dataset.runtime.state.replay_log import ReplayLog

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # a store may fail with these when it starts to write


class RefusedElementError(Exception):
    """Internal error: a store cannot keep element ``index`` of a chunk because of ``error``; it kept those before."""

    def __init__(self, index: int, error: Exception) -> None:
        super().__init__(index, error)
        self.index = index
        self.error = error


@dataclass(frozen=True)
class CacheEntry:
    """Finished cache: the contents of a store.

    Attributes:
        start: where the pass that filled the store began, see ``start_of_pass``.
        plan: the plan that reads the elements.
        failures: how many elements of the pass failed; they are not stored.
        identity: distinguishes stores that hold the same elements in different records; states of their plans differ.
    """

    start: Position
    plan: Node
    failures: int = 0
    identity: str | None = None


class CacheWriter(Protocol):
    """Writer of one pass into a store."""

    def add(self, chunk: Chunk) -> None:
        """Add elements. Their arrays must not be modified afterwards.

        Raises:
            RefusedElementError: if one of them cannot be stored.
            OSError: if the pass can no longer be stored.
        """

    def finish(self, failures: int) -> None:
        """Finish the pass. ``failures`` of its elements failed and were not added."""

    def discard(self) -> None:
        """Abandon the pass. Does nothing after ``finish`` or if called again."""


class CacheStore(Protocol):
    """Store for the elements of one pass."""

    in_order: ClassVar[bool]
    """Whether the elements are stored in the order of the pass, so that reading them can continue it."""
    keeps_lineage: ClassVar[bool]
    """Whether the lineage of the elements is stored. Otherwise elements are known by their places in the store."""

    def finished(self) -> CacheEntry | None:
        """Return the contents; None until a pass has finished."""

    def begin(self, start: Position, count: int) -> CacheWriter | None:
        """Begin a pass of ``count`` elements at ``start``; None if another pass has finished in the meantime."""


def start_of_pass(source: Position | None, draws: list[Any]) -> Position:
    """Return where a pass began: the position of the input, and the random numbers of its operators."""
    return Position("start", inputs=(source,), own={"draws": draws})


def lower_keeping(context: ExecutionContext, node: UnaryNode, store: CacheStore) -> Operator:
    """Return the operator of a node that caches its input's elements in ``store``."""
    if context.iteration.epochs.probing and store.finished() is None:
        # Probing one element must not fill the store.
        start = context.iteration.passes_to_repeat.get(node)
        return context(node.source) if start is None else context.from_beginning(node.source, start.own["draws"])
    context.replays = True
    return CacheOperator(context, node, store)


class CacheOperator(Operator):
    """Caching operator: fills a store or reads it.

    The first pull decides which of the two. Once a saved state has named the pass, a store that another iterator has
    filled is read only if it returns the same outcomes. Elements are returned read-only while filling, because the
    store keeps them.
    A saved state holds where the filling pass began and how far it has advanced. A process without the elements repeats
    that pass up to this position, so that later epochs see the same elements. It does so at the first pull, because the
    iterator that saved the state may still hold the store. If all elements had been pulled before the state was saved,
    the next pass does so.

    The inputs of its position are the start of the pass, and then the input or, while it ``reads``, the reader; None if
    the position there is only known by number.
    """

    def __init__(self, context: ExecutionContext, node: UnaryNode, store: CacheStore) -> None:
        self.context = context
        self.node = node
        self.store = store
        self.source: Operator | None = None
        self.reader: Operator | None = None
        self._start: Position | None = None
        self._filling: CacheWriter | None = None
        self._bypasses = False  # whether the pass is not cached
        self._begun = False  # whether filling the store was attempted; the store may have declined
        self._taken = 0  # elements pulled from the input
        self._kept = 0  # elements added to the store
        self._failures = 0  # exceptions of the input
        self._ended = False
        self._identity: str | None = None  # of the store that is being read
        self._log: ReplayLog | None = None  # of the store that is being read
        self.outbox = OutcomeQueue()  # an exception of the store, and the elements after the refused one
        self._target: Position | None = None  # the loaded position, until the pass has reached it

    def pull(self, n: int) -> Chunk | None:
        self._decide()
        if self._target is not None:
            self._reach(self._target)
        if self.outbox:
            return self.outbox.give(n)
        if self._log is None:
            return None if self._ended else self._fill(n)
        self._log.go_on()
        place = self._log.read
        chunk = self._log.pull(n)
        return self._traced(chunk, place) if chunk is not None and self.context.is_traced else chunk

    def _traced(self, chunk: Chunk, place: int) -> Chunk:
        """Return the elements at ``place`` in the store with their lineage: their places if it does not contain it."""
        if self.store.keeps_lineage and chunk.lineage is not None:  # as if it had been stored in the first pass
            return self._moved(chunk, 1)
        return self._placed(chunk, place)

    def _placed(self, chunk: Chunk, start: int) -> Chunk:
        """Return elements with a lineage that is their places in the store, from ``start`` on."""
        writer = source_lineage(self.context, self.node, is_store=True)
        return chunk.with_lineage(None if writer is None else writer.run(start, chunk.length))

    def _moved(self, chunk: Chunk, direction: int) -> Chunk:
        """Return elements of the first pass over this op as elements of the present pass, or, with -1, vice versa."""
        place = LineageContext(self.context)
        if chunk.lineage is None or not (passes := direction * place.epoch):
            return chunk
        below = math.prod(max(1, node.traits.passes) for node in walk(self.node.source))
        repeats = np.full(chunk.length, passes * below)
        return chunk.with_lineage(later(chunk.lineage, repeats, nested=not place.is_of_call))

    def _decide(self) -> None:
        if self._begun or self._target is not None or self.reader is not None:
            return
        try:
            finished = self.store.finished()
        except Exception as error:
            self._note_that_none_comes(error)
            raise
        to_repeat = self.context.iteration.passes_to_repeat.get(self.node)
        is_named = self._start is not None  # by a saved state, after which elements may have been read ahead
        if self.source is not None and self._start is not None:  # a cache below may have been filled since
            self._start = self._start.having(inputs=(self.source.save(),))
        is_filled_here = self.node in self.context.iteration.filled
        if finished is not None and (not is_named or is_filled_here or self._is_like_own(finished)):
            self._leave_source()
            self._read(finished)
        elif to_repeat is not None and not is_named:  # the pass had ended before it was saved, and not begun again
            self._run_again(self._reading(to_repeat, None, 0), keep=True)
        elif self.source is None:
            draws = [list(self.context.draws(random, of_first_run=True)) for random in random_states(self.node.source)]
            self.source = self.context.from_beginning(self.node.source, draws)
            self._start = start_of_pass(self.source.save(), draws)

    def _note_that_none_comes(self, error: Exception) -> None:
        error.add_note(f"{self.node.label()} cannot be read or filled: {CANNOT_CONTINUE}")

    def _leave_source(self) -> None:
        if self.source is not None:
            self.source.close()
            self.source = None

    def _read(self, finished: CacheEntry, position: Position | None = None, given: int = 0) -> None:
        """Read the store after the first ``given`` elements, where the reader is at this position if it is not None."""
        self._start, self._identity = finished.start, finished.identity
        self.context.iteration.read_from_store.add(self.node)
        self.reader = self.context(finished.plan)
        self._log = ReplayLog(self.reader, self.op)
        self._log.given = given
        if position is not None:
            self.reader.load(position)
            self._log.read = given

    def _go_on_reading(self, finished: CacheEntry, position: Position) -> None:
        is_same = position.own["identity"] == finished.identity
        self._read(finished, position.inputs[1] if is_same else None, position.at)

    def _fill(self, n: int) -> Chunk | None:
        try:
            self._begin()
        except Exception as error:
            self._begun = self._bypasses = isinstance(error, OSError) and error.errno in _NO_ROOM
            if not self._begun:
                self._note_that_none_comes(error)
            raise
        if not self._begun:
            return self.pull(n)
        chunk = self._take(n)
        if chunk is None:
            return None
        outcomes = self._keep(chunk)
        if len(outcomes) == 1 and outcomes[0] is chunk:
            return chunk
        self.outbox.extend(outcomes)
        return self.outbox.give(n)

    def _begin(self) -> None:
        """Begin to fill the store, unless it holds or is to hold another pass. If it was just filled, do nothing."""
        if self._begun:
            return
        assert self._start is not None
        kept = self.context.iteration.passes_to_repeat.get(self.node)  # a state says that this pass was kept
        if self.store.finished() is None and (kept is None or _is_same(kept, self._start)):
            self._filling = self.store.begin(self._start, self.node.source.cardinality())
            if self._filling is None:
                return
        self._begun, self._bypasses = True, self._filling is None

    def _take(self, n: int) -> Chunk | None:
        """Pull the next elements of the input. At its end, finish the store."""
        assert self.source is not None
        try:
            chunk = self.source.pull(n)
        except Exception:
            self._failures += 1
            raise
        if chunk is None:
            self._ended = True
            filling, self._filling = self._filling, None
            if filling is not None:
                try:
                    filling.finish(self._failures)
                except BaseException:
                    filling.discard()
                    raise
                self.context.iteration.filled.add(self.node)
            return None
        self._taken += chunk.length
        chunk = chunk.read_only()
        if chunk.lineage is not None and not self.store.keeps_lineage:
            return self._placed(chunk, self._taken - chunk.length)
        return chunk

    def _keep(self, chunk: Chunk) -> list[Outcome]:
        """Add elements to the store. Return them, with exceptions in place of the elements it cannot store."""
        outcomes: list[Outcome] = []
        end = self._taken
        while self._filling is not None:
            try:
                self._filling.add(chunk if chunk.lineage is None else self._moved(chunk, -1))
            except RefusedElementError as refused:
                index = refused.index
                self._kept += index
                noted = getattr(refused.error, "__notes__", None)
                error = refused.error if noted else with_location(refused.error, self.node, end - chunk.length + index)
                outcomes += [chunk.slice(0, index), error] if index else [error]
                if index + 1 == chunk.length:
                    return outcomes
                chunk = chunk.slice(index + 1, chunk.length)
            except OSError as failure:  # such as a full disk: the elements are still returned
                self._filling.discard()
                self._filling, self._bypasses = None, True
                outcomes.append(failure)
            else:
                self._kept += chunk.length
                break
        return [*outcomes, chunk]

    def save(self) -> Position:
        self._decide()
        if self._target is not None:
            return self._target
        if self.reader is not None and self._log is not None:
            reader = None if self._log.is_behind else self.reader.save()
            return self._reading(self._start, reader, self._log.position)
        assert self.source is not None
        source = None if self.store.in_order and not self._bypasses else self.source.save()
        own = {"reads": False, "bypasses": self._bypasses, "kept": self._kept}
        own |= {"failures": self._failures, "ended": self._ended}
        return Position(self.op, self._taken, (self._start, source), holding(outbox=self.outbox.save()), own=own)

    def _reading(self, start: Position | None, reader: Position | None, given: int) -> Position:
        """Return a position in the store."""
        own = {"reads": True, "identity": self._identity}
        return Position(self.op, given, (start, reader), holding(outbox=self.outbox.save()), own=own)

    def advance(self, position: Position, count: int) -> Position | None:
        """Return a position in the store if it is being read, else in the input. The latter pass is not cached."""
        reader, source = self.reader, self.source
        if position.held:
            return None
        if position.own["reads"]:
            place = position.inputs[1]
            if place is None or reader is None or position.own["identity"] != self._identity:
                return None
            below = reader.advance(place, count)
            return None if below is None else position.after(count, position.source, below)
        if source is None or not _is_untouched(position) or not assumes_no_failures():
            return None
        below = source.advance(position.source.source, count)
        return None if below is None else position.after(count, position.source, below, bypasses=True)

    def load(self, position: Position) -> None:
        finished, reads = self.store.finished(), position.like("reads", False)
        self._start = position.source
        if not reads and position.like("bypasses", False):
            self._leave_source()
            self._continue_in_source(position)
            self._bypasses = True
            self._load_outbox(position)
            return
        if finished is not None and reads and not self._is_kept(finished):
            raise StateError(
                f"{self.node}: the state is of a later pass over the cached elements, but the cache now holds another "
                "pass, in another order; resume with an empty cache, such as a new directory"
            )
        if _is_untouched(position) and (finished is None or self._is_like_own(finished)):
            self.source = self._opened_at(self._start.source)
        elif finished is not None and self._is_kept(finished) and not _is_untouched(position):
            self._go_to(finished, position)
        else:
            self._run_again(position, keep=finished is None)

    def _run_again(self, position: Position, *, keep: bool) -> None:
        """Schedule repeating the pass up to ``position`` at the first pull; ``keep`` says whether to fill the store."""
        self._start = position.source
        if keep and _is_at_the_end(position):
            self.context.iteration.passes_to_repeat[self.node] = self._start
        self.source = self._opened_at(self._start.source)
        self._begun = self._bypasses = not keep
        self._target = position

    def _continue_in_source(self, position: Position) -> None:
        """Open the input where a pass that fills the store, or would, has advanced to."""
        if position.inputs[1] is None:
            raise StateError(f"{self.node}: the state is damaged: it has no position of the input")
        self.source = self._opened_at(position.inputs[1])
        self._begun = True
        self._taken, self._kept, self._failures = position.at, position.count("kept"), position.count("failures")
        self._ended = position.like("ended", False)

    def _load_outbox(self, position: Position) -> None:
        self.outbox.load(position.held.get("outbox", ()), lambda: self.node.element_spec)

    def _is_like_own(self, finished: CacheEntry) -> bool:
        """Return whether reading the store instead of the input makes no difference."""
        return self.store.in_order and self._is_kept(finished) and not finished.failures

    def _is_kept(self, finished: CacheEntry) -> bool:
        """Return whether the store holds the pass that began at ``_start``."""
        return self._start is not None and _is_same(finished.start, self._start)

    def _opened_at(self, position: Position) -> Operator:
        """Return the input at a position in the pass that began at ``_start``."""
        assert self._start is not None
        source = self.context.from_beginning(self.node.source, self._start.own["draws"])
        source.load(position)
        return source

    def _go_to(self, finished: CacheEntry, position: Position) -> None:
        """Go to a position in a pass that has finished."""
        if not position.own["reads"] and finished.failures > position.count("failures"):
            self._run_again(position, keep=False)  # later elements failed and are not stored, but must be raised
            return
        self._load_outbox(position)
        if position.own["reads"]:
            self._go_on_reading(finished, position)
        elif self.store.in_order:
            self._read(finished, given=position.count("kept"))
        else:  # the store has a different order: the rest of this pass comes from the input
            self._continue_in_source(position)

    def _reach(self, target: Position) -> None:
        """Go to the loaded position in the store, if another iterator has filled it since, or else in the input."""
        if self.store.finished() is None:
            self._begin()
        if not self._begun:
            self._leave_source()
            self.context.iteration.passes_to_repeat.pop(self.node, None)
            self._target = None
            self.load(target)
        if self._target is not None:
            self._catch_up(self._target)

    def _catch_up(self, target: Position) -> None:
        """Repeat the pass up to where the state was saved, or to its end if it had finished."""
        to_the_end = _is_at_the_end(target)
        while not self._ended and (to_the_end or self._is_before(target)):
            step = STEP_ELEMENTS if to_the_end else max(1, target.at - self._taken)
            try:
                chunk = self._take(step)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                continue  # already raised and counted before the state was saved
            if chunk is not None:
                self._keep(chunk)
        if to_the_end:
            self.context.iteration.passes_to_repeat.pop(self.node, None)
        if target.own["reads"]:
            finished = self.store.finished()
            if finished is None and target.inputs[1] is None and not target.at:
                self._begin_anew()
                return
            if finished is None:
                raise StateError(f"{self.node}: the pass that the saved state reads from cannot be repeated")
            self._leave_source()
            self._go_on_reading(finished, target)
        self._load_outbox(target)
        self._target = None

    def _begin_anew(self) -> None:
        """Begin a new pass: the previous one was not cached, now or when the state was saved."""
        self._leave_source()
        self._begun = self._bypasses = self._ended = False
        self._taken = self._kept = self._failures = 0
        self._target = None
        self._decide()

    def _is_before(self, target: Position) -> bool:
        return self._taken < target.at or self._failures < target.count("failures")

    def close(self) -> None:
        if self._filling is not None:
            self._filling.discard()
            self._filling = None
        for operator in (self.source, self.reader):
            if operator is not None:
                operator.close()


def _is_same(start: Position, other: Position) -> bool:
    return digest(start.to_plain()) == digest(other.to_plain())


def _is_untouched(position: Position) -> bool:
    """Return whether nothing had been pulled yet."""
    own = position.own
    return not (own["reads"] or position.at or own["failures"] or own["ended"])


def _is_at_the_end(position: Position) -> bool:
    """Return whether the whole pass had been pulled."""
    return bool(position.own["reads"] or position.own["ended"])
