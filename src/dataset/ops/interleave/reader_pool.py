"""Reading from many inner datasets ahead, in worker threads: each into a buffer of its own, a bounded number at once.

``ReaderPool`` knows nothing of order. It opens the next inputs, one after the other, and reads where there is room:
first from the datasets of the cycle, the one that the consumer waits for before all others, then the first elements of
those that were opened ahead. The order in which the elements are taken is parallel_interleave.py.

A worker reads a run of elements, hands it over, and goes on while there is room and nobody else waits in line. Runs are
so long that all workers together hand over about once in a millisecond.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from dataset.errors import ClosedError
from dataset.ops.interleave.subdatasets import Inputs, Subdataset, Subdatasets
from dataset.plan.node import holds_user_code
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import State
from dataset.runtime.metrics.background import CpuClock, Tunable
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.resources.interrupts import Condition
from dataset.runtime.resources.ledger import Account
from dataset.runtime.state.saved_chunks import save_error

TARGET_SECONDS = 1e-3
"""From one hand-over to the next, of all workers together: each wakes up a thread, and all take turns in Python."""

AHEAD_ELEMENTS_MIN = 32
AHEAD_ELEMENTS_MAX = 2048
AHEAD_BYTES = 1 << 20  # unless one element is larger

_GROWTH = 8  # of the number that is read at once, from one time to the next
_QUICK_RUN = 64  # at least as many where no user code runs: files are read in blocks
_SAMPLE = 8  # elements whose size is looked at, of each run


class ReaderSlot:
    """One open dataset, and how far to read from it.

    The worker that reads adds to what is held, and the consumer takes from it, without a lock: each has its own count.
    The fields that say who may read are guarded by the lock of the Readers.
    """

    def __init__(self, inner: Subdataset, block_length: int) -> None:
        self.inner = inner
        self.in_cycle = False  # or opened ahead
        self.busy = False  # a worker is inside
        self.queued = False
        self._read = len(inner.ahead)  # elements ever; an exception counts as one
        self._taken = 0
        self._block_length = block_length
        self._run_min = 1 if holds_user_code(inner.plan) else _QUICK_RUN
        self._run = 1  # how many elements to ask for
        self._limit = 1  # of what is held; while it is not in the cycle, a first element is enough
        held = inner.ahead.next_chunk()
        self.element_bytes = 1 if held is None else _element_bytes(held)  # of about each, once one was read

    @property
    def was_read(self) -> int:
        """Elements that were ever read; an exception counts as one."""
        return self._read

    @property
    def held(self) -> int:
        """Elements that were read and not taken."""
        return self._read - self._taken

    @property
    def nbytes(self) -> int:
        """About how many bytes these have."""
        return self.held * self.element_bytes

    def runs_low(self) -> bool:
        """Whether to begin to read: at half of what it may hold, so that not every element taken is a hand-over."""
        return self._read - self._taken <= self._limit // 2 and not self.busy and not self.inner.ended

    def room(self) -> int:
        """How many more elements it may hold."""
        return self._limit - self.held

    def join_cycle(self) -> None:
        """It has a place in the cycle now: more than the first element may be read."""
        self.in_cycle = True
        self._set_limit()

    def _set_limit(self) -> None:
        if not self.in_cycle:
            return
        blocks = 2 * self._block_length
        limit = min(max(blocks, 2 * self._run, AHEAD_ELEMENTS_MIN), max(blocks, AHEAD_ELEMENTS_MAX))
        self._limit = min(limit, max(1, AHEAD_BYTES // self.element_bytes))

    def wanted(self) -> int:
        """How many elements to read next."""
        return min(self._run, self.room())

    def read(self, datasets: Subdatasets, count: int, account: Account, seconds: float) -> bool:
        """Read a run of elements; False where the dataset failed, or has ended, and is closed then.

        Args:
            datasets: reads.
            count: how many, at most; they have been reserved.
            account: of the memory.
            seconds: that a run may take.
        """
        started = time.perf_counter()
        try:
            chunk = datasets.read(self.inner, count, ahead=True)
            if chunk is None:
                self.inner.close()
                account.settle(count, 0, 0)
                return False
        except BaseException as error:
            account.settle(count, 0, 0)
            if concerns_iteration(error):
                raise
            self._read += 1  # raised in the consumer's thread, at its place
            self.inner.ahead.put(error)
            return False
        self._measure(chunk, (time.perf_counter() - started) / seconds)
        self._read += chunk.length
        nbytes = chunk.nbytes
        account.settle(count, chunk.length, nbytes)
        self.inner.ahead.put(chunk, nbytes)  # from here on the consumer sees it
        return True

    def _measure(self, chunk: Chunk, share: float) -> None:
        """Learn from a run that took ``share`` of the time that one may take."""
        self.element_bytes = _element_bytes(chunk)
        fitting = int(chunk.length / max(share, 1e-6))
        self._run = max(self._run_min, min(fitting, _GROWTH * chunk.length, AHEAD_ELEMENTS_MAX // 2))
        self._set_limit()

    def take(self, datasets: Subdatasets, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements that are held, checked; raises the exception where one is next."""
        before = self.inner.given
        try:
            return datasets.take(self.inner, n)
        finally:
            self._taken += max(1, self.inner.given - before)  # an interrupt is held like an element

    def lend(self, n: int) -> Chunk | None:
        """``n`` elements that are held in one piece. They are given when ``count_given`` says so."""
        self._taken += n
        return self.inner.ahead.give(n)

    def count_given(self, n: int) -> None:
        """``n`` elements that were lent have been given."""
        self.inner.given += n


