"""prefetch(buffer_size): a background thread that makes the next elements while the current one is used."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dataset.options import AUTOTUNE
from dataset.plan.block_cyclic_shard import BlockCyclicShard
from dataset.plan.checks import require_int
from dataset.plan.node import Node, UnaryNode, holds_user_code
from dataset.runtime.chunks.chunk import Array, Chunk, Outcome
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.metrics.background import BackgroundOperator, CpuClock, Tunable
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.resources.interrupts import Condition
from dataset.runtime.state.replay_log import ReplayLog

AUTOTUNE_BUFFER_SIZE = 2
"""What AUTOTUNE begins with, and means without tuning: enough to overlap making one batch with using another."""

BUFFER_SIZE_MAX = 128
"""What AUTOTUNE may become."""

_WORTH_SECONDS = 2e-4  # of time that can be saved per element, beside which the hand-over is cheap
_TIMES_IN_A_ROW = 3
_TIMES_TOGETHER = 16
_WINDOW = 32  # elements, between two looks at whether the thread still pays
_REST_MAX = 64  # pulls without a look at the time
_TARGET_SECONDS = 1e-3  # of work in one hand-over, beside which the hand-over, some microseconds, is cheap


@dataclass(frozen=True, eq=False)
class Prefetch(UnaryNode):
    """The same elements, up to ``buffer_size`` of them made ahead."""

    op: ClassVar[str] = "prefetch"
    seeks: ClassVar[bool] = True
    moves_only: ClassVar[bool] = True
    elastic: ClassVar[bool] = True
    stays_certain: ClassVar[bool] = True
    buffer_size: int
    patient: bool = field(default=False, kw_only=True, repr=False)
    """Set by the optimizer where it has added the op: there is a thread only while it pays, as with AUTOTUNE anyway."""

    def __post_init__(self) -> None:
        size = require_int("prefetch", "buffer_size", self.buffer_size, minimum=0, allow=(AUTOTUNE,))
        self._set("buffer_size", size)

    @property
    def separates(self) -> bool:
        return True

    def deal_below(self, deal: BlockCyclicShard) -> BlockCyclicShard:
        return deal

    def picked(self, positions: Array) -> Node | None:
        return self.source.picked(positions)

    def described(self) -> str:
        return f"prefetch({'AUTOTUNE' if self.buffer_size == AUTOTUNE else self.buffer_size})"

    def detail(self) -> str:
        return "once it pays" if self.patient else ""

    def lower(self, build: ExecutionContext) -> Operator:
        source = build(self.source)
        if not self.buffer_size or not build.background:
            return source
        size = build.buffer_size(self.buffer_size, AUTOTUNE_BUFFER_SIZE, BUFFER_SIZE_MAX)
        kind = PatientPrefetchOperator if self.patient or self.buffer_size == AUTOTUNE else PrefetchOperator
        return kind(source, self, size, build)


class PrefetchOperator(UnaryOperator, BackgroundOperator):
    """A bounded queue of chunks and exceptions between a thread that pulls and the consumer.

    The thread starts at the first pull. It never makes more than its knob says may be held, those it is working on
    included, and fewer where memory is short. It asks for one at a time where user code makes them, which may block for
    long with others ready; else for as many as take about a millisecond to make.

    A state is a place of the input, a little before what has been given, and how many elements lie between (see
    runtime/state/replay_log.py). Only where the input cannot repeat its order does it hold what is in the queue, by
    value, and waits for the element in the making. What came out of such a state is given before the thread starts.

    One lock guards all fields. ``_filled`` wakes the consumer: there is something to take, or there never will be.
    ``_freed`` wakes the thread: there is room, or it must stop. Nobody wakes it when memory gets free elsewhere: a
    thread that was refused holds something, or it would not have been, and is woken when that is taken.
    """

    relays: ClassVar[bool] = True

    def __init__(self, source: Operator, node: Prefetch, size: Tunable, build: ExecutionContext) -> None:
        super().__init__(source)
        self.node = node
        self.knob = size
        self.counters = build.counters
        self.coordinator = build.coordinator
        self._build = build
        self._trail = ReplayLog(source)
        self._given = 0  # elements, counted as the trail counts; an exception is one
        self._account = build.ledger.account()
        self._pulse = build.pulse
        self._takes_many = not holds_user_code(node.source)
        lock = threading.RLock()  # reentrant: the garbage collector may call _wake in a thread that holds it
        self._filled = Condition(lock)
        self._freed = Condition(lock)
        self._items = Pending()
        self._held = 0  # elements in _items and in the making; an exception counts as one
        self._reserved = 0  # of these, those in the making: the thread is inside source.pull
        self._paused = False
        self._stopped = False
        self._ended = False
        self._leaving = False  # the thread shall end, and what it has made is given
        self._thread: threading.Thread | None = None
        self._has_left = False  # it does nothing more here
        self._reads_ahead = False  # what is given next has been, or will be, made by the thread

    def pull(self, n: int) -> Chunk | None:
        if self._thread is None:
            if self._items:
                return self._give_saved(n)
            self._start()
        elif self.coordinator.forked:  # asked before the lock, which a thread of the parent may have held
            self.coordinator.check_usable()
        with self.coordinator.blocked(), self._filled:  # who waits here may be a worker that the thread needs
            if not self._items:
                self._wait()
            return self._take(n) if self._items else None

    def _give_saved(self, n: int) -> Chunk | None:
        """What a saved state held, or a thread has left, while there is none."""
        with self._filled:
            return self._take(n)

    def _start(self) -> None:
        if not self._trail.is_behind:
            self._trail = ReplayLog(self.source)  # nobody has counted what was pulled without the thread
            if self._build.repeats_input:
                self._trail.step()  # here, so that nobody asks for a place while there is none
        self._given = self._trail.given
        self._has_left = False
        self._thread = self.coordinator.start(self._run, self._wake, "prefetch")
        self._reads_ahead = True

    def _wait(self) -> None:
        """Until there is something to take, or never will be."""
        started = self.counters.waiting_since = time.perf_counter()
        try:
            while not (self._items or self._ended):
                if self._stopped:
                    self.coordinator.check_usable()
                self._filled.wait()
        finally:
            self.counters.add_wait(started, time.perf_counter())

    def seek(self, count: int) -> None:
        self.source.seek(count)

    def pass_over(self, n: int) -> int:
        if self._reads_ahead or self._items:
            return super().pass_over(n)
        self._trail.go_on()
        return self.source.pass_over(n)

    def _take(self, n: int) -> Chunk | None:
        taken = 1  # of an exception, which stands in the place of an element
        counted_bytes = self._items.counted_bytes
        try:
            chunk = self._items.give(n)
        except Exception:  # an interrupt stands in the place of none
            self._given += 1
            raise
        else:
            taken = chunk.length if chunk else 0
            self._given += taken
            return chunk
        finally:
            self._held -= taken
            self.counters.taken += taken
            self.counters.least_ready = min(self.counters.least_ready, self._held - self._reserved)
            if counted_bytes != self._items.counted_bytes:
                self._account.release(counted_bytes - self._items.counted_bytes)
            self._freed.notify()

    def _run(self) -> None:
        try:
            self._read_ahead()
        except BaseException as error:  # noqa: BLE001  # raised by the iterator
            if not self._stopped:
                self.coordinator.fail(error, self.node.located())
        finally:
            with self._filled:
                self._has_left = True
                self._filled.notify_all()

    def _read_ahead(self) -> None:
        count, clock = 1, CpuClock()
        while count := self._reserve(count):
            item: Outcome | None = self._prepare()
            if self._stopped:  # perhaps before it was at its place
                return
            clock.begin()
            started = time.perf_counter()
            if item is None:
                item = self._make(count)
            ended_at = time.perf_counter()
            ended = self._deliver(item, ended_at - started, clock)
            del item  # see _deliver
            if ended:
                return
            if self._takes_many:
                count = _next_count(count, ended_at - started)
            if ended_at >= self._pulse.due:
                self._pulse.beat(ended_at)

    def _reserve(self, wanted: int) -> int:
        """Wait for room, and take it: how many elements to make, 0 to stop."""
        with self._freed:
            count = self._room(wanted) or self._rest(wanted)
            self._reserved = count
            self._held += count
            return count

    def _rest(self, wanted: int) -> int:
        """Wait for room, and take it; 0 to stop."""
        started = time.perf_counter()
        count = 0
        while not (self._stopped or self._leaving or count):
            self._freed.wait()
            count = self._room(wanted)
        self.counters.rest_seconds += time.perf_counter() - started
        return count

    def _room(self, wanted: int) -> int:
        """For how many elements there is room, the memory of which is then reserved."""
        if self._paused or self._stopped or self._leaving or self._held >= self.knob.value:
            return 0
        count = self._account.reserve(min(wanted, self.knob.value - self._held))
        self.counters.refusals += not count
        return count

    def _prepare(self) -> BaseException | None:
        """What a state takes, before each reading: an interrupt meanwhile, to be raised in the consumer's thread."""
        try:
            self._trail.go_on(lambda: self._stopped)
            if self._build.repeats_input:
                self._trail.forget(self._given)
                self._trail.step()
        except Exception:
            raise  # it is of no element: a fault
        except BaseException as error:  # noqa: BLE001  # raised by pull
            return error
        return None

    def _make(self, count: int) -> Outcome | None:
        try:
            return self._trail.pull(count)
        except BaseException as error:
            if concerns_iteration(error):
                raise
            return error  # raised by pull, in the consumer's thread

    def _deliver(self, item: Outcome | None, seconds: float, clock: CpuClock) -> bool:
        """Put what was made into the queue; True if it was the end.

        The thread keeps no reference to it: an exception refers to the frames of the consumer that it is raised in, and
        through them to the iterator, which would then never be dropped.
        """
        made, nbytes = (item.length, item.nbytes) if isinstance(item, Chunk) else (0, 0)
        cpu_seconds = clock.end(seconds)
        with self._filled:
            self._held -= self._reserved
            self._account.settle(self._reserved, made, nbytes)
            self._reserved = 0
            if item is None:
                self._ended = True
            else:
                count = made or 1
                self._held += count
                self._items.put(item, nbytes)
                self.counters.inputs += count
                self.counters.add_task(count, nbytes, seconds, cpu_seconds, 0.0)
            self._filled.notify_all()
            return self._ended

    def _wake(self) -> None:
        with self._filled:
            self._stopped = True
            self._freed.notify_all()
            self._filled.notify_all()

    @property
    def capacity(self) -> int:
        """What its knob says, the one included that the thread works on."""
        return self.knob.value

    def buffered(self) -> tuple[int, int]:
        """How many elements are held, that in the making included, and the bytes of the others."""
        with self._filled:
            return self._held, self._items.counted_bytes

    def state_dict(self) -> State:
        if self.coordinator.forked:
            self.coordinator.check_usable()
        if not self._reads_ahead:
            behind = self._trail.is_behind
            place = self._trail.place(self._trail.given) if behind else self._present_place()
            return self._state(place, self._items.save())
        if self._ended and not self._items:
            return self._state(self._present_place(), [])
        if self._build.repeats_input or self._trail.is_behind:  # then nothing new has been read, whatever the input is
            return self._state(self._trail.place(self._given), [])
        return self._state_by_value()

    def _state_by_value(self) -> State:
        """Waits for the element in the making."""
        with self.coordinator.blocked(), self._filled:
            self._paused = True
            try:
                while self._reserved:
                    if self._stopped:
                        self.coordinator.check_usable()
                    self._filled.wait()
                return self._state(self._present_place(), self._items.save())
            finally:
                self._paused = False
                self._freed.notify()

    def _present_place(self) -> State:
        return {"source": self.source.state_dict(), "behind": 0}

    def _state(self, place: State, held: list[Any]) -> State:
        """``held`` are the elements before those at the place."""
        return {"op": self.node.op, **place, "held": held}

    def load_state_dict(self, state: State) -> None:
        self._items.load(state["held"], lambda: self.node.element_spec)
        self._trail.load(state)
        self._held = len(self._items)
        self._account.hold(self._items.counted_bytes)

    def state_after(self, state: State, count: int) -> State | None:
        source = None if state["held"] else self.source.state_after(state["source"], state["behind"] + count)
        return None if source is None else self._state({"source": source, "behind": 0}, [])

    def close(self) -> None:
        if self.coordinator.forked:
            return
        self._wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            with self.coordinator.blocked():
                thread.join()
        self._items.clear()  # an exception among them would keep alive what it came through
        self._account.close()
        super().close()


