"""Node and operators of prefetch(buffer_size): a background thread computes the next elements."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.amounts import CACHE_BYTES
from dataset.errors import ClosedError
from dataset.options import AUTOTUNE
from dataset.plan.checks import require_int
from dataset.plan.node import Node, UnaryNode, may_wait
from dataset.ramp import GAIN
from dataset.runtime.choice import CLEAR, INLINE, SEGMENT_SECONDS, Action, Choice, Learned, Segment, Watch
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import HoldingOperator, Operator, UnaryOperator
from dataset.runtime.metrics.background import BackgroundOperator, CpuClock, Tunable
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.parallel.worker_loop import WorkerLoop
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.state.replay_log import ReplayLog
from dataset.world import time
from dataset.world.interrupts import Condition

AUTOTUNE_BUFFER_SIZE = 2
"""The initial size for AUTOTUNE, and the size without tuning: enough to overlap producing and consuming batches."""

THREAD = "thread"

BUFFER_SIZE_MAX = 128
"""The maximum size for AUTOTUNE."""

_BURSTS = 4  # in a segment: for exponential times, the rate was 0.88 of the best one with 2, 0.99 with 4 and with 8
_REST_MAX = 16  # maximum segments without measuring time, relative to one with it
_TARGET_SECONDS = 1e-3  # work per handover, or at once without the thread; the handover itself takes a few microseconds


@dataclass(frozen=True, eq=False)
class Prefetch(
    UnaryNode,
    aligned=True,
    seekable=True,
    only_reorders=True,
    exact=True,
    separable=True,
    elastic=True,
    prefetches=True,
):
    """Node that passes on its input and computes up to ``buffer_size`` elements ahead."""

    op: ClassVar[str] = "prefetch"
    buffer_size: int
    adaptive: bool = field(default=False, kw_only=True, repr=False)
    """Set if the optimizer inserted the op: the thread only runs while it pays off, as with AUTOTUNE."""

    def __post_init__(self) -> None:
        size = require_int("prefetch", "buffer_size", self.buffer_size, minimum=0, allow=(AUTOTUNE,))
        self._set("buffer_size", size)

    def simplified(self) -> Node | None:
        return None if self.buffer_size else self.source

    def label(self) -> str:
        return f"prefetch({self.buffer_size})"

    def parameters(self) -> dict[str, Any]:
        """Return what must match a saved state. The bound of AUTOTUNE may change."""
        return {"buffer_size": int(self.buffer_size)}

    def annotation(self) -> str:
        return "once it pays" if self.adaptive else ""

    def lower(self, context: ExecutionContext) -> Operator:
        source = context(self.source)
        if not self.buffer_size or not context.iteration.background:
            return source
        size = context.tunable("buffer_size", self.buffer_size, AUTOTUNE_BUFFER_SIZE, BUFFER_SIZE_MAX)
        kind = PatientPrefetchOperator if self.adaptive or self.buffer_size == AUTOTUNE else PrefetchOperator
        return kind(source, self, size, context)


class PrefetchOperator(WorkerLoop, UnaryOperator, BackgroundOperator):
    """Operator with a bounded queue of chunks and exceptions between a worker that pulls and the consumer.

    The worker starts at the first pull, and rests while there is no room: coming back costs it more than a wait. It
    never holds more elements than the knob allows, including those in progress, and fewer if memory is short. If user
    code may wait for something, it pulls one at a time, so that finished elements do not wait, too. Otherwise, it pulls
    as many as take about a millisecond.

    A state is a position of the input slightly before the last returned element, and the number of elements between
    them (see runtime/state/replay_log.py). Only if the input cannot repeat its order does a state hold the queue by
    value, after waiting for the element in progress. Elements of such a state are returned before the worker starts.

    Memory released elsewhere wakes no worker: a refused worker has always made items, and wakes when one is taken.
    """

    relays: ClassVar[bool] = True

    def __init__(self, source: Operator, node: Prefetch, size: Tunable, context: ExecutionContext) -> None:
        UnaryOperator.__init__(self, source)
        WorkerLoop.__init__(self, context, node, size, counted=False)
        self.node = node
        self._context = context
        self._log = ReplayLog(source, self.op)
        self._is_logged = False  # whether the log counts the elements that are read
        self._given = 0  # elements, as the log counts them; an exception counts as one
        self._takes_many = not may_wait(node.source)
        self._items = OutcomeQueue()
        self._in_progress = 0  # elements that the worker pulls now
        self._at_once = 1  # how many it pulls next
        self._ended = False
        self._reads_ahead = True  # whether a worker computes the elements
        self._freed = Condition(self.lock)  # wakes the worker: there is room, or it must stop
        self._rests = False  # whether the worker waits for room
        self.coordinator.register(self, self.wake)

    def pull(self, n: int) -> Chunk | None:
        if self.coordinator.forked:  # before the lock, which a thread of the parent may have held
            self.coordinator.check_usable()
        if not self._is_logged:
            if self._items.items:  # of a loaded state
                return self._give(n)
            self._begin()
        with self.coordinator.blocked(), self.lock:  # the waiting thread may be a worker that this one needs
            if not self._items.items:
                self._wait()
            return self._take(n) if self._items.items else None

    def _give(self, n: int) -> Chunk | None:
        """Return elements that wait."""
        with self.lock:
            return self._take(n)

    def _begin(self) -> None:
        """Begin to count elements, and store a mark before a worker reads any."""
        if not self._log.is_behind:
            self._log = ReplayLog(self.source, self.op)
            if self._context.input_is_replayable:
                self._log.step()
        self._given = self._log.given
        self._is_logged = True

    def _wait(self) -> None:
        """Wait until an item is available or will never be."""
        started = self.counters.waiting_since = time.perf_counter()
        try:
            while not (self._items or self._ended):
                if self._stopped:
                    self.coordinator.check_usable()
                    raise ClosedError("this part of the pipeline has been closed")
                self.call_workers(needed=True)
                self._news.wait()
        finally:
            self.counters.add_wait(started, time.perf_counter())

    def skip(self, n: int) -> int:
        if self._items or self._is_busy:
            return super().skip(n)
        self._log.go_on()
        self._is_logged = False
        return self.source.skip(n)

    def _take(self, n: int) -> Chunk | None:
        taken = 1  # an exception counts as one element
        counted_bytes = self._items.counted_bytes
        try:
            chunk = self._items.give(n)
        except Exception:  # an interrupt does not count as an element
            self._given += 1
            raise
        else:
            taken = chunk.length if chunk else 0
            self._given += taken
            return chunk
        finally:
            self.counters.taken += taken
            self.counters.least_ready = min(self.counters.least_ready, len(self._items))
            if counted_bytes != self._items.counted_bytes:
                self._account.release(counted_bytes - self._items.counted_bytes)
            if self._reads_ahead:
                with contextlib.suppress(RuntimeError, MemoryError):  # a consumer that finds no elements reports it
                    self.call_workers()

    def call_workers(self, *, needed: bool = False) -> None:
        with self.lock:
            if self._rests:
                self._rests = False  # it will look for room, and may find some
                self._freed.notify()
            else:
                super().call_workers(needed=needed)

    @property
    def _is_busy(self) -> bool:
        return bool(self._visits) and not self._rests

    def wake(self) -> None:
        with self.lock:
            super().wake()
            self._freed.notify_all()

    def _missing_workers(self) -> int:
        return int(not self._visits and self._room() > 0)

    def _room(self) -> int:
        """Return how many more elements may be held; 0 if no worker may compute any now."""
        if self._paused or self._stopped or self._ended or not (self._is_logged and self._reads_ahead):
            return 0
        return max(0, self.knob.value - len(self._items) - self._in_progress)

    def _do_tasks(self, visit: object) -> None:
        clock, ended_at = CpuClock(), time.perf_counter()
        while count := self._reserve(visit):
            item: Outcome | None = self._prepare(ended_at)
            if self._stopped:  # perhaps before the log reached its position
                continue
            clock.begin()
            started = time.perf_counter()
            if item is None:
                item = self._make(count)
            ended_at = time.perf_counter()
            self._deliver(item, ended_at - started, clock, ended_at)
            del item  # see _deliver
            if self._takes_many:
                self._at_once = _next_count(count, ended_at - started)
            if ended_at >= self._pulse.due:
                self._pulse.beat(ended_at)

    def _reserve(self, visit: object) -> int:
        """Wait for room and reserve it. Return how many elements to compute; after the end or a stop, leave: 0."""
        with self.lock:
            while not (count := self._granted()):
                if self._ended or self._stopped:
                    self._leave(visit)
                    return 0
                self._rest()
            self._in_progress = count
            return count

    def _granted(self) -> int:
        """Reserve memory for the next elements. Return how many there may be."""
        room = self._room()
        count = self._account.reserve(min(self._at_once, room)) if room else 0
        self.counters.refusals += room > count == 0
        return count

    def _rest(self) -> None:
        """Wait until there may be room. The lock is held."""
        started, self._rests = time.perf_counter(), True
        self._stillness.notify_all()
        try:
            self._freed.wait()
        finally:
            self._rests = False
        self.counters.rest_seconds += time.perf_counter() - started

    def _leave(self, visit: object) -> None:
        super()._leave(visit)
        self._news.notify_all()

    def _prepare(self, now: float) -> BaseException | None:
        """Update the replay log before each read. Return an interrupt, to be raised in the consumer's thread.

        Args:
            now: a recent time on the clock of ``time.perf_counter``.
        """
        try:
            self._log.go_on(lambda: self._stopped)
            if self._context.input_is_replayable:
                self._log.forget(self._given)
                self._log.step(now)
        except Exception:
            raise  # not an element's error, but a fault
        except BaseException as error:  # noqa: BLE001  # raised by pull
            return error
        return None

    def _make(self, count: int) -> Outcome | None:
        try:
            return self._log.pull(count)
        except BaseException as error:
            if concerns_iteration(error):
                raise
            return error  # raised by pull, in the consumer's thread

    def _deliver(self, item: Outcome | None, seconds: float, clock: CpuClock, ended_at: float | None = None) -> None:
        """Put an item into the queue; None is the end.

        The worker keeps no reference to it: an exception refers to the consumer's frames, and through them to the
        iterator, which could then never be garbage-collected.
        """
        made, nbytes = (item.length, item.nbytes) if isinstance(item, Chunk) else (0, 0)
        cpu_seconds = clock.end(seconds)
        with self.lock:
            self._account.settle(self._in_progress, made, nbytes)
            self._in_progress = 0
            if item is None:
                self._ended = True
            else:
                count = made or 1
                self._items.put(item, nbytes)
                self.counters.inputs += count
                self.counters.add_task(count, nbytes, seconds, cpu_seconds, 0.0, ended=ended_at)
            self._news.notify_all()

    @property
    def capacity(self) -> int:
        """The size set by the knob, including the element in progress."""
        return self.knob.value

    def buffered(self) -> tuple[int, int]:
        """Return the number of held elements, including those in progress, and the bytes of finished elements."""
        with self.lock:
            return len(self._items) + self._in_progress, self._items.counted_bytes

    def save(self) -> Position:
        if self.coordinator.forked:
            self.coordinator.check_usable()
        holds_nothing = not self._items and (self._ended or not self._is_busy)
        if not self._is_logged or holds_nothing:
            return self._with_items(self._log.present())
        if self._context.input_is_replayable or self._log.is_behind:  # the latter: nothing new was read
            return self._log.place(self._given)
        with self.still():  # the element in progress is finished first
            return self._with_items(self._log.present())

    def _with_items(self, position: Position) -> Position:
        """Return the position with the elements before it."""
        return position.with_held(items=self._items.save())

    def load(self, position: Position) -> None:
        self._items.load(position.held.get("items", ()), lambda: self.node.element_spec)
        self._log.load(position)
        self._account.hold(self._items.counted_bytes)

    def advance(self, position: Position, count: int) -> Position | None:
        return self.advance_log(position, count)

    def close(self) -> None:
        if self.coordinator.forked:
            return
        self.end_workers()
        self._items.clear()  # an exception among them would keep its frames alive
        super().close()


class PatientPrefetchOperator(PrefetchOperator, HoldingOperator):
    """Prefetch operator whose thread only runs while overlapping producer and consumer pays off.

    Without the thread, elements are computed in the consumer's thread, and as many at once as the thread would. The
    operator measures the times of both sides. A thread can hide the shorter one. If that is a noticeable part of both,
    working with the thread and without it are compared (runtime/choice.py), and again later, less and less often.

    **Segments.** An input may read a block of a file now and then, and return the elements in between at once. So a
    segment ends only when no pull has taken more than a quarter of its work: it covers several bursts, and more pulls
    the more their times vary. In a comparison, each segment has at least as many elements as the one that led to it. A
    thread that was clearly faster is kept until the time per element changes.

    **Buffer.** When the thread is tried, its buffer holds at least what the consumer takes while the longest pull runs.
    The ledger bounds its bytes (runtime/resources/ledger.py), and the tuner changes it later.
    """

    def __init__(self, source: Operator, node: Prefetch, size: Tunable, context: ExecutionContext) -> None:
        super().__init__(source, node, size, context)
        self._reads_ahead = False
        self._holder = source if isinstance(source, HoldingOperator) else None
        self._computes_many = self._takes_many and not context.is_traced and self._holder is None
        self._count = 1  # how many elements to compute at once without the thread
        self._element_bytes = 1  # of the elements that were measured last
        self._unlooked = 0  # elements until the next look at the times
        self._next_rest = 1
        self.choice = Choice((INLINE, THREAD))
        self._watch = Watch()
        self._actions = deque[Any](maxlen=64)
        self._segment: Segment | None = None  # the clocks at its beginning
        self._least = 1  # elements in a segment
        self._made_seconds = self._longest_seconds = 0.0  # of the work in the segment: all pulls, and the longest one

    @property
    def held(self) -> int:
        """The number of elements that wait here; or that the input holds, unless the next pull is measured."""
        if self._holder is not None:
            return self._holder.held if self._unlooked else 0
        waits_here = self._is_logged and not self._reads_ahead and self._context.input_is_replayable
        return self._items.waiting() if waits_here else 0

    def save_before(self, count: int) -> Position:
        if self._holder is None:
            return self._log.place(self._given - count)
        return Position(self.op, inputs=(self._holder.save_before(count),))

    def pull(self, n: int) -> Chunk | None:
        if self._reads_ahead or self._is_busy:
            if self._reads_ahead and self._look() and self.choice.way == THREAD:
                return super().pull(n)
            self._end_worker()  # or continue to, after an interrupt
        if self._items.items:
            return self._give(n)
        return None if self._ended else self._pull_inline(n)

    def _pull_inline(self, n: int) -> Chunk | None:
        """Compute elements in the consumer's thread, or begin to work with a thread."""
        started = None
        if not self._unlooked:
            started = self._look()
            if self.choice.way == THREAD:
                self._reads_ahead, self._is_logged = True, False
                return super().pull(n)
            if self._log.is_behind:
                self._log.go_on()
                started = time.perf_counter()
        if self._count > n and self._context.input_is_replayable:
            return self._give(n) if self._compute_many(started) else None
        self._is_logged = False
        chunk = self.source.pull(n)
        if chunk is not None:
            if started is not None:
                self._measure(chunk, started)
            self._unlooked = max(0, self._unlooked - chunk.length)
            self.counters.taken += chunk.length
        return chunk

    def _compute_many(self, started: float | None) -> bool:
        """Compute several elements, with the log, so that a state need not hold them; return False at the end."""
        if not self._is_logged:
            self._log = ReplayLog(self.source, self.op)
            self._given, self._is_logged = 0, True
        self._log.forget(self._given)
        if self._log.step(started) or started is None:
            started = time.perf_counter()
        made = nbytes = 0
        count = self._account.reserve(self._count)
        try:
            chunk = self._log.pull(max(1, count))
            if chunk is not None:
                self._measure(chunk, started)
                made, nbytes = chunk.length, chunk.length * self._element_bytes
                self._unlooked = max(0, self._unlooked - made)
        except Exception:
            self._given += 1
            raise
        finally:
            self._account.settle(count, made, nbytes)
        if chunk is None:
            return False
        self._items.put(chunk, nbytes)
        return True

    def _measure(self, chunk: Chunk, started: float) -> None:
        """Note how long it took to compute a chunk, and determine the size of the next one."""
        seconds = time.perf_counter() - started
        self._note(seconds)
        if not self._computes_many:
            return
        count = min(_next_count(chunk.length, seconds), self.knob.maximum)
        if count > self._count:  # bytes are not measured each time: texts are measured one by one
            self._element_bytes = max(1, chunk.nbytes // chunk.length)
        self._count = max(1, min(count, CACHE_BYTES // self._element_bytes))

    def _deliver(self, item: Outcome | None, seconds: float, clock: CpuClock, ended_at: float | None = None) -> None:
        with self.lock:
            self._note(seconds)
        super()._deliver(item, seconds, clock, ended_at)

    def _note(self, seconds: float) -> None:
        self._made_seconds += seconds
        self._longest_seconds = max(self._longest_seconds, seconds)

    def _end_worker(self) -> None:
        """End the worker after its element in progress, which the consumer needs next anyway."""
        if self.coordinator.forked:
            self.coordinator.check_usable()
        self._reads_ahead, self._next_rest = False, 1
        self._wait_for_stillness()
        self.coordinator.check_usable()  # raises if the worker ended with a fault

    @property
    def inline(self) -> bool:
        """Whether elements are computed without a thread."""
        return not self._reads_ahead

    @property
    def capacity(self) -> int:
        """The size set by the knob, or the number of elements that were computed at once without the thread."""
        return max(self.knob.value, len(self._items))

    @property
    def is_settled(self) -> bool:
        return not self.is_comparing

    @property
    def is_comparing(self) -> bool:
        return self.choice.is_trying

    @property
    def actions(self) -> deque[Any]:
        return self._actions

    @property
    def learned(self) -> Learned | None:
        """Whether the thread pays off."""
        choice, now = self.choice, time.perf_counter()
        rest, debt = choice.rest(now), choice.debt(now)
        return Learned(choice.accepted, self.knob.value, patience=choice.patience, rest=rest, debt=debt)

    def warm_start(self, learned: Learned) -> None:
        if learned.way in self.choice.ways:
            self.choice.accept(learned.way)
            now = time.perf_counter()
            self.choice.resume(learned.patience, now + learned.rest, now + learned.debt)

    def _look(self) -> float:
        """End the segment if it is long enough. Return the time on the clock of ``time.perf_counter``."""
        now, choice, begun = time.perf_counter(), self.choice, self._segment
        if begun is None:  # the first pull does not count
            self._begin_segment(now)
            return now
        count, made, longest = self.counters.taken - begun.elements, self._made_seconds, self._longest_seconds
        is_long = now - begun.seconds >= SEGMENT_SECONDS and count >= self._least
        if not is_long or _BURSTS * longest > made:
            return now
        segment = Segment(count, now - begun.seconds, time.process_time() - begun.cpu_seconds)
        self._begin_segment(now)
        way = choice.way
        if choice.is_trying:
            choice.report(segment, now)
            if choice.verdict is not None:
                self._actions.append(choice.verdict.action)
                self._watch, self._least = Watch(), 1
        else:
            self._explore(segment, made, longest, now)
        if choice.way != way:
            self._segment = None
        return now

    def _explore(self, segment: Segment, made: float, longest: float, now: float) -> None:
        """Begin a comparison if it is time to, or measure nothing for a while if a thread could hide little."""
        choice, used = self.choice, segment.seconds - made
        if self._watch.has_changed(segment.each):
            self._watch, choice.verdict = Watch(), None
            choice.resume(0, now + choice.rest(now) / 2**choice.patience, now + choice.debt(now))
        verdict = choice.verdict
        if choice.way == INLINE and min(made, used) * GAIN < (GAIN - 1) * segment.seconds:
            self._segment, self._unlooked = None, self._next_rest * segment.elements
            self._next_rest = min(2 * self._next_rest, _REST_MAX)
        elif choice.way == THREAD and verdict is not None and verdict.ratio * CLEAR < 1:
            return
        elif choice.is_due(now) and self.may_compare():
            if choice.way == INLINE:
                self._make_room(math.ceil(longest * segment.elements / max(made, used)) + 1, now)
            self._least = segment.elements
            choice.challenge(THREAD if choice.way == INLINE else INLINE, now, segment)

    def _make_room(self, size: int, now: float) -> None:
        """Let the buffer hold ``size`` elements, if it may."""
        knob, before = self.knob, self.knob.value
        knob.value = max(before, min(size, knob.maximum))
        if knob.value > before:
            reason = "the consumer takes this many elements while the longest one is computed"
            self._actions.append(Action(now, "raise", before, knob.value, reason))

    def _begin_segment(self, now: float) -> None:
        with self.lock:
            self._segment = Segment(self.counters.taken, now, time.process_time())
            self._made_seconds = self._longest_seconds = 0.0


def _next_count(count: int, seconds: float) -> int:
    """Return how many elements to pull at once next time, at most twice the current count."""
    if seconds < _TARGET_SECONDS / 2:
        return count * 2
    return max(1, count // 2) if seconds > _TARGET_SECONDS * 2 else count