def _element_bytes(chunk: Chunk) -> int:
    """The size of an element, from a few of them."""
    sample = chunk.slice(0, min(_SAMPLE, chunk.length))
    return max(1, sample.nbytes // sample.length)


_Task: TypeAlias = tuple[Callable[[], None], Callable[[], None]]


class ReaderPool:
    """The open datasets of one interleave, the workers that read from them, and the next inputs, opened ahead.

    One lock guards all fields, and those of the readers. ``_news`` wakes the consumer: what it waits for has come, or
    never will. ``_stillness`` wakes who waits for the workers to be outside of the datasets.

    Args:
        inputs: the datasets, which one worker at a time opens.
        build: lends the workers.
        calls: from how many datasets to read at once. Opening the next one comes on top.
        opened_max: how many inputs to have opened beside those that have a place in the cycle.
        block_length: elements that are taken from one before the next has its turn.
    """

    def __init__(
        self,
        inputs: Inputs,
        build: ExecutionContext,
        calls: Tunable,
        opened_max: int,
        block_length: int,
    ) -> None:
        self.lock = threading.RLock()  # reentrant: the garbage collector may call wake() in a thread that holds it
        self.places = 0  # empty places of the cycle, for which the first of the opened datasets are
        self._inputs = inputs
        self._datasets = inputs.datasets
        self._build = build
        self._coordinator = build.coordinator
        self._account = build.ledger.account(
            spare=1
        )  # for the dataset that the consumer waits for, whatever others hold
        self._counters = build.counters
        self._pulse = build.pulse
        self._calls = calls
        self._opened_max = opened_max
        self._block_length = block_length
        self._news = Condition(self.lock)
        self._stillness = Condition(self.lock)
        self._opened: deque[ReaderSlot | BaseException] = (
            deque()
        )  # an exception stands for a dataset that failed to open
        self._first: deque[ReaderSlot] = deque()  # those of the cycle that have room
        self._later: deque[ReaderSlot] = deque()  # those opened ahead of which nothing was read
        self._workers = 0  # jobs that were submitted, and are not over
        self._reading = 0  # workers inside a dataset
        self._opening = False  # a worker is inside the source or the function
        self._awaited: frozenset[ReaderSlot] = frozenset()  # those that the consumer waits for
        self._awaits_input = False
        self._is_refused = False  # the first in line was not read from, for want of memory
        self._told = True  # nothing is awaited, or it has come
        self._started = False
        self._paused = False
        self._opens_no_more = False  # while somebody looks at the source
        self._stopped = False

    # What the consumer asks, with the lock held

    def next_opened(self) -> ReaderSlot | None:
        """The next input, which has a place now; raises the exception where it could not be opened; None if none is."""
        if not self._opened:
            return None
        first = self._opened.popleft()
        if isinstance(first, ReaderSlot):
            self.places -= 1
            return first
        self._admit(self.places - 1)
        try:
            raise first
        finally:
            del first  # see runtime/contract.py on exceptions that are kept

    @property
    def no_more_inputs(self) -> bool:
        """Whether all inputs have had a place."""
        return self._inputs.ended and not self._opened and not self._opening

    def take(self, reader: ReaderSlot, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements of a dataset, as far as they were read; raises where an exception is next."""
        ahead = reader.inner.ahead
        if not ahead:
            return None
        bytes_given = ahead.bytes_given
        try:
            return reader.take(self._datasets, n)
        finally:
            self._release(ahead.bytes_given - bytes_given)
            self._line_up(reader)

    def _release(self, nbytes: int) -> None:
        self._account.release(nbytes)
        self._is_refused = False

    def lend(self, readers: list[ReaderSlot], n: int) -> list[Chunk]:
        """``n`` elements of each of them, which are known to be waiting, for whole rounds."""
        had = sum(reader.inner.ahead.bytes_given for reader in readers)
        lent = [chunk for reader in readers if (chunk := reader.lend(n)) is not None]
        self._release(sum(reader.inner.ahead.bytes_given for reader in readers) - had)
        for reader in readers:
            self._line_up(reader)
        return lent

    def free_place(self) -> None:
        """A dataset has ended: its place is for the next input."""
        self.places += 1
        self._admit(self.places - 1)

    def expect(self, *readers: ReaderSlot, an_input: bool) -> None:
        """Say that the next ``wait`` is for elements of one of these, or also for another input to be opened."""
        self._awaited = frozenset(readers)
        self._awaits_input = an_input
        self._told = self._is_refused = False
        if any(reader.inner.ahead for reader in readers):  # since it was looked for: elements come without the lock
            self._told = True
        elif len(readers) == 1 and readers[0].queued:
            (self._first if readers[0].in_cycle else self._later).remove(readers[0])
            self._first.appendleft(readers[0])

    # Without it

    def start(self) -> None:
        """Begin to read. Called again, it does nothing.

        Raises:
            ClosedError: the iterator was closed.
        """
        if not self._started:
            self._coordinator.register(self, self.wake)
            self._started = True
            self.call_workers()

    def wait(self) -> None:
        """Wait for what is expected.

        Raises:
            ClosedError: the iterator was closed, or belongs to the parent process.
            RuntimeError: there is no thread to do it.
        """
        self.call_workers(needed=True)
        started = self._counters.waiting_since = time.perf_counter()
        with self._coordinator.blocked(), self.lock:
            while not self._told:
                if self._stopped:
                    self._coordinator.check_usable()
                self._news.wait()
        self._counters.add_wait(started, time.perf_counter())

    @contextlib.contextmanager
    def still(self, *, opening_only: bool = False) -> Iterator[None]:
        """Inside, no worker touches the source, nor, unless ``opening_only``, a dataset."""
        try:
            self._wait_for_stillness(self._stillness.wait, opening_only=opening_only)
            yield
        finally:
            self._paused = self._opens_no_more = False
            self.call_workers()

    def _wait_for_stillness(self, wait: Callable[[], object], *, opening_only: bool = False) -> None:
        with self._coordinator.blocked(), self.lock:
            self._opens_no_more = True
            self._paused = not opening_only
            while (self._opening or (self._paused and self._reading)) and not self._coordinator.has_ended:
                wait()

    def wake(self) -> None:
        """Have everybody stop, soon."""
        with self.lock:
            self._stopped = True
            self._news.notify_all()

    def close(self) -> None:
        """Stop, and wait for the reads in progress. The datasets are then the caller's to close."""
        self.wake()
        self._wait_for_stillness(self._stillness.wait_held)
        self._account.close()
        self._coordinator.unregister(self)

    def forget_opened(self) -> None:
        """They are closed. An exception among them would keep alive what it came through."""
        with self.lock:
            self._opened.clear()

    def opened(self) -> list[ReaderSlot | BaseException]:
        """The next inputs."""
        with self.lock:
            return list(self._opened)

    def adopt(self, inner: Subdataset) -> ReaderSlot:
        """A dataset out of a saved state, for a place of the cycle."""
        reader = ReaderSlot(inner, self._block_length)
        self._account.hold(inner.ahead.counted_bytes)
        reader.join_cycle()
        self._line_up(reader)
        return reader

    def save_inputs(self, *, by_place: bool) -> State:
        """Where the source stands, and the datasets that were opened ahead, of which nothing was given.

        Args:
            by_place: whether the source's trail tells where it is. Else nobody may be reading from it.
        """
        with self.lock:
            arrived = [
                self._datasets.save_by_place(item.inner) if isinstance(item, ReaderSlot) else save_error(item)
                for item in self._opened
            ]
            return self._inputs.save(arrived, by_place=by_place)

    # The two lines

    def _line_up(self, reader: ReaderSlot) -> None:
        """Have somebody read, if there is room."""
        if not reader.queued and reader.runs_low():
            (self._first if reader.in_cycle else self._later).append(reader)
            reader.queued = True

    def _admit(self, index: int) -> None:
        """The opened dataset at ``index`` has a place now, if it is there: more of it may be read."""
        if not 0 <= index < len(self._opened):
            return
        reader = self._opened[index]
        if isinstance(reader, ReaderSlot) and not reader.in_cycle:
            reader.join_cycle()
            if reader.queued:
                self._later.remove(reader)
                self._first.append(reader)
            self._line_up(reader)

    def _arrive(self, item: Subdataset | BaseException) -> None:
        reader = ReaderSlot(item, self._block_length) if isinstance(item, Subdataset) else item
        self._opened.append(reader)
        self._admit(len(self._opened) - 1 if len(self._opened) <= self.places else -1)
        if isinstance(reader, ReaderSlot):
            self._line_up(reader)

    # The workers

    def call_workers(self, *, needed: bool = False) -> None:
        """Have as many workers as there is work for. Without the lock, which a worker needs to begin.

        Raises:
            ClosedError, RuntimeError: there is none, and it is needed.
        """
        if not (self._first or self._later or self._may_open()):
            return  # in most cases, which a look without the lock tells
        with self.lock:
            missing = self._missing_workers()
            self._workers += missing
        for still_missing in range(missing, 0, -1):
            try:
                self._coordinator.submit(self._work)
            except (ClosedError, RuntimeError, MemoryError):
                with self.lock:
                    self._workers -= still_missing
                    if needed and not self._workers:
                        raise
                return

    def _missing_workers(self) -> int:
        if self._paused or self._stopped or not self._started:
            return 0
        spare = self._workers - self._reading - self._opening
        return max(0, self._open_tasks() - spare)

    def _open_tasks(self) -> int:
        readable = 0 if self._is_refused else len(self._first) + len(self._later)
        return self._may_open() + min(readable, max(0, self._calls.value - self._reading))

    def _may_open(self) -> bool:
        if self._opening or self._opens_no_more or self._inputs.ended:
            return False
        return len(self._opened) < self.places + self._opened_max

    def _work(self) -> None:
        try:
            while (task := self._next_task()) is not None:
                run, let_go = task
                try:
                    run()
                except BaseException as error:  # noqa: BLE001  # raised by the iterator
                    self._report_fault(error)  # first, so that nobody goes on without what was lost here
                    let_go()
                self.call_workers()
        except BaseException as error:  # noqa: BLE001  # raised by the iterator
            self._report_fault(error)

    def _report_fault(self, error: BaseException) -> None:
        if not self._stopped:
            self._coordinator.fail(error, self._datasets.node.located())

    def _next_task(self) -> _Task | None:
        """What to do next, and what to do if that fails; None where there is nothing, and the worker leaves."""
        with self.lock:
            if not (self._paused or self._stopped):
                if self._may_open():
                    self._opening = True
                    return self._open, self._leave_source
                line = self._first or self._later
                if self._reading < self._calls.value and line and (count := self._reserve(line[0])):
                    return self._begin(line.popleft(), count)
            self._workers -= 1
            return None

    def _reserve(self, reader: ReaderSlot) -> int:
        """How many elements may be read from the first in line. Where memory is short, it stays the first."""
        count = self._account.reserve(reader.wanted(), urgent=self._is_urgent(reader))
        self._is_refused = not count
        self._counters.refusals += not count
        return count

    def _is_urgent(self, reader: ReaderSlot) -> bool:
        """Whether the consumer waits for it, and for nobody who is being read from."""
        return not self._told and reader in self._awaited and not any(other.busy for other in self._awaited)

    def _begin(self, reader: ReaderSlot, count: int) -> _Task:
        task = partial(self._read, reader, count), partial(self._let_go, reader)
        reader.queued, reader.busy = False, True
        self._reading += 1
        return task

    def _read(self, reader: ReaderSlot, count: int) -> None:
        """Read on while there is room, and nobody else has waited long enough."""
        had, clock = reader.was_read, CpuClock()
        clock.begin()
        started = time.perf_counter()
        self._read_on(reader, count, started + TARGET_SECONDS * self._reading)
        ended = time.perf_counter()
        count = reader.was_read - had
        with self.lock:
            if count:
                seconds = ended - started
                self._counters.add_task(count, count * reader.element_bytes, seconds, clock.end(seconds), 0.0)
        self._let_go(reader)
        if ended >= self._pulse.due:
            self._pulse.beat(ended)

    def _read_on(self, reader: ReaderSlot, count: int, until: float) -> None:
        while count and reader.read(self._datasets, count, self._account, TARGET_SECONDS * self._reading):
            if self._paused or self._stopped or reader.room() < 1 or self._reading > self._calls.value:
                break
            if self._first and time.perf_counter() > until:
                break
            if not self._told and reader in self._awaited:
                self._tell()
            count = self._account.reserve(reader.wanted())

    def _let_go(self, reader: ReaderSlot) -> None:
        with self.lock:
            if not reader.busy:  # it was let go of, and then something failed
                return
            self._reading -= 1
            reader.busy = False
            self._is_refused = False  # who was refused because no size was known may know one now
            reader.inner.ended = reader.inner.closed
            self._line_up(reader)
            if reader in self._awaited:
                self._tell()
            self._stillness.notify_all()

    def _open(self) -> None:
        started = time.perf_counter()
        opened = self._open_next()
        self._counters.inputs += opened is not None  # one worker at a time does it, so nobody else counts these
        self._counters.input_seconds += time.perf_counter() - started
        self._deliver_opened(opened)
        del opened  # see runtime/contract.py on exceptions that are kept

    def _leave_source(self) -> None:
        with self.lock:
            self._opening = False
            self._stillness.notify_all()

    def _open_next(self) -> Subdataset | BaseException | None:
        try:
            return self._inputs.open_next()
        except BaseException as error:
            if concerns_iteration(error):
                raise
            return error  # raised in the consumer's thread, at its place

    def _deliver_opened(self, item: Subdataset | BaseException | None) -> None:
        with self.lock:
            self._inputs.note()
            if item is not None:
                self._arrive(item)
            self._opening = False  # not before it has its place, so that a fault is not taken for the end
            if self._awaits_input:
                self._tell()
            self._stillness.notify_all()

    def _tell(self) -> None:
        with self.lock:
            if not self._told:
                self._told = True
                self._news.notify_all()
