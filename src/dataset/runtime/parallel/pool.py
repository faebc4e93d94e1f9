"""Parallel operator: a pool of worker threads that compute ahead of the consumer, for parallel map and parallel batch.

A ParallelOperator runs a Divisible operator. Its workers are threads of the coordinator. All workers repeat the same
steps as long as there is room for more elements: take the next task, which only one worker does at a time so that the
input is read in order; call another worker if there is room for one; do the task; store the outcome. So only finished
elements are handed from thread to thread, and in runs of several (controller.py).

**Order.** If it must be kept, finished tasks wait for those before them. The window bounds how many elements may wait.
It is much larger than the number of workers, so one slow element does not stop the others. The number of elements that
are ready but not taken is bounded by what the workers compute at a time, or what the consumer requests at a time.

**Cheap work** is done inline: the consumer runs the inner operator in its own thread. If it requests few elements at a
time, it computes about a millisecond of work at once, and keeps the rest like elements that workers have computed.
While the cost of the work is still unknown, it computes no more than was requested, and less if that takes longer.

**State.** Inputs are numbered, and a task consists of a run of them. The worker that reads them leaves marks in a
replay log (state/replay_log.py). The operator knows which tasks are not done or not completely given. A state is the
last mark before the first of these tasks, plus the later inputs whose outcomes have already been given. So saving waits
for nothing and stores no computed elements. After a resume, ordered or not, the function is not called for elements
that had been given.

This requires an input that repeats its elements. For other inputs, and if waiting elements have no input number, saving
a state waits for the elements in progress and stores all computed elements by value.

**Faults.** The failure of an element is an outcome. Any other exception in a worker is a fault of the library, after
which the state of the tasks is unknown: the coordinator stops the whole iteration with it.

**Closing.** Closing the operator waits until no worker is in it (worker_loop.py).
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque

from dataset.amounts import CACHE_BYTES, HELD_BYTES, LARGE_ELEMENT_BYTES
from dataset.errors import ClosedError
from dataset.options import AUTOTUNE
from dataset.plan.node import ParallelNode, holds_user_code
from dataset.runtime import processes
from dataset.runtime.choice import INLINE, PROCESSES, Learned
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder, nbytes_of
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, assumes_no_failures
from dataset.runtime.metrics.background import BackgroundOperator, CpuClock, Tunable, Variation
from dataset.runtime.parallel.blocks import Block, BlockMemory
from dataset.runtime.parallel.controller import SIZE_MAX, THREADS, Controller
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.parallel.tasks import Divisible, Task, Worker
from dataset.runtime.parallel.worker_loop import WorkerLoop
from dataset.runtime.position import Position, Run
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.state.replay_log import ReplayLog
from dataset.world import threading, time

_log = logging.getLogger("dataset")

AHEAD_PER_VARIATION = 7
"""How many more rounds are computed ahead for work whose duration is distributed exponentially.

With ordered output, one slow element releases many waiting ones at once. With room for one round only, the workers then
pause until these are taken: 8 workers as fast as their consumer took 1.7 times as long as ideal, and 1.2 times with
room for eight rounds.
"""

VARIATION_MAX = 2.0

INLINE_MAX = 128
INLINE_SECONDS = 1e-3
INLINE_BYTES = 64 * 1024
"""How much the consumer computes ahead inline. The delay and the memory are small."""

COLUMN_ELEMENTS_MAX = 2048
"""How much a task computes on columns. Each of its operations releases the interpreter lock and must reacquire it.