class PatientPrefetchOperator(PrefetchOperator):
    """Has a thread only while making elements and using them both take so long that doing them at once pays.

    Without it, elements are made in the consumer's thread. It looks at the times ever more rarely while both are short.
    They are long if they were several times in a row, or all together, as where a block of a file is read now and then:
    one time that was longer than all others says nothing there. The thread ends when the consumer turns out to do
    little but wait for it, as where the time that using took was that of waiting for the interpreter's lock.
    """

    def __init__(self, source: Operator, node: Prefetch, size: Tunable, build: ExecutionContext) -> None:
        super().__init__(source, node, size, build)
        self._unlooked = 0  # pulls until it looks again
        self._next_rest = 1
        self._made_seconds = 0.0  # by the pull before
        self._left_at: float | None = None  # when the consumer went away with it
        self._in_a_row = 0  # of times that were long
        self._patience = _TIMES_IN_A_ROW  # until the thread starts; doubled by each that has not paid
        self._times: list[tuple[float, float]] = []  # what making and using took
        self._pays = False
        self._window = 0  # elements that were given since the two below, while there is a thread
        self._window_began = 0.0
        self._waited_before = 0.0

    def pull(self, n: int) -> Chunk | None:
        if not self._unlooked:
            if self._reads_ahead:
                return self._pull_ahead(n)
            if self._items:
                return self._give_saved(n)
            self._look_without_thread()
            if self._pays:
                self._begin_window()
                return super().pull(n)
            self._trail.go_on()
        if self._unlooked:
            self._unlooked -= 1
            chunk = self.source.pull(n)
        else:
            started = time.perf_counter()
            chunk = self.source.pull(n)
            self._left_at = time.perf_counter()
            self._made_seconds = self._left_at - started
        if chunk is not None:
            self.counters.taken += chunk.length
        return chunk

    def _pull_ahead(self, n: int) -> Chunk | None:
        if self._thread is not None:
            if not self._leaving:
                self._look_at_thread()
            if not self._leaving:
                return super().pull(n)
            self._end_thread()
        if self._items:
            return self._give_saved(n)
        if self._ended:
            return None
        self._reads_ahead = False
        return self.pull(n)

    @property
    def inline(self) -> bool:
        """Whether there is no thread."""
        return self._thread is None

    @property
    def learned(self) -> bool:
        """Whether the thread pays."""
        return self._pays

    def begin_with(self, learned: bool) -> None:
        self._pays = bool(learned)

    def _look_without_thread(self) -> None:
        if self._left_at is None:
            return
        made, used = self._made_seconds, time.perf_counter() - self._left_at
        self._left_at = None
        self._in_a_row = self._in_a_row + 1 if min(made, used) >= _WORTH_SECONDS else 0
        self._times.append((made, used))
        self._pays = self._in_a_row >= self._patience or self._pays_together()
        if not self._pays and max(made, used) < _WORTH_SECONDS:
            self._unlooked = self._next_rest
            self._next_rest = min(2 * self._next_rest, _REST_MAX)

    def _pays_together(self) -> bool:
        if len(self._times) < _TIMES_TOGETHER * self._patience // _TIMES_IN_A_ROW:
            return False
        count = len(self._times)
        made, used = (sum(seconds) - max(seconds) for seconds in zip(*self._times, strict=True))
        self._times.clear()
        return bool(min(made, used) >= count * _WORTH_SECONDS)

    def _begin_window(self) -> None:
        self._window, self._window_began = 0, time.perf_counter()
        self._waited_before = self.counters.wait_seconds

    def _look_at_thread(self) -> None:
        self._window += 1
        if self._window <= _WINDOW:
            return
        waited = self.counters.wait_seconds - self._waited_before
        used = time.perf_counter() - self._window_began - waited
        if used >= _WINDOW * _WORTH_SECONDS / 4:
            self._begin_window()
            return
        if self.coordinator.forked:
            self.coordinator.check_usable()
        self._pays = False
        self._patience *= 2
        self._in_a_row, self._next_rest, self._left_at = 0, 1, None
        self._times.clear()
        with self._freed:
            self._leaving = True
            self._freed.notify_all()

    def _end_thread(self) -> None:
        """Waits for the element in the making, which the consumer is about to wait for."""
        if self.coordinator.forked:
            self.coordinator.check_usable()
        assert self._thread is not None
        with self.coordinator.blocked(), self._filled:
            while not self._has_left:
                self._filled.wait()
        self._thread.join()
        self.coordinator.check_usable()  # it has not ended by a fault
        self._thread = None
        self._leaving = False


def _next_count(count: int, seconds: float) -> int:
    """How many elements to make at once next time, at most twice as many as now."""
    if seconds < _TARGET_SECONDS / 2:
        return count * 2
    return max(1, count // 2) if seconds > _TARGET_SECONDS * 2 else count
