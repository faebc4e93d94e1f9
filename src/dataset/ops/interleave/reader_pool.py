"""Reader pool: worker threads that read ahead from many inner datasets, each into its own buffer.

``ReaderPool`` does not define the order of elements; parallel_interleave.py does. It opens the next inputs one after
another, and reads where a buffer has room. Datasets in the cycle have priority, and among them the one that the
consumer waits for. After them, it reads the first elements of datasets that were opened ahead.

A worker reads a run of elements, hands it over, and continues while there is room and no other dataset is queued. The
run length is chosen so that all workers together hand over about once per millisecond.

Reading that holds the interpreter lock most of the time, such as slicing records, is faster if the consumer does it
itself. The controller finds out (runtime/parallel/controller.py). The workers then only open the inputs. Reading that
may wait for a server is always left to the workers, because a comparison would depend on what has arrived before.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from dataset.amounts import SAMPLE_ELEMENTS
from dataset.ops.interleave.subdatasets import Inputs, Subdataset, Subdatasets, failed
from dataset.plan.node import holds_user_code, may_wait
from dataset.runtime.choice import INLINE
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.metrics.background import CpuClock, Tunable
from dataset.runtime.parallel.controller import Controller
from dataset.runtime.parallel.worker_loop import WorkerLoop
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.resources.ledger import Account
from dataset.world import time

TARGET_SECONDS = 4e-3
"""Target time between handovers of all workers together: each handover wakes a thread, and all share the GIL."""

AHEAD_ELEMENTS_MIN = 32
AHEAD_ELEMENTS_MAX = 16384
CALLED_AHEAD_MAX = 2048  # the same if user code is called for the elements
AHEAD_BYTES_MAX = 1 << 21  # a single element may be larger

_GROWTH = 8  # maximum growth factor of the run length
_QUICK_RUN = 64  # minimum run length without user code: files are read in blocks


class ReaderSlot:
    """Open dataset of the pool, with its read-ahead limit.

    The reading worker adds to the buffer and the consumer takes from it without a lock: each has its own counter.
    The lock of the ReaderPool guards the fields that say who may read.
    """

    def __init__(self, inner: Subdataset, block_length: int) -> None:
        self.inner = inner
        self.in_cycle = False  # else opened ahead
        self.busy = False  # whether a worker is reading
        self.queued = False
        self._read = len(inner.ahead)  # elements read in total; an exception counts as one
        self._taken = 0
        self._block_length = block_length
        self.calls_user_code = holds_user_code(inner.plan)
        self._run_min = 1 if self.calls_user_code else _QUICK_RUN
        self._ahead_max = CALLED_AHEAD_MAX if self.calls_user_code else AHEAD_ELEMENTS_MAX
        self._run = 1  # elements per read
        self._limit = 1  # maximum buffered elements; outside the cycle, one is enough
        held = inner.ahead.next_chunk()
        self.element_bytes = 1 if held is None else _bytes_of(held)[1]  # approximate, after the first read

    @property
    def was_read(self) -> int:
        """The number of elements read in total; an exception counts as one."""
        return self._read

    @property
    def held(self) -> int:
        """The number of elements read but not taken."""
        return self._read - self._taken

    @property
    def nbytes(self) -> int:
        """The approximate size of the held elements in bytes."""
        return self.held * self.element_bytes

    def runs_low(self) -> bool:
        """Return whether to start reading: at half of the limit, so that not every taken element causes a handover."""
        return self._read - self._taken <= self._limit // 2 and not self.busy and not self.inner.ended

    def room(self) -> int:
        """Return how many more elements it may hold."""
        return self._limit - self.held

    def join_cycle(self) -> None:
        """Join the cycle: from now on, more than the first element may be read."""
        self.in_cycle = True
        self._set_limit()

    def _set_limit(self) -> None:
        if not self.in_cycle:
            return
        blocks = 2 * self._block_length
        limit = min(max(blocks, 2 * self._run, AHEAD_ELEMENTS_MIN), max(blocks, self._ahead_max))
        self._limit = min(limit, max(1, AHEAD_BYTES_MAX // self.element_bytes))

    def wanted(self) -> int:
        """Return how many elements to read next."""
        return min(self._run, self.room())

    def read(self, datasets: Subdatasets, count: int, account: Account, seconds: float) -> bool:
        """Read a run of elements. Return False if the dataset failed or ended; it is closed if it ended.

        Args:
            datasets: the factory that reads from the dataset.
            count: the maximum number of elements, for which memory is reserved.
            account: the memory account.
            seconds: the target duration of a run.
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
            is_interrupt = not (self.calls_user_code or isinstance(error, Exception))  # of the consumer's thread
            if is_interrupt or concerns_iteration(error):
                raise
            self._read += 1  # raised in the consumer's thread, at its position
            self.inner.ahead.put(error)
            return False
        nbytes, self.element_bytes = _bytes_of(chunk)
        self._measure(chunk, (time.perf_counter() - started) / seconds)
        self._read += chunk.length
        account.settle(count, chunk.length, nbytes)
        self.inner.ahead.put(chunk, nbytes)  # visible to the consumer from here on
        return True

    def _measure(self, chunk: Chunk, share: float) -> None:
        """Adapt to a run that took ``share`` of the target duration."""
        fitting = int(chunk.length / max(share, 1e-6))
        self._run = max(self._run_min, min(fitting, _GROWTH * chunk.length, self._ahead_max // 2))
        self._set_limit()

    def take(self, datasets: Subdatasets, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` held elements, checked; raise the exception if one is next."""
        before = self.inner.given
        try:
            return datasets.take(self.inner, n)
        finally:
            self._taken += max(1, self.inner.given - before)  # an interrupt counts like an element

    def lend(self, n: int) -> Chunk | None:
        """Lend ``n`` held elements in one chunk. The cycle counts them as returned later."""
        self._taken += n
        return self.inner.ahead.give(n)


def _bytes_of(chunk: Chunk) -> tuple[int, int]:
    """Estimate the size of a chunk and of an element from some elements; measuring all of a list takes long."""
    sample = chunk.stride(0, -(-chunk.length // SAMPLE_ELEMENTS))
    nbytes = sample.nbytes * chunk.length // sample.length
    return nbytes, max(1, nbytes // chunk.length)


_Task: TypeAlias = tuple[Callable[[], None], Callable[[], None]]


class ReaderPool(WorkerLoop):
    """Pool of the open datasets of one interleave, their workers, and the inputs opened ahead.

    The lock also guards the fields of the slots. The consumer is woken if what it waits for has arrived or never will.

    Args:
        inputs: the queue of datasets, which one worker at a time opens.
        context: provides the worker threads.
        calls: how many datasets to read concurrently, in addition to opening the next one.
        opened_max: how many inputs to open ahead, in addition to those with a place in the cycle.
        block_length: the number of elements taken from one dataset per turn.
    """

    def __init__(
        self,
        inputs: Inputs,
        context: ExecutionContext,
        calls: Tunable,
        opened_max: int,
        block_length: int,
    ) -> None:
        # The spare element is for the dataset that the consumer waits for, whatever others hold.
        super().__init__(context, inputs.datasets.node, calls, spare=1)
        self.places = 0  # empty places of the cycle, to be filled by the first opened datasets
        self._inputs = inputs
        self._datasets = inputs.datasets
        self._opened_max = opened_max
        self._block_length = block_length
        self._opened: deque[ReaderSlot | BaseException] = deque()  # an exception replaces a dataset that failed to open
        self._first: deque[ReaderSlot] = deque()  # queued datasets of the cycle
        self._later: deque[ReaderSlot] = deque()  # queued datasets opened ahead
        self._reading = 0  # workers that are reading from a dataset
        self._opening = False  # whether a worker is in the source or the function
        self._awaited: frozenset[ReaderSlot] = frozenset()  # the datasets that the consumer waits for
        self._awaits_input = False
        self._is_refused = False  # no memory was available for the first in the queue
        self._told = True  # whether nothing is awaited or it has arrived
        self._started = False
        self._opens_no_more = False  # while the source is being saved
        self._made = self.given = 0  # elements that were read, and that the consumer has taken
        self.controller = Controller(calls, context.iteration.limits.cores)
        """Determines who reads: the workers, or the consumer."""

    # Called by the consumer with the lock held

    def next_opened(self) -> ReaderSlot | None:
        """Assign a place to the next opened input and return it; raise if it failed to open; None if there is none."""
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
            del first  # see runtime/contract.py on stored exceptions

    @property
    def no_more_inputs(self) -> bool:
        """Whether all inputs have been assigned a place."""
        return self._inputs.ended and not self._opened and not self._opening

    def take(self, reader: ReaderSlot, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements of a dataset that were read; raise the exception if one is next."""
        ahead = reader.inner.ahead
        if not ahead:
            return None
        bytes_given = ahead.bytes_given
        held = reader.held
        try:
            return reader.take(self._datasets, n)
        finally:
            self.given += held - reader.held
            self._release(ahead.bytes_given - bytes_given)
            self._line_up(reader)

    def _release(self, nbytes: int) -> None:
        self._account.release(nbytes)
        self._is_refused = False

    def lend(self, readers: list[ReaderSlot], n: int) -> list[Chunk]:
        """Lend ``n`` elements of each reader, which must be available, for whole rounds."""
        had = sum(reader.inner.ahead.bytes_given for reader in readers)
        lent = [chunk for reader in readers if (chunk := reader.lend(n)) is not None]
        self._release(sum(reader.inner.ahead.bytes_given for reader in readers) - had)
        self.given += n * len(lent)
        for reader in readers:
            self._line_up(reader)
        return lent

    def free_place(self) -> None:
        """Free the place of a dataset that has ended for the next input."""
        self.places += 1
        self._admit(self.places - 1)

    def expect(self, *readers: ReaderSlot, an_input: bool) -> None:
        """Declare that the next ``wait`` is for elements of one of these readers, or also for an opened input."""
        self._awaited = frozenset(readers)
        self._awaits_input = an_input
        self._told = self._is_refused = False
        if any(reader.inner.ahead for reader in readers):  # arrived meanwhile: put needs no lock
            self._told = True
        elif len(readers) == 1 and readers[0].queued:
            (self._first if readers[0].in_cycle else self._later).remove(readers[0])
            self._first.appendleft(readers[0])

    # Called without the lock

    def start(self) -> None:
        """Start reading. Further calls do nothing.

        Raises:
            ClosedError: if the iterator is closed.
        """
        if not self._started:
            self.coordinator.register(self, self.wake)
            self._started = True
            self.call_workers()

    def wait(self) -> None:
        """Wait for what ``expect`` declared.

        Raises:
            ClosedError: if the iterator is closed or belongs to the parent process.
            RuntimeError: if no worker thread can be started.
        """
        if self._read_here():
            return
        self.call_workers(needed=True)
        started = self.counters.waiting_since = time.perf_counter()
        with self.coordinator.blocked(), self.lock:
            while not self._told:
                if self._stopped:
                    self.coordinator.check_usable()
                self._news.wait()
            self.counters.add_wait(started, time.perf_counter())
            self.controller.waited(started, self.counters.waited_until)

    def _read_here(self) -> bool:
        """Read what the consumer waits for in its thread, if that is its task; return whether it did."""
        with self.lock:
            may_read = self.controller.inline and not (self._told or self._paused or self._stopped)
            if not (may_read and self._first and self._first[0] in self._awaited):
                return False
            count = self._reserve(self._first[0])
            if not count:
                return False
            reader = self._first[0]
            read, let_go = self._begin(self._first, count)
            # What the workers have read before does not count in a comparison.
            is_counted = not self.controller.choice.is_trying or self._held <= count
        had = reader.was_read
        if is_counted:
            self.controller.begin_inline()
        try:
            read()
        except BaseException:
            let_go()
            raise
        if is_counted and reader.was_read > had:
            self.controller.end_inline(reader.was_read - had, AHEAD_ELEMENTS_MAX)
        return True

    @property
    def _held(self) -> int:
        """The number of elements that were read and not taken. The lock is held."""
        return self._made - self.given

    @contextlib.contextmanager
    def still_source(self) -> Iterator[None]:
        """Keep the workers out of the source."""
        try:
            with self.lock:
                self._opens_no_more = True
            self._wait_for_stillness()
            yield
        finally:
            self._opens_no_more = False
            self.call_workers()

    @property
    def _is_busy(self) -> bool:
        return bool(self._opening or (self._reading and (self._paused or self._stopped)))

    def forget_opened(self) -> None:
        """Drop the opened inputs, which are closed. An exception among them would keep its frames alive."""
        with self.lock:
            self._opened.clear()

    def opened(self) -> list[ReaderSlot | BaseException]:
        """Return the inputs that were opened ahead."""
        with self.lock:
            return list(self._opened)

    def adopt(self, inner: Subdataset) -> ReaderSlot:
        """Add a dataset from a saved state that has a place in the cycle."""
        reader = self._slot(inner)
        self._account.hold(inner.ahead.counted_bytes)
        reader.join_cycle()
        self._line_up(reader)
        return reader

    def save_inputs(self, slots: list[Position | None], *, by_place: bool) -> Position:
        """Save the position of the source, and the datasets that were opened ahead.

        Args:
            slots: the positions of the datasets that are being read.
            by_place: whether to use the source's replay log. If not, no thread may be reading from the source, whose
                workers may need the threads that wait for the lock.
        """
        with self.lock:
            arrived = [
                self._datasets.save_by_place(item.inner) if isinstance(item, ReaderSlot) else failed(item)
                for item in self._opened
            ]
            if by_place:
                return self._inputs.save(slots, arrived, by_place=True)
        return self._inputs.save(slots, arrived, by_place=False)

    def _slot(self, inner: Subdataset) -> ReaderSlot:
        reader = ReaderSlot(inner, self._block_length)
        self._made += reader.held
        if reader.calls_user_code or may_wait(inner.plan):
            self.controller.exclude(INLINE)  # either may take any time, and user code is interrupted at any place
        return reader

    # The two queues

    def _line_up(self, reader: ReaderSlot) -> None:
        """Queue a reader if it has room."""
        if not reader.queued and reader.runs_low():
            (self._first if reader.in_cycle else self._later).append(reader)
            reader.queued = True

    def _admit(self, index: int) -> None:
        """Let the opened dataset at ``index``, if any, join the cycle, so that more of it may be read."""
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
        reader = self._slot(item) if isinstance(item, Subdataset) else item
        self._opened.append(reader)
        self._admit(len(self._opened) - 1 if len(self._opened) <= self.places else -1)
        if isinstance(reader, ReaderSlot):
            self._line_up(reader)

    # The workers

    def call_workers(self, *, needed: bool = False) -> None:
        if self._first or self._later or self._may_open():  # usually not, which is detected without the lock
            super().call_workers(needed=needed)

    def _missing_workers(self) -> int:
        if self._paused or self._stopped or not self._started:
            return 0
        spare = self._active - self._reading - self._opening
        return max(0, self._open_tasks() - spare)

    def _open_tasks(self) -> int:
        readable = 0 if self._is_refused or self._is_left_to_consumer else len(self._first) + len(self._later)
        return self._may_open() + min(readable, max(0, self.knob.value - self._reading))

    @property
    def _is_left_to_consumer(self) -> bool:
        """Whether the consumer will read what it needs, and does not wait now."""
        return self.controller.inline and self._told

    def _may_open(self) -> bool:
        if self._opening or self._opens_no_more or self._inputs.ended:
            return False
        return len(self._opened) < self.places + self._opened_max

    def _do_tasks(self, visit: object) -> None:
        while (task := self._next_task(visit)) is not None:
            run, let_go = task
            try:
                run()
            except BaseException as error:  # noqa: BLE001  # raised by the iterator
                self._report_fault(error)  # first, so that no thread continues without the lost elements
                let_go()
            self.call_workers()

    def _next_task(self, visit: object) -> _Task | None:
        """Return the next task and its cleanup on failure; None if there is none and the worker has left."""
        with self.lock:
            if not (self._paused or self._stopped):
                if self._may_open():
                    self._opening = True
                    return self._open, self._leave_source
                record = None if self._is_left_to_consumer else self._first or self._later
                if self._reading < self.knob.value and record and (count := self._reserve(record[0])):
                    return self._begin(record, count)
            self._leave(visit)
            return None

    def _reserve(self, reader: ReaderSlot) -> int:
        """Reserve memory for the first in the queue. Return how many elements it may read; if 0, it stays the first."""
        count = self._account.reserve(reader.wanted(), urgent=self._is_urgent(reader))
        self._is_refused = not count
        self.counters.refusals += not count
        return count

    def _is_urgent(self, reader: ReaderSlot) -> bool:
        """Return whether the consumer waits for this reader, and no awaited reader is being read."""
        return not self._told and reader in self._awaited and not any(other.busy for other in self._awaited)

    def _begin(self, record: deque[ReaderSlot], count: int) -> _Task:
        reader = record[0]
        inline = self.controller.inline
        task = partial(self._read, reader, count, inline=inline), partial(self._let_go, reader)
        record.popleft()  # from here on nothing allocates: a fault leaves the reader either queued or busy
        reader.queued, reader.busy = False, True
        self._reading += 1
        return task

    def _read(self, reader: ReaderSlot, count: int, *, inline: bool) -> None:
        """Read while there is room and no other reader has waited too long; ``inline``: in the consumer's thread."""
        had, clock = reader.was_read, CpuClock()
        clock.begin()
        started = time.perf_counter()
        self._read_on(reader, count, started + TARGET_SECONDS * self._reading)
        ended = time.perf_counter()
        count = reader.was_read - had
        with self.lock:
            if count:
                self._count_read(reader, count, ended, ended - started, clock.end(ended - started), inline=inline)
        self._let_go(reader)
        if ended >= self._pulse.due:
            self._pulse.beat(ended)

    def _count_read(
        self, reader: ReaderSlot, count: int, now: float, seconds: float, cpu_seconds: float, *, inline: bool
    ) -> None:
        """Count a read of ``count`` elements, which ended ``now``. The lock is held."""
        nbytes = count * reader.element_bytes
        self._made += count
        if inline:  # the consumer's pull includes the time
            self.counters.elements += count
            self.counters.nbytes += nbytes
            return
        self.counters.add_task(count, nbytes, seconds, cpu_seconds, 0.0, ended=now)
        self.controller.add(count, seconds, AHEAD_ELEMENTS_MAX, now, self.counters.waiting_since)

    def _read_on(self, reader: ReaderSlot, count: int, until: float) -> None:
        while count and reader.read(self._datasets, count, self._account, TARGET_SECONDS * self._reading):
            if self._paused or self._stopped or reader.room() < 1 or self._reading > self.knob.value:
                break
            if self._first and time.perf_counter() > until:
                break
            if not self._told and reader in self._awaited:
                self._tell()
            count = self._account.reserve(reader.wanted())

    def _let_go(self, reader: ReaderSlot) -> None:
        with self.lock:
            if not reader.busy:  # already released before a failure
                return
            self._reading -= 1
            reader.busy = False
            self._is_refused = False  # a refused reader may know its element size now
            reader.inner.ended = reader.inner.closed
            self._line_up(reader)
            if reader in self._awaited:
                self._tell()
            self._stillness.notify_all()

    def _open(self) -> None:
        started = time.perf_counter()
        opened = self._open_next()
        self.counters.inputs += opened is not None  # only one worker opens at a time, so this needs no lock
        self.counters.input_seconds += time.perf_counter() - started
        self._deliver_opened(opened)
        del opened  # see runtime/contract.py on stored exceptions

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
            return error  # raised in the consumer's thread, at its position

    def _deliver_opened(self, item: Subdataset | BaseException | None) -> None:
        with self.lock:
            self._inputs.note()
            if item is not None:
                self._arrive(item)
            self._opening = False  # after _arrive, so that a fault is not mistaken for the end
            if self._awaits_input:
                self._tell()
            self._stillness.notify_all()

    def _tell(self) -> None:
        with self.lock:
            if not self._told:
                self._told = True
                self._news.notify_all()
