"""Operator of distribute(): requests elements from the workers, and returns them in the order of the plan.

**Shares.** There is one share per worker. Each has a thread, which requests the next elements while there is room for
them, and a queue of those that have arrived. Element ``k`` of the plan is the next one of share ``k`` modulo the number
of shares, so a round robin over the shares restores the order. Shares that have ended are left out. The consumer takes
all rounds that have arrived at once, because each visit to the queues has a cost. For the same reason, it counts the
elements that it has delivered only when they are used up, when a state is saved, and otherwise every 0.2 ms.

**State.** A worker sends its state with its elements now and then, and only after elements of as many bytes. The
position of a share is such a state, and the number of elements that have been delivered since. The state of the
operator has one position per share, and the cursor of the round robin. A worker that is lost is replaced by one that
begins at the position of the last element that has arrived; a loaded state begins at the last element that was
delivered. If the plan is divided by elements, the number of delivered elements alone determines all positions, for any
number of workers. With AUTOTUNE, the number changes while the pipeline runs: the shares are replaced by those of the
new number, and the workers continue with the new shares.

**Failed elements.** A batch ends early where an element fails, so the batches after it begin elsewhere, in the shares
of all workers. Therefore the shares are replaced by the whole plan in one worker at the first failure before a batch,
or before a cache, which leaves it out. That worker begins at the failed element, and computes it again.

**Interrupts** such as SystemExit, if a function in a worker raises them, are raised in the consumer in the place of no
element. The share then begins again at the last element that has arrived, and calls the function again.

**Backpressure.** The queues of all shares have one account of the memory budget. The share for whose element the
consumer waits always gets one element.

**Faults.** A worker is replaced at most ``max_restarts`` times within ten minutes. After that, an exception takes the
place of its next element, and the iteration ends.

One lock guards all fields of the operator and its shares, except those that only the thread of a share uses.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from functools import partial
from itertools import chain, islice
from typing import Any

from dataset.amounts import AHEAD_ELEMENTS
from dataset.errors import ClosedError, StateError, WorkerDiedError
from dataset.ops.distribute import engine as engines
from dataset.ops.distribute.engine import Engine, EngineWorker, ShareReport, Start, WorkerLostError
from dataset.ops.distribute.share_runner import Division, ShareRunner
from dataset.options import AUTOTUNE
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.epochs import random_states
from dataset.plan.node import is_infallible, walk
from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder, nbytes_of
from dataset.runtime.chunks.lineage import load_lineage, or_unknown
from dataset.runtime.context import ExecutionContext, LineageContext
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.background import BackgroundOperator, Tunable, WorkerFigures
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position, skipping
from dataset.runtime.resources.exceptions import with_location
from dataset.runtime.state.replay_log import ReplayMarks
from dataset.world import threading, time
from dataset.world.interrupts import Condition

_log = logging.getLogger("dataset")

_RESTARTS_SECONDS = 600.0
_AHEAD_MIN = 8  # elements of a share that may wait; one that takes long then stops the others late
_COUNT_SECONDS = 2e-4  # between two counts of delivered elements, on which requests depend


class _Share:
    """The elements of one worker.

    Args:
        lock: that of the operator.
        start: which share, and where it begins.
        position: the number of elements delivered before, over all shares.
    """

    def __init__(self, lock: threading.RLock, start: Start, position: int) -> None:
        self.rank = start.rank
        self.workers = start.workers
        self.first = BlockCyclicShard(start.workers, start.rank, "keep").own_in(position)  # for messages
        self.room = threading.Condition(lock)  # wakes the thread: there is room, or it must stop
        self.queue = OutcomeQueue()
        self.marks = ReplayMarks[Position | None]()  # the worker's, by the number of elements before; None: the start
        self.marks.leave(-start.skip, start.source)
        self.is_counted = start.is_counted
        self.received = self.delivered = 0  # elements since the start; an exception counts as one
        self.ahead = _AHEAD_MIN
        self.is_refused = False  # whether the thread waits for memory
        self.is_over = False  # whether other shares have replaced it
        self.ended = False  # whether all elements have arrived
        self.failure: BaseException | None = None  # after the last element that has arrived; not of an element
        self.worker: EngineWorker | None = None  # once it has opened the share
        self.singly = 0  # elements to request one by one, as one of them may have killed a worker
        self.losses: deque[float] = deque()  # when workers were lost
        self.restarts = 0
        self.busy_seconds = 0.0
        self.memory = 0

    @property
    def has_room(self) -> bool:
        """Whether to request elements: half of those that may wait at once, as each request has a cost."""
        return self.waiting <= self.ahead // 2 and not self.ended and self.failure is None

    @property
    def waiting(self) -> int:
        """How many elements have arrived, and are not delivered yet."""
        return self.received - self.delivered

    def position(self, elements: int) -> Position:
        """Return the last mark not after this many elements, and how many elements to skip from there."""
        found = self.marks.mark_before(elements)
        assert found is not None  # the start has one
        return Position("share", inputs=(found[1],), given=skipping(elements - found[0]))

    def start(self, elements: int) -> Start:
        """Return the request to open the share after this many elements."""
        found = self.position(elements)
        return Start(self.rank, self.workers, self.is_counted, found.inputs[0], found.skipped)


class DistributeOperator(Operator, BackgroundOperator):
    """Operator with a thread for each worker.

    Args:
        context: the context of the op.
        node: its node, a Distribute.
    """

    def __init__(self, context: ExecutionContext, node: Any) -> None:
        self.node = node
        self.counters = context.counters
        self._context = context
        self._place = LineageContext(context)
        self._coordinator = context.iteration.coordinator
        self._pulse = context.iteration.pulse
        self._account = context.iteration.limits.ledger.account()
        self._division: Division = node.division
        self._in_order = context.keeps_order(node.deterministic)
        self.knob = self._tunable()
        self._draws = {random: context.draws(random) for random in random_states(node.source)}
        if not self._in_order:
            context.mark_not_replayable()
        self._lock = threading.RLock()  # reentrant: the garbage collector may call _wake in a thread that holds it
        self._filled = Condition(self._lock)  # wakes the consumer
        self._hand = Remainder()  # elements that were taken from the queues, but not requested yet
        self._turns: deque[_Share] = deque()  # whose elements these were, in turns
        self._uncounted = 0  # how many of them are not counted as delivered yet
        self._uncounted_bytes = 0
        self._count_due = 0.0  # on the clock of time.perf_counter
        self._begin_at_position(self.knob.value)
        self._workers: dict[int, EngineWorker | None] = {}  # by the rank of the thread that calls it
        self._is_countable = self._in_order  # whether the number of delivered elements determines the position
        moving = [part for part in walk(node.source) if part.traits.batches or part.traits.keeps_pass]
        self._failures_count = all(is_infallible(source) for part in moving for source in part.inputs)
        self._awaited: _Share | None = None  # the share for which the consumer waits
        self._engine: Engine | None = None
        self._started = self._stopped = False
        self._began = time.perf_counter()

    def _tunable(self) -> Tunable:
        """Return the number of workers."""
        division, node, limits = self._division, self.node, self._context.iteration.limits
        if node.workers != AUTOTUNE or division.way != "elements" or not self._in_order:
            return Tunable("num_parallel_calls", division.workers)
        is_tuned = self._context.iteration.options.autotune.enabled is not False
        most = division.workers if node.engine == "ray" else max(division.workers, limits.cores)
        return self._context.tunable("num_parallel_calls", node.workers, 1 if is_tuned else division.workers, most)

    def _begin_at_position(self, workers: int) -> None:
        """Let the shares of this many workers begin where the number of delivered elements says."""
        shards = [BlockCyclicShard(workers, rank, "keep") for rank in range(workers)]
        self._begin([Start(shard.rank, workers, True, None, shard.own_in(self.at)) for shard in shards])
        self._cursor = self.at % workers  # the share whose turn it is

    def _begin(self, starts: list[Start]) -> None:
        self._shares = [_Share(self._lock, start, self.at) for start in starts]

    def pull(self, n: int) -> Chunk | None:
        if self._coordinator.forked:  # before the lock, which a thread of the parent may have held
            self._coordinator.check_usable()
        if self.knob.value != len(self._shares) and not self.knob.is_fixed and self._is_countable:
            self._resize(self.knob.value)
        while not self._hand:
            if not self._started:
                self._start()
            with self._coordinator.blocked(), self._filled:
                share = self._next() or self._wait()
                if share is None:
                    return None
                if (chunk := share.queue.next_chunk()) is not None:
                    self._take_rounds(chunk.structure)
                elif not self._failure_moves_others:
                    self._raise_next(share)
                else:
                    _log.warning("%s: an element failed before a batch; one worker computes the rest", self.node)
                    self._resize(1)
                    self._is_countable = False
        chunk = self._hand.give(n)
        now = time.perf_counter()
        if not self._hand or now >= self._count_due:
            with self._lock:
                self._count_delivered()
            self._count_due = now + _COUNT_SECONDS
        return chunk

    @property
    def _failure_moves_others(self) -> bool:
        """Whether a failed element moves the elements of other shares."""
        is_divided = len(self._shares) > 1 and self._is_countable and self._division.way == "elements"
        return is_divided and not self._failures_count

    def _start(self) -> None:
        """Start the engine, and a thread for each share; if that fails, the next call continues."""
        iteration, patience = self._context.iteration, engines.HEARTBEAT_SECONDS
        if self._engine is None:
            options = self.node.options_of_share(iteration.options, iteration.limits)
            options.provenance = self._context.is_traced or options.provenance
            above = self._place.inputs, self._place.epoch
            runner = ShareRunner(
                self._division, self.node.open_observer, options, self._draws, above, iteration.moved, patience
            )
            self._engine = self.node.open_engine(runner, patience)
            self._began = time.perf_counter()
        for rank in range(len(self._shares)):
            with self._lock:
                if rank not in self._workers:
                    self._coordinator.start(partial(self._run, rank), self._wake, f"distribute-{rank}")
                    self._workers[rank] = None
        self._started = True

    def _resize(self, workers: int) -> None:
        """Replace the shares by those of another number of workers; what was not delivered is computed again."""
        with self._lock:
            self._count_delivered()
            self._hand, self._uncounted = Remainder(), 0
            self._release_bytes(self._uncounted_bytes)
            former = self._shares
            self._begin_at_position(workers)
            self._started = False
            for share in former:
                share.is_over = True
                self._account.release(share.queue.counted_bytes)
                share.queue.clear()
                share.room.notify_all()

    # The consumer

    def _next(self) -> _Share | None:
        """Return the share whose element is next, once it has arrived; None if it has not, or at the end."""
        count = len(self._shares)
        for _ in range(count):
            share = self._shares[self._cursor]
            if share.queue.items:
                return share
            if self._in_order and not share.ended:
                break
            self._cursor = (self._cursor + 1) % count
        for share in [self._shares[self._cursor]] if self._in_order else self._shares:
            if isinstance(share.failure, Exception):
                self._coordinator.fail(share.failure, str(self.node))
                self._coordinator.check_usable()
            elif share.failure is not None:
                share.queue.put(share.failure)
                share.failure = None
                share.room.notify()
                share.queue.give(1)  # raises it
        return None

    def _wait(self) -> _Share | None:
        """Wait until the next element has arrived and return its share; None at the end."""
        started = self.counters.waiting_since = time.perf_counter()
        try:
            while (share := self._next()) is None and not all(share.ended for share in self._shares):
                if self._stopped:
                    self._coordinator.check_usable()
                self._awaited = self._shares[self._cursor]
                for waiting in [self._awaited] if self._in_order else self._shares:
                    waiting.room.notify()  # it may be refused memory
                self._filled.wait()
            return share
        finally:
            self._awaited = None
            self.counters.add_wait(started, time.perf_counter())

    def _raise_next(self, share: _Share) -> None:
        """Raise the exception that is the next element of a share."""
        self._turns, self._uncounted = deque([share]), 1
        self._is_countable &= self._failures_count  # otherwise the batches after it have other elements
        try:
            share.queue.give(1)
        except BaseException as error:
            if len(self._shares) > 1:  # the notes of the worker have numbers in its share
                with_location(error, self.node, self.at)
            raise
        finally:
            self._count_delivered()

    def _take_rounds(self, structure: Structure) -> None:
        """Take the elements up to the first that has not arrived or failed: at most one chunk of each share.

        Args:
            structure: that of the next element; only elements of one structure can be in one chunk.
        """
        turns, count = deque[_Share](), 1
        for number in range(len(self._shares) if self._in_order else 1):
            share = self._shares[(self._cursor + number) % len(self._shares)]
            if share.queue.items or not share.ended:
                chunk = share.queue.next_chunk()
                if chunk is None or chunk.structure != structure:
                    break
                turns.append(share)
        else:
            count = min(share.queue.waiting() for share in turns)
        counted = sum(share.queue.counted_bytes for share in turns)
        chunk = _interleaved([part for share in turns if (part := share.queue.give(count))])
        self._hand, self._turns, self._uncounted = Remainder(chunk), turns, chunk.length
        self._uncounted_bytes = counted - sum(share.queue.counted_bytes for share in turns)

    def _count_delivered(self) -> None:
        """Count the elements as delivered that were taken from the hand since the last call."""
        given = self._uncounted - len(self._hand)
        if not given:
            return
        rounds, more = divmod(given, len(self._turns))
        for number, share in enumerate(islice(self._turns, given)):
            share.delivered += rounds + (number < more)
            share.marks.forget(share.delivered)
            if share.has_room:
                share.room.notify()
        self._turns.rotate(-more)
        self._cursor = (self._turns[-1].rank + 1) % len(self._shares)
        self.at += given
        self.counters.taken += given
        nbytes = self._uncounted_bytes * given // self._uncounted
        self._uncounted -= given
        self._release_bytes(nbytes)

    def _release_bytes(self, nbytes: int) -> None:
        self._uncounted_bytes -= nbytes
        self._account.release(nbytes)
        self._call_refused()

    def _call_refused(self) -> None:
        """Wake the threads that wait for memory."""
        for share in self._shares:
            if share.is_refused:
                share.room.notify()

    # The thread of a share

    def _run(self, rank: int) -> None:
        """Request the elements of the share with this rank, and of those that replace it."""
        while granted := self._reserve(rank):
            share, count = granted
            try:
                *outcomes, progress = self._request(share, count)
                self._deliver(share, count, outcomes, progress)
                del outcomes  # an exception among them would keep the iterator alive
            except ClosedError:
                return
            except BaseException as error:  # noqa: BLE001  # raised in the consumer's thread, after the elements before
                with self._filled:
                    self._account.settle(count, 0, 0)
                    share.failure = error
                    self._filled.notify_all()

    def _reserve(self, rank: int) -> tuple[_Share, int] | None:
        """Wait for room; return the share, and how many elements to request. None if the thread must end."""
        with self._lock:
            while rank < len(self._shares):
                if self._stopped:
                    return None
                share = self._shares[rank]
                if share.has_room:
                    granted = self._account.reserve(share.ahead - share.waiting, urgent=share is self._awaited)
                    share.is_refused = not granted
                    if granted:
                        return share, granted
                    self.counters.refusals += 1
                share.room.wait()
            worker = self._workers.pop(rank)
        if worker is not None:
            with contextlib.suppress(ClosedError):
                worker.end()
        return None

    def _request(self, share: _Share, count: int) -> list[Any]:
        """Return the reply with the next elements of a share, from another worker if this one is lost."""
        assert self._engine is not None  # _start
        while True:
            try:
                if share.worker is None:
                    worker = self._workers[share.rank] = self._workers[share.rank] or self._engine.start()
                    worker.call(share.start(share.received))
                    share.worker = worker
                return share.worker.call(1 if share.singly else count)
            except WorkerLostError as loss:
                share.worker = self._workers[share.rank] = None
                self._note_loss(share, loss, 1 if share.singly else count)

    def _note_loss(self, share: _Share, loss: WorkerLostError, count: int) -> None:
        """Note that a worker was lost while ``count`` elements were requested; raise if it was lost too often."""
        now = time.monotonic()
        share.losses.append(now)
        while now - share.losses[0] > _RESTARTS_SECONDS:
            share.losses.popleft()
        what = f"{self.node}: worker {share.rank} of {share.workers} {loss} on {self._element_words(share, count)}"
        if len(share.losses) > self.node.max_restarts:
            raise WorkerDiedError(
                f"{what}; it was restarted {len(share.losses) - 1} times within ten minutes (max_restarts="
                f"{self.node.max_restarts})",
                exit_code=loss.exit_code,
            )
        share.restarts += 1
        share.singly = max(share.singly, count)
        _log.warning("%s; it is replaced", what)

    def _element_words(self, share: _Share, count: int) -> str:
        """Describe the elements that were requested from a worker."""
        own = share.first + share.received
        place = " of its files" if self._division.way == "files" else ""
        first = own if place else own * share.workers + share.rank
        return f"element {first}{place}" + (f" or the {count - 1} after it" if count > 1 else "")

    def _deliver(self, share: _Share, count: int, outcomes: list[Outcome], progress: ShareReport) -> None:
        interrupt = outcomes.pop() if outcomes and not isinstance(outcomes[-1], Chunk | Exception) else None
        made = sum(outcome.length if isinstance(outcome, Chunk) else 1 for outcome in outcomes)
        nbytes = sum(map(nbytes_of, outcomes))
        with self._filled:
            if share.is_over:
                self._account.settle(count, 0, 0)
                return
            if not progress.repeats:
                self._is_countable = False
                self._context.mark_not_replayable()
            self._account.settle(count, made, nbytes)
            self._call_refused()
            lineages = progress.lineages if len(progress.lineages) == len(outcomes) else [None] * len(outcomes)
            for outcome, lineage in zip(outcomes, lineages, strict=True):  # they differ if a result cannot be sent
                if isinstance(outcome, Chunk) and lineage is not None and not self._place.is_of_call:
                    outcome.lineage = load_lineage(lineage, outcome.length)
                share.queue.put(outcome, nbytes_of(outcome))
                share.is_counted &= self._failures_count or isinstance(outcome, Chunk)
            if isinstance(interrupt, BaseException):
                share.failure = interrupt
                share.worker = None  # the share is opened again, because the op may have used up the element, or not
            share.received += made
            share.singly = max(0, share.singly - made)
            if progress.position is not None:
                share.marks.leave(share.received, progress.position)
            share.ended = progress.ended
            share.ahead = max(share.ahead, min(2 * made, AHEAD_ELEMENTS))
            share.busy_seconds += progress.seconds
            share.memory = progress.memory
            self.counters.inputs += made
            if made:
                process = f"worker {share.rank} of {self.node.op}"
                self.counters.add_task(made, nbytes, progress.seconds, progress.cpu_seconds, 0.0, process)
            self._filled.notify_all()
        now = time.perf_counter()
        if now >= self._pulse.due:
            self._pulse.beat(now)

    def _wake(self) -> None:
        with self._filled:
            self._stopped = True
            for share in self._shares:
                share.room.notify_all()
            self._filled.notify_all()
        if self._engine is not None:
            self._engine.stop()

    # State

    def save(self) -> Position:
        if self._coordinator.forked:
            self._coordinator.check_usable()
        with self._lock:
            self._count_delivered()
            shares = tuple(share.position(share.delivered) for share in self._shares)
            own = {"way": self._division.way, "countable": self._is_countable, "cursor": self._cursor}
            return Position(self.op, self.at, shares, own=own)

    def load(self, position: Position) -> None:
        shares, self.at = [share for share in position.inputs if share is not None], position.at
        way, is_countable = position.own["way"], position.like("countable", True)
        workers, wanted = len(shares), len(self._shares)
        if not self.knob.is_fixed:
            wanted = self.knob.value = min(workers, self.knob.maximum)
        self._is_countable = is_countable and self._in_order
        is_whole = workers == 1 and not is_countable and self._division.way == "elements"
        if way == self._division.way and (workers == wanted or is_whole):
            start = partial(Start, workers=workers, is_counted=self._is_countable)
            self._begin([start(rank, source=share.inputs[0], skip=share.skipped) for rank, share in enumerate(shares)])
            self._cursor = position.count("cursor")
            if self._cursor >= workers:
                raise StateError(f"{self.node}: the state is damaged: share {self._cursor} of {workers}")
        elif "files" in {way, self._division.way} or not is_countable:
            raise StateError(
                f"{self.node}: the state is from {workers} workers, and there are {wanted} now: resume with as many "
                "workers, because the number of elements does not determine the position if each worker has its own "
                "files, or with deterministic=False"
            )
        else:
            self._begin_at_position(wanted)

    def close(self) -> None:
        if self._coordinator.forked:
            return
        self._wake()
        if self._engine is not None:
            self._engine.close()
        for share in self._shares:
            share.queue.clear()  # an exception among them would keep its frames alive
            share.failure = None
        self._hand = Remainder()
        self._account.close()

    # Figures

    @property
    def runs(self) -> str:
        return f"in {self.node.engine_words}"

    @property
    def capacity(self) -> int:
        return sum(share.ahead for share in self._shares)

    def buffered(self) -> tuple[int, int]:
        with self._lock:
            nbytes = sum(share.queue.counted_bytes for share in self._shares)
            return sum(share.waiting for share in self._shares), nbytes + self._uncounted_bytes

    def worker_figures(self) -> tuple[WorkerFigures, ...]:
        seconds = max(1e-9, time.perf_counter() - self._began)
        return tuple(
            WorkerFigures(
                share.rank,
                share.received,
                share.received / seconds,
                max(0.0, 1 - share.busy_seconds / seconds),
                share.restarts,
                "" if share.worker is None else share.worker.node,
                share.memory,
            )
            for share in self._shares
        )


def _interleaved(parts: list[Chunk]) -> Chunk:
    """Return the elements of chunks of one length and structure in turns. Their arrays are not copied."""
    first = parts[0]
    if len(parts) == 1:
        return first
    rows = list(chain.from_iterable(zip(*(part.rows() for part in parts), strict=True)))
    chunk = Chunk(first.structure, len(rows), rows=rows)
    if any(part.lineage is not None for part in parts):
        lineages = (or_unknown(part.lineage, part.length) for part in parts)
        chunk.lineage = list(chain.from_iterable(zip(*lineages, strict=True)))
    return chunk