On 16 cores, two threads that parsed, decoded and scaled images gave 240,000 of them per second with tasks of 128, and
630,000 with tasks of 2,048; the consumer alone gave 520,000.
"""


class ParallelOperator(WorkerLoop, Operator, BackgroundOperator):
    """Operator that runs the tasks of a Divisible operator on several workers, up to the number of its knob.

    The lock also guards the queue of finished elements. The consumer is woken if enough elements are ready, or if no
    worker is active.

    Args:
        inner: the operator that defines the tasks. One thread at a time reads its input.
        context: creates the workers.
        calls: the maximum number of concurrent tasks.
        controller: determines the task size, and who does the work.
        ordered: whether elements come out in the order of the input.
        counted: whether the workers count towards the coordinator's thread limit, unless they wait for processes.
    """

    controller: Controller

    def __init__(
        self,
        inner: Divisible,
        context: ExecutionContext,
        calls: Tunable,
        controller: Controller,
        *,
        ordered: bool,
        counted: bool = True,
    ) -> None:
        super().__init__(context, inner.node, calls, counted=counted)
        self.inner = inner
        self._context = context
        self.ordered = ordered
        self._ready = OutcomeQueue()  # computed elements that may be taken
        self.controller = controller
        controller.may_compare = self.may_compare
        if PROCESSES in controller.choice.ways:
            controller.resting_processes = processes.resting_count
        self._starting = -1  # processes that are not ready yet; less than 0 if none was started
        self._start_failure: Exception | None = None
        self._hand = Remainder()  # taken from the queue, but not requested yet
        self._hand_bytes = 0  # accounted bytes of it, until all of it has been requested
        self._lease = 0  # elements that may be pulled inline before the next look at the pace
        self._leased = 0  # the same, before any were pulled
        self._step = 1  # how many elements an inline pull computes, if fewer are requested
        self._demand = 1  # how many elements the consumer requests at a time
        self._due = 0  # how many of them it has not been given yet
        self._wanted = 0  # how many elements it waits for; 0 if it does not wait
        self._tasks: deque[Task] = deque()  # not accepted yet, in order; only if ordered
        self._begun: set[Task] = set()  # not accepted yet; only if not ordered
        # Input positions, and what came of the inputs, since workers were called last; only then is the input read
        # ahead.
        self._log: ReplayLog | None = None
        self._has_waited = False  # whether the consumer has waited for workers since its last inline pull
        self._read = 0  # the number of the next input
        self._is_told = True  # whether the task numbers cover everything computed from earlier inputs
        self._made = 0  # elements that were accepted
        self._taken = 0  # accepted elements that left the shared queue
        self._accepted: deque[tuple[int, int, range]] = deque()  # per task: _made after it, its count, its inputs
        self._stacks = False  # whether elements are written into blocks: only once they are known to be large
        self._knows_size = not (ordered and inner.write_into_batch)
        self._memory = BlockMemory()
        self._block: Block | None = None  # the block of the next task, if elements will be stacked
        self._row = 0  # the first row of the next task in it
        self._in_flight = 0  # elements in progress, or waiting for earlier ones
        self._waiting_bytes = 0  # bytes of the waiting elements
        self._fetching = False  # whether a worker is reading the input
        self._ended = False  # whether the input has ended
        # Whether a worker is storing outcomes, or failed while doing so: no later outcome may be stored then.
        self._is_torn = False
        self._free: dict[bool, deque[Worker]] = {False: deque(), True: deque()}  # by whether they use processes
        self._variation = Variation()  # of the duration per element
        self._column_elements = COLUMN_ELEMENTS_MAX
        self.coordinator.register(self, self.wake)

    # The consumer's side.

    def pull(self, n: int) -> Chunk | None:
        if n <= self._lease:
            self._lease -= n
            return self.inner.pull(n)
        if n != self._due and self.controller.measures:
            with self.lock:
                self.controller.requested(self.counters.taken - len(self._hand))
        if self._hand:
            self._note_request(n)
            return self._counted(n, self._hand.give(n))
        return self._pull_now(n)

    def _pull_now(self, n: int) -> Chunk | None:
        """Return elements that are ready, or wait for the workers, or compute them."""
        if self.coordinator.forked:  # before taking the lock, which a thread of the parent process may have held
            self.coordinator.check_usable()
        while True:
            with self.lock:
                if self._hand_bytes:
                    self._account.release(self._hand_bytes)
                    self._hand_bytes = 0
                self._note_request(n)
                inline = self.inline
                if self._is_enough(n) or (inline and self._ready):
                    return self._counted(n, self._take(n))
            if self.controller.wants_processes and not self.controller.has_processes:
                self._prepare_processes()
            if inline:
                return self._counted(n, self._pull_inline(n))
            if self._log is None:
                self._begin()
            self._has_waited = True
            self._wait(n)

    def _note_request(self, n: int) -> None:
        """Note how many elements the consumer requests, which the workers may always compute."""
        if n != self._due:  # otherwise it is the rest of a batch
            self._demand, self._due = max(n, self._demand * 7 // 8), n

    def _counted(self, n: int, chunk: Chunk | None) -> Chunk | None:
        """Return the chunk, and note how many of the ``n`` requested elements it leaves to be given."""
        self._due = n - (n if chunk is None else chunk.length)
        return chunk

    def _begin(self) -> None:
        """Prepare for calling workers: from here on, elements are identified by the numbers of their inputs."""
        with self.lock:
            self._made = self._taken = 0
            self._accepted.clear()
            self._read, self._is_told = self.inner.at, True
            self._log = ReplayLog(self.inner, self.inner.op)
        self._leave_mark(self._log)

    def _is_enough(self, n: int) -> bool:
        """Return whether the consumer need not wait for more elements."""
        ready = len(self._ready)
        has_ended = self._ended and not (self._in_flight or self._is_torn)  # torn: a worker is about to report a fault
        if ready >= n or self._ready.holds_failure or has_ended:
            return True
        return self._account.is_refused and ready > 0 and not self._active  # taking elements makes room for others

    def _take(self, n: int) -> Chunk | None:
        """Return up to ``n`` elements; the rest of their chunk is kept in ``_hand``, out of the workers' reach."""
        counted_bytes, ready = self._ready.counted_bytes, len(self._ready)
        try:
            chunk = self._ready.give_joined(max(n, INLINE_MAX if self.controller.inline else self.controller.size))
            if chunk is None:
                return None
            self._hand = Remainder(chunk)
            self.counters.taken += chunk.length
            self.counters.least_ready = min(self.counters.least_ready, len(self._ready))
            given = self._hand.give(n)
            if self._hand:
                self._hand_bytes = counted_bytes - self._ready.counted_bytes
            return given
        finally:
            self._account.release(counted_bytes - self._ready.counted_bytes - self._hand_bytes)
            self._taken += ready - len(self._ready)
            if self._accepted:
                passed = self._given
                while self._accepted and self._accepted[0][0] <= passed:
                    self._accepted.popleft()
            if 2 * len(self._ready) <= self._ahead():  # a new worker has enough to do
                with contextlib.suppress(RuntimeError, MemoryError):  # a consumer that finds no elements reports it
                    self.call_workers()

    def _wait(self, n: int) -> None:
        started = self.counters.waiting_since = time.perf_counter()
        with self.coordinator.blocked(), self.lock:
            self._wanted = n
            try:
                while not self._is_enough(n):
                    if self._stopped:
                        self.coordinator.check_usable()
                        raise ClosedError("this part of the pipeline has been closed")
                    if self.inline:
                        return
                    self.call_workers(needed=True)
                    self._news.wait()
            finally:
                self._wanted = 0
            self.counters.add_wait(started, time.perf_counter())
            self.controller.waited(started, self.counters.waited_until)

    def _pull_inline(self, n: int) -> Chunk | None:
        controller = self.controller
        n = min(n, controller.pull_max)
        count = n + max(0, self._step - n) // self._demand * self._demand  # no request is then met from two chunks
        is_starting = controller.is_starting
        if is_starting:
            count = min(n, self._step)
        elif 2 * self._demand > self._step and (self._log is None or self._has_waited):
            count, self._log = n, None  # computing a little ahead is not worth a log, which saves states of the input
        elif self._log is None:
            self._begin()
        self._has_waited = False
        made = 1  # an exception counts as one
        controller.begin_inline()
        try:
            if is_starting:
                self.inner.read_through(controller.read_input)
            chunk = self.inner.pull(count) if self._log is None else self._pull_ahead(self._log, count)
            if chunk is None:
                self._ended = True
                return None
            made = chunk.length
        finally:
            seconds = controller.end_inline(made, self._size_max())
            if is_starting:
                self.inner.read_through(None)
        if self.inner.one_to_one:
            self._step = _inline_step(chunk, count, seconds)
        self._lease = controller.lease(made, seconds) if self._log is None and self._step <= n else 0
        self._pulse_now()
        if self._log is None:
            self.counters.taken += chunk.length + self._leased
            self._leased = self._lease
            return chunk
        with self.lock:
            return self._take(n)

    def _pull_ahead(self, log: ReplayLog, count: int) -> Chunk | None:
        """Compute 1 to ``count`` elements and keep them like those of a task; return them."""
        self._leave_mark(log)
        first = self.inner.at
        try:
            chunk = self.inner.pull(count)
        finally:
            self._read, self._is_told = self.inner.at, self.inner.may_be_marked
        if chunk is not None:
            with self.lock:
                self._ready.put(chunk)
                self._ready.take_from(self.inner.outbox)
                self._count_made(len(self._ready), range(first, self._read))
        return chunk

    def _pulse_now(self) -> None:
        now = time.perf_counter()
        if now >= self._pulse.due:
            self._pulse.beat(now)

    def _prepare_processes(self) -> None:
        """Start worker processes while the consumer continues; tell the controller when they are ready."""
        failure = self._start_failure
        if self._starting < 0:
            self._starting = count = self.knob.value
            try:
                self.inner.open_processes(self.knob.maximum)
                for _ in range(count):
                    self.coordinator.submit(self._start_process, counted=False)
            except (ImportError, NotImplementedError, TypeError, RuntimeError) as error:
                failure = error
        if failure is not None:
            _log.info("executor=AUTOTUNE keeps to threads: %s", failure)
            self.controller.exclude(PROCESSES)
            self.controller.wants_processes, self._start_failure = False, None
        else:
            self.controller.has_processes = not self._starting

    def _start_process(self) -> None:
        try:
            self.inner.start_process()
        except ClosedError:
            pass
        except Exception as error:  # noqa: BLE001  # threads do the work, or show the error
            self._start_failure = error
        with self.lock:
            self._starting -= 1

    @property
    def inline(self) -> bool:
        """Whether the consumer does the work itself now: no worker is active, and no task was lost to a fault."""
        return self.controller.inline and not (self._visits or self._in_flight or self._is_torn)

    @property
    def ready(self) -> int:
        return len(self._hand)

    @property
    def in_processes(self) -> bool:
        """Whether processes do the work now."""
        return self.controller.in_processes

    @property
    def counted(self) -> bool:
        return super().counted and not self.in_processes

    def warm_start(self, learned: Learned) -> None:
        with self.lock:
            if self._log is None:  # no task has begun
                super().warm_start(learned)

    # Limits on how much is computed ahead.

    def _size_max(self) -> int:
        in_columns = self._column_elements if self.inner.runs_on_columns else 0
        return self.inner.task_size_max or max(SIZE_MAX, self._demand, in_columns)

    def _ahead(self) -> int:
        """Return how many elements may be ready before the workers pause."""
        evening_out = 1 + AHEAD_PER_VARIATION * min(self._variation.squared, VARIATION_MAX) if self.ordered else 1.0
        return int(self.knob.value * self.controller.size * evening_out) + (self._demand if self._demand > 1 else 0)

    def _room(self) -> int:
        """Return how many elements the next task may compute; 0 if no task may begin now."""
        if self._fetching or self._ended or self._stopped or self._paused or self.controller.inline:
            return 0
        if self._active > self.knob.value:  # the knob was turned down
            return 0
        if len(self._ready) >= self._ahead() or self._waiting_bytes > HELD_BYTES:
            return 0
        window = max(self.inner.window_per_call * self.knob.value, 4 * self._demand)
        if self.inner.runs_on_columns:
            window = max(window, (self.knob.value + 2) * self.controller.size)
        ahead = self._in_flight + len(self._ready)
        size = 1 if self.inner.single_element_tasks else min(self.controller.size, self._size_max())
        if self._fills_blocks():
            left = self._left_of_request(ahead) if self._block is None else self._block.length - self._row
            size = -(-left // -(-left // size))  # so that all tasks of a block take equally long
        return max(0, min(size, window - ahead))

    # The workers' side.

    def _missing_workers(self) -> int:
        return int(self._active < self.knob.value and self._room() > 0)

    def _do_tasks(self, visit: object) -> None:
        remotely = self.in_processes
        try:
            worker = self._free[remotely].pop()
        except IndexError:
            worker = self.inner.remote_worker() if remotely else self.inner.worker()
        clock = CpuClock()
        while (task := self._next_task(visit)) is not None:
            clock.begin()
            started = time.perf_counter()
            outcomes = worker(task)
            if task.block is not None:
                outcomes = task.block.write_all(task.row, outcomes)
            ended = time.perf_counter()
            seconds = ended - started
            # The CPU time of a process is not measured here; it is assumed to be busy all the time.
            cpu_seconds = seconds if remotely else clock.end(seconds)
            task.nbytes = sum(map(nbytes_of, outcomes))
            self._column_elements = min(COLUMN_ELEMENTS_MAX, CACHE_BYTES * task.count // max(1, task.nbytes))
            input_nbytes = 0 if task.inputs is None else task.inputs.nbytes
            task.inputs = None
            with self.lock:
                failed = sum(isinstance(outcome, BaseException) for outcome in outcomes)
                self._account.settle(task.count, task.count - failed, task.nbytes, input_nbytes)
                self._variation.add(seconds / task.count)
                process = f"process for {threading.current_thread().name}" if remotely else ""
                self.counters.add_task(task.count, task.nbytes, seconds, cpu_seconds, task.input_seconds, process)
                self._store(task, outcomes)
                self.controller.add(task.count, seconds, self._size_max(), ended, self.counters.waiting_since)
                self._tell_consumer()
            del task, outcomes  # otherwise an exception among them would stay alive during the next task
            if ended >= self._pulse.due:
                self._pulse.beat(ended)
        self._free[remotely].append(worker)

    def _next_task(self, visit: object) -> Task | None:
        """Return the next task, or None if the worker is not needed any more and has left."""
        while True:
            with self.lock:
                size = self._room()
                if size:
                    size = self._account.reserve(size)
                    self.counters.refusals += not size
                if not size:
                    self._leave(visit)
                    return None
                self._fetching = True
            task = self._fetch(size)
            with self.lock:
                unused = size if task is None else size - task.count
                if unused:
                    self._account.settle(unused, 0, 0)
                if task is None:
                    self._ended, self._fetching = True, False
                    self._leave(visit)
                    return None
                self._read, self._is_told = self.inner.at, self.inner.may_be_marked
                self._in_flight += task.count
                self.counters.inputs += task.count if task.inputs is None else task.inputs.length
                if self.ordered:
                    self._tasks.append(task)
                else:
                    self._begun.add(task)
                self._fetching = False  # after the task is registered: a fault cannot give its place to another
                if task.outcomes is not None:
                    task.nbytes = sum(map(nbytes_of, task.outcomes))
                    self._account.settle(task.count, 0, task.nbytes)
                    self._finish(task, task.outcomes)
                    continue
                if self._fills_blocks():
                    self._assign_rows(task)
                self.call_workers()
                return task

    def _fills_blocks(self) -> bool:
        return self._stacks and (self._block is not None or self._demand > 1)

    def _left_of_request(self, before: int) -> int:
        """Return how many elements a request still takes after the next ``before`` elements, which have been begun.

        A block of this length ends where that request does. A batch from two blocks would have to be copied.
        """
        return (self._due - len(self._hand) - before) % self._demand or self._demand

    def _assign_rows(self, task: Task) -> None:
        """Assign rows of a block to the task; there is one block for each chunk that the consumer will request."""
        if self._block is None:
            left = self._left_of_request(self._in_flight - task.count + len(self._ready))
            self._block, self._row = Block(max(left, task.count), self._memory), 0
        task.block, task.row = self._block, self._row
        self._row += task.count
        if self._row == self._block.length:
            self._block = None

    def _fetch(self, size: int) -> Task | None:
        started = time.perf_counter()
        first = self.inner.at
        try:
            while not (allowed := self.inner.pass_given(size)):
                if self._stopped:
                    return None
            first = self.inner.at
            if self._log is not None:
                self._leave_mark(self._log)
            task = self.inner.next_task(allowed)
        except BaseException as error:
            if concerns_iteration(error):
                raise
            task = Task(None, 0, 1, [error])  # raised in the consumer's thread, in its place
        if task is not None:
            task.numbers = range(first, self.inner.at)
            task.input_seconds = time.perf_counter() - started
        return task

    def _leave_mark(self, log: ReplayLog) -> None:
        """Add a mark to the replay log if it is time for one. Called by the thread that reads the input."""
        if not (self._context.input_is_replayable and self.inner.may_be_marked):
            return
        log.read = self.inner.at
        if log.step() and log.is_long:
            with self.lock:
                first = self._first_not_given()
            log.forget(first)

    def _finish(self, task: Task, outcomes: list[Outcome]) -> None:
        self._store(task, outcomes)
        self._tell_consumer()

    def _store(self, task: Task, outcomes: list[Outcome]) -> None:
        """Store the outcomes of a task; the consumer can take them once all earlier ones are stored."""
        if self._is_torn:
            return
        self._is_torn = True
        task.outcomes = outcomes
        self._waiting_bytes += task.nbytes
        if not self.ordered:
            self._begun.discard(task)
            self._accept(task)
        elif self._tasks[0] is task:
            while self._tasks and self._tasks[0].outcomes is not None:
                self._accept(self._tasks.popleft())
        self._is_torn = False

    def _tell_consumer(self) -> None:
        """Wake the consumer if it need not wait any longer."""
        if self._wanted and self._is_enough(self._wanted):
            self._news.notify()

    def _accept(self, task: Task) -> None:
        self._in_flight -= task.count
        self._waiting_bytes -= task.nbytes
        outcomes = list(self.inner.accept(task))
        if not outcomes:
            self._account.release(task.nbytes)
        ready = len(self._ready)
        for left, outcome in zip(reversed(range(len(outcomes))), outcomes, strict=True):
            self._ready.put(outcome, 0 if left else task.nbytes)  # all count until the last is taken
            if not self._knows_size and isinstance(outcome, Chunk):
                self._knows_size = True
                self._stacks = outcome.nbytes >= LARGE_ELEMENT_BYTES * outcome.length
        self._count_made(len(self._ready) - ready, task.numbers)
        # The frames of an exception refer to the task. Without this, a waiting exception would keep alive one that was
        # raised, and so the iterator.
        task.outcomes = None
        del outcomes

    def _count_made(self, count: int, numbers: range) -> None:
        accepted = self._accepted
        if not count:
            if not (self.ordered and accepted):
                return
            # If ordered, inputs without output are given together with the inputs before them. There may be many of
            # them.
            _, last_count, last = accepted[-1]
            if not last_count and last.stop == numbers.start:
                accepted.pop()
                numbers = range(last.start, numbers.stop)
        self._made += count
        accepted.append((self._made, count, numbers))

    def _leave(self, visit: object) -> None:
        super()._leave(visit)
        if self._wanted and (not self._active or self._is_enough(self._wanted)):
            self._news.notify()

    # Closing, and saved state.

    def wake(self) -> None:
        super().wake()
        self.inner.interrupt_tasks()

    @property
    def runs(self) -> str:
        """Where the work is done."""
        return "in processes" if self.in_processes else super().runs

    @property
    def capacity(self) -> int:
        """How many elements may be ready before the workers pause."""
        return self._ahead()

    def buffered(self) -> tuple[int, int]:
        """Return the number of held elements, including those in progress, and the bytes of the finished ones."""
        with self.lock:
            return self._in_flight + len(self._ready), self._waiting_bytes + self._ready.nbytes

    def save(self) -> Position:
        if self.coordinator.forked:
            self.coordinator.check_usable()
        with self.lock:
            if self._log is None:  # no worker is involved
                return self.inner.save()
            place = self._place(self._log) if self._context.input_is_replayable else None
        return self._state_by_value() if place is None else place

    @property
    def _given(self) -> int:
        """How many of the accepted elements have been given."""
        return self._taken - len(self._hand)

    def _first_not_given(self) -> int:
        """Return the number of the first input that may be needed again. Safe while the consumer takes elements."""
        numbers = [numbers.start for _, _, numbers in self._accepted]
        numbers += [task.numbers.start for task in (self._tasks if self.ordered else self._begun)]
        return min(numbers, default=self._read)

    def _not_given(self) -> list[tuple[range, int]]:
        """Return the inputs whose outcomes were not given completely, in runs, and how much of each run was given."""
        found = [(task.numbers, 0) for task in (self._tasks if self.ordered else self._begun)]
        given = self._given
        for made, count, numbers in self._accepted:
            if made > given:
                some = max(0, count - (made - given))
                found.append((numbers[some:], 0) if count == len(numbers) else (numbers, some))
        return sorted(found, key=lambda waiting: waiting[0].start)

    def _place(self, log: ReplayLog) -> Position | None:
        """Return the last input position and what was given since, or None if this is not sufficient to resume."""
        waiting = self._not_given()
        if not waiting and (self._ended or not self._active):
            return self.inner.save()  # after the end, as a cache in the input keeps its elements only there
        mark = log.mark_before(waiting[0][0].start if waiting else self._read)
        if mark is None or not self._is_told or not all(numbers for numbers, _ in waiting):
            return None
        number, position = mark
        runs: list[Run] = []
        for numbers, some in waiting:
            if numbers.start > number or some:
                runs.append((number, numbers.start - number, some))
            number = numbers.stop
        if number < self._read:
            runs.append((number, self._read - number, 0))
        return self.inner.with_given(position, runs, self._read)

    def _state_by_value(self) -> Position:
        """Wait for the elements in progress, then return a state that holds the waiting elements by value."""
        with self.still(), self.lock:
            self._put_back()
            self.inner.outbox.take_from(self._ready)
            try:
                return self.inner.save()
            finally:
                self._ready.take_from(self.inner.outbox)

    def _put_back(self) -> None:
        """Move all waiting elements to ``_ready``: those in the hand, and those in the inner operator's queue."""
        rest = self._hand.rest()
        if rest is not None:
            self._taken -= rest.length
            self._ready.put_first(rest, self._hand_bytes)
            self._hand, self._hand_bytes = Remainder(), 0
        if self.inner.outbox:
            self._account.hold(self.inner.outbox.counted_bytes)
            self._count_made(len(self.inner.outbox), range(0))
            self._ready.take_from(self.inner.outbox)

    def load(self, position: Position) -> None:
        self.inner.load(position)

    def advance(self, position: Position, count: int) -> Position | None:
        is_known = self.ordered or assumes_no_failures()  # the latter: any elements may be skipped
        return self.inner.advance(position, count) if is_known else None

    def close(self) -> None:
        if self.coordinator.forked:
            return
        self.end_workers()
        with self.lock:
            self._ready.clear()
            self._tasks.clear()
            self._hand, self._memory = Remainder(), BlockMemory()
        self.inner.close()


def _inline_step(chunk: Chunk, count: int, seconds: float) -> int:
    """Return how many elements to compute inline at once, after a pull of ``count`` returned ``chunk``."""
    fitting = min(INLINE_BYTES / max(1, chunk.nbytes), INLINE_SECONDS / max(1e-9, seconds))
    return max(1, min(2 * count, INLINE_MAX, int(fitting * chunk.length)))


CALLS_MAX = 64
"""Default upper bound for AUTOTUNE as a number of concurrent calls, for calls that mostly wait."""


def parallel_calls(
    context: ExecutionContext, requested: int | None, autotuned: int | None = None, maximum: int = CALLS_MAX
) -> Tunable | None:
    """Return the number of concurrent calls for ``num_parallel_calls=requested``, or None if no threads are used.

    Args:
        context: the context of the op.
        requested: the user's value.
        autotuned: the initial value for AUTOTUNE; default: the number of cores.
        maximum: the upper bound for AUTOTUNE.
    """
    iteration = context.iteration
    if requested is None or not iteration.background:
        return None
    budget = iteration.options.autotune.cpu_budget
    first = min(autotuned, budget or autotuned) if autotuned else iteration.limits.cores
    return context.tunable("num_parallel_calls", requested, first, max(first, maximum))


def in_parallel(
    context: ExecutionContext,
    operator: Divisible,
    node: ParallelNode,
    *,
    counted: bool = True,
    executor: str | int = "thread",
    stages: int = 1,
) -> Operator:
    """Return the operator, or a ParallelOperator for it if the user requested several workers.

    A fused operator of several stages gets this many workers for each stage.
    """
    ordered = context.keeps_order(node.deterministic)
    if not ordered:  # also without workers: the pipeline that loads a state may have some
        context.mark_not_replayable()
    calls = parallel_calls(context, node.num_parallel_calls)
    if calls is None:
        return operator
    if calls.is_fixed:
        calls = Tunable(calls.name, calls.value * stages)
    ways: tuple[str, ...] = (INLINE, THREADS, PROCESSES) if executor == AUTOTUNE else (INLINE, THREADS)
    # A user who gives a number of calls may rely on the calls of a function to be concurrent.
    may_begin_inline = not calls.is_fixed if operator.one_to_one else not holds_user_code(node)
    way = INLINE if may_begin_inline else THREADS
    if executor == "process":
        ways, way = (PROCESSES,), PROCESSES
        operator.open_processes(calls.maximum)
    controller = Controller(calls, context.iteration.limits.cores, ways=ways, way=way)
    return ParallelOperator(operator, context, calls, controller, ordered=ordered, counted=counted)
