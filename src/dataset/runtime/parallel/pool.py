"""Work that several threads do at once, ahead of the consumer: how parallel map and parallel batch run.

A ParallelOperator runs a Divisible one. Its workers are threads of the coordinator. Each does the same, as long as
there is room for more elements: take the next task, which one worker at a time does, so that the input is read in
order; see to it that another worker comes while there is room; do the task; put the outcome where it belongs. In this
way nothing is handed from thread to thread but the finished elements, and those in runs (task_sizer.py).

**Order.** Where it must be kept, tasks that are done wait for those before them. How many elements may wait is bounded
by the window, which is much wider than there are workers: one slow element does not stop the others. Elements that
could be taken, but are not, are bounded by what the workers make in one go, or what the consumer asks for at a time.

**Cheap work** is done by the consumer itself, in its own thread, by the operator as it is. It makes nothing ahead then.

**Places.** Inputs have numbers, a task is made of a run of them. Whoever reads them leaves marks
(state/replay_log.py), and it is known which tasks are not done, or not given whole. A state is the last mark before the
first of these, and says which inputs behind it have been given. So nothing is waited for, nothing that was made is in
it, and after a resume, in order or not, the function is called for nothing that was given.

That takes an input that gives the same again. Over another, and where something waits that no number tells, a state
waits for the elements that are worked on, and holds what is made by value.

**Faults.** A failure of an element is an outcome. Whatever else is raised while a worker is here is a fault of the
library, after which nothing is known of the tasks: the coordinator stops the whole iteration with it.

**Ending.** Who closes the operator waits until no worker is in it. A worker that the coordinator has taken on always
runs, and leaves at once when it finds that it is not needed any more. Each visit of a worker is a member of a set until
it is over, so that entering and leaving are counted once, whatever is raised in between.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from functools import partial

from dataset.errors import ClosedError
from dataset.options import AUTOTUNE
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder, nbytes_of
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State
from dataset.runtime.metrics.background import BackgroundOperator, CpuClock, Tunable, Variation
from dataset.runtime.parallel.blocks import LARGE_BYTES, Block
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.parallel.task_sizer import LEASE, REMOTE_TASK_SECONDS, SIZE_MAX, TaskSizer
from dataset.runtime.parallel.tasks import Divisible, Run, Task, Worker
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.resources.interrupts import Condition
from dataset.runtime.state.replay_log import ReplayLog

GRACE_SECONDS = 2e-4
"""How long the consumer waits for the first worker before it calls others: cheap work is done by then."""

AHEAD_PER_VARIATION = 7
"""How many more rounds are made ahead of work that varies exponentially. In order, one slow element sets free many at
once that waited for it, and with room for one round only, the workers rest until these are taken: 8 workers that are as
quick as their consumer then took 1.7 times as long as ideal, and 1.2 times with room for eight rounds."""

VARIATION_MAX = 2.0

WAITING_BYTES_MAX = 64 << 20
"""Nothing more is begun while finished elements of this size wait for one before them."""


class ParallelOperator(Operator, BackgroundOperator):
    """Has the tasks of a Divisible operator done by several workers at once, as many as its knob says.

    One lock guards all fields, and the queue of finished elements. ``_filled`` wakes the consumer: there is enough to
    take, or nobody works on it. ``_left`` wakes who waits for the workers to leave.

    Args:
        inner: whose work it is. Its input is read by one thread at a time.
        build: gives the workers.
        calls: how many tasks are worked on at once, at most.
        pace: says how large they are, and whether the consumer's thread should do the work itself.
        ordered: whether elements come out in the order of the input.
        counted: whether the workers count against the coordinator's bound.
        in_processes: whether the workers only wait for processes, which do the work.
    """

    def __init__(
        self,
        inner: Divisible,
        build: ExecutionContext,
        calls: Tunable,
        pace: TaskSizer,
        *,
        ordered: bool,
        counted: bool = True,
        in_processes: bool = False,
    ) -> None:
        self.inner = inner
        self._build = build
        self.coordinator = build.coordinator
        self._account = build.ledger.account()
        self.counters = build.counters
        self.knob = calls
        self.in_processes = in_processes
        self._pulse = build.pulse
        self.ordered = ordered
        self.counted = counted
        self._ready = Pending()  # what workers have made, and may be taken
        self._lock = threading.RLock()  # reentrant: the garbage collector may call _stop in a thread that holds it
        self._filled = Condition(self._lock)
        self._left = Condition(self._lock)
        self._pace = pace
        self._hand = Remainder()  # what the consumer has taken out, and not yet asked for
        self._hand_bytes = 0  # counted for it, until it has been asked for whole
        self._lease = 0  # how often it may do the work itself before it looks at the pace
        self._leased = 0  # elements that this makes, about
        self._demand = 1  # how many elements the consumer asks for at a time
        self._wanted = 0  # for how many it waits; 0 while it does not
        self._tasks: deque[Task] = deque()  # in order, those that are not accepted; only where order is kept
        self._begun: set[Task] = set()  # the same where it is not kept
        # Where the inputs were, and what came of them, since workers were called last; the input is not read otherwise.
        self._trail: ReplayLog | None = None
        self._read = 0  # the number of the next input
        self._is_told = True  # whether the numbers of the tasks tell all that came of the inputs before that
        self._made = 0  # elements that were accepted
        self._taken = 0  # of these, those that are out of the workers' reach
        self._accepted: deque[tuple[int, int, range]] = deque()  # by task: _made behind it, of how many, its inputs
        self._stacks = False  # whether elements are written into blocks: not before it is known that they are large
        self._knows_size = not (ordered and inner.into_arrays)
        self._block: Block | None = None  # what the next task writes into, where elements are going to be stacked
        self._row = 0  # and from where on
        self._in_flight = 0  # elements that are worked on, or wait for those before them
        self._waiting_bytes = 0  # of those that wait
        self._visits: set[object] = set()  # one for each worker that is here, or on its way
        self._alone = pace.may_inline  # one worker is enough, as far as is known
        self._fetching = False  # one of them reads the input
        self._ended = False  # the input has no more
        self._paused = False
        self._stopped = False
        self._is_torn = (
            False  # a worker is putting outcomes into the queue, or has failed at that: nothing goes behind it
        )
        self._free: deque[Worker] = deque()
        self._variation = Variation()  # of the time that an element takes
        self.coordinator.register(self, self._stop)

    # The consumer's side.

    def pull(self, n: int) -> Chunk | None:
        if self._hand:
            return self._hand.give(n)
        if self._lease:
            self._lease -= 1
            return self.inner.pull(n)
        if self.coordinator.forked:  # asked before the lock, which a thread of the parent may have held
            self.coordinator.check_usable()
        while True:
            with self._lock:
                if self._hand_bytes:
                    self._account.release(self._hand_bytes)
                    self._hand_bytes = 0
                self._demand = max(n, self._demand * 7 // 8)  # a batch that is asked for in parts is still a batch
                inline = self.inline
                if self._is_enough(n) or (inline and self._ready):
                    return self._take(n)
            if inline:
                self._trail = None
                return self._pull_inline(n)
            if self._trail is None:
                self._begin()
            self._wait(n)

    def _begin(self) -> None:
        """Before workers are called: from here on, elements are known by the numbers of their inputs."""
        with self._lock:
            self._made = self._taken = 0
            self._accepted.clear()
            self._read, self._is_told = self.inner.position, True
            self._trail = ReplayLog(self.inner)
        self._leave_mark(self._trail)

    def seek(self, count: int) -> None:
        self.inner.seek(count)  # no worker has begun before the first pull

    def _is_enough(self, n: int) -> bool:
        """Whether there is no use in waiting for more."""
        ready = len(self._ready)
        has_ended = self._ended and not (
            self._in_flight or self._is_torn
        )  # torn: its worker is about to report a fault
        if ready >= n or self._ready.holds_failure or has_ended:
            return True
        return self._account.is_refused and ready > 0 and not self._active  # taking these makes room for others

    def _take(self, n: int) -> Chunk | None:
        """Up to ``n`` elements; what is behind them in one piece waits in ``_hand``, out of the workers' reach."""
        counted_bytes, ready = self._ready.counted_bytes, len(self._ready)
        try:
            chunk = self._ready.give_joined(max(n, self._pace.size))
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
            if 2 * len(self._ready) <= self._ahead():  # one that comes has something to do for a while
                with contextlib.suppress(RuntimeError, MemoryError):  # who finds nothing to take will be told
                    self._call_worker()

    def _wait(self, n: int) -> None:
        started = self.counters.waiting_since = time.perf_counter()
        with self.coordinator.blocked(), self._lock:
            self._wanted = n
            try:
                while not self._is_enough(n):
                    if self._stopped:
                        self.coordinator.check_usable()
                        raise ClosedError("this part of the pipeline has been closed")
                    if self.inline:
                        return
                    self._call_worker()
                    if not self._filled.wait(GRACE_SECONDS if self._alone else None):
                        self._alone = False
            finally:
                self._wanted = 0
            self.counters.add_wait(started, time.perf_counter())
            self._pace.waited(self.counters.waited_until - started)

    def _pull_inline(self, n: int) -> Chunk | None:
        started = time.perf_counter()
        chunk = self.inner.pull(n)
        if chunk is None:
            self._ended = True
            return None
        ended = time.perf_counter()
        self._pace.add_inline(chunk.length, ended - started)
        self.counters.taken += chunk.length + self._leased  # those that nobody has looked at were like the one before
        self._lease = LEASE if self._pace.is_settled else 0
        self._leased = self._lease * chunk.length
        if ended >= self._pulse.due:
            self._pulse.beat(ended)
        return chunk

    @property
    def inline(self) -> bool:
        """Whether the consumer does the work itself now: no worker is here, and none has lost a task to a fault."""
        return self._pace.inline and not (self._visits or self._in_flight or self._is_torn)

    @property
    def learned(self) -> tuple[float | None, int]:
        """What has come of trying to do the work inline."""
        return self._pace.learned

    def begin_with(self, learned: tuple[float | None, int]) -> None:
        with self._lock:
            if self._trail is None:  # nothing has begun
                self._pace.begin_with(learned)

    # How much may be made.

    def _size_max(self) -> int:
        return self.inner.task_size_max or max(SIZE_MAX, self._demand)

    def _ahead(self) -> int:
        """How many elements may be ready to be taken before the workers rest."""
        evening_out = 1 + AHEAD_PER_VARIATION * min(self._variation.squared, VARIATION_MAX) if self.ordered else 1.0
        return int(self.knob.value * self._pace.size * evening_out) + (self._demand if self._demand > 1 else 0)

    def _room(self) -> int:
        """How many elements the next task may make; 0 for no task now."""
        if self._fetching or self._ended or self._stopped or self._paused or self._pace.inline:
            return 0
        if self._active > self.knob.value:  # which has been turned down
            return 0
        if len(self._ready) >= self._ahead() or self._waiting_bytes > WAITING_BYTES_MAX:
            return 0
        window = max(self.inner.window_per_call * self.knob.value, 4 * self._demand)
        size = 1 if self.inner.must_go_singly else min(self._pace.size, self._size_max())
        if self._fills_blocks():
            size = min(size, self._demand if self._block is None else self._block.length - self._row)
        return max(0, min(size, window - self._in_flight - len(self._ready)))

    # The workers' side.

    @property
    def _active(self) -> int:
        """How many workers are here, or on their way."""
        return len(self._visits)

    def _call_worker(self) -> None:
        """Have another worker come, if there is something for it to do."""
        if self._active >= (1 if self._alone else self.knob.value) or not self._room():
            return
        visit = object()
        self._visits.add(visit)
        try:
            self.coordinator.submit(partial(self._work, visit), counted=self.counted)
        except BaseException as error:
            self._visits.discard(visit)
            # Closed meanwhile, or no more threads to be had: those that are there do the work.
            if not (self._active and isinstance(error, RuntimeError | MemoryError)):
                raise

    def _work(self, visit: object) -> None:
        """What a worker does."""
        try:
            with self._lock:
                if visit not in self._visits:  # the call was interrupted after it had been taken on
                    return
            try:
                worker = self._free.pop()
            except IndexError:
                worker = self.inner.worker()
            self._do_tasks(worker, visit)
            self._free.append(worker)
        except BaseException as error:  # noqa: BLE001  # raised by the iterator
            if not self._stopped:
                self.coordinator.fail(error, self.inner.node.located())
            with self._lock:
                self._leave(visit)

    def _do_tasks(self, worker: Worker, visit: object) -> None:
        clock = CpuClock()
        while (task := self._next_task(visit)) is not None:
            clock.begin()
            started = time.perf_counter()
            outcomes = worker(task)
            if task.block is not None:
                outcomes = task.block.write_all(task.row, outcomes)
            ended = time.perf_counter()
            seconds = ended - started
            # What a process computes is not seen here. It is taken to compute all the time.
            cpu_seconds = seconds if self.in_processes else clock.end(seconds)
            task.nbytes = sum(map(nbytes_of, outcomes))
            input_nbytes = 0 if task.inputs is None else task.inputs.nbytes
            task.inputs = None
            with self._lock:
                failed = sum(isinstance(outcome, BaseException) for outcome in outcomes)
                self._account.settle(task.count, task.count - failed, task.nbytes, input_nbytes)
                if not self.in_processes:
                    self._pace.calls = self.knob.value
                self._variation.add(seconds / task.count)
                self._pace.add(task.count, seconds, task.input_seconds, self._size_max())
                self.counters.add_task(task.count, task.nbytes, seconds, cpu_seconds, task.input_seconds)
                self._finish(task, outcomes)
            del task, outcomes  # or an exception among them would be kept while the next task runs
            if ended >= self._pulse.due:
                self._pulse.beat(ended)

    def _next_task(self, visit: object) -> Task | None:
        """The next task to do; None where the worker is not needed any more, and has left."""
        while True:
            with self._lock:
                size = self._room()
                size = size and self._reserve(size)
                if not size:
                    self._leave(visit)
                    return None
                self._fetching = True
            task = self._fetch(size)
            with self._lock:
                unused = size if task is None else size - task.count
                if unused:
                    self._account.settle(unused, 0, 0)
                if task is None:
                    self._ended, self._fetching = True, False
                    self._leave(visit)
                    return None
                self._read, self._is_told = self.inner.position, self.inner.may_be_marked
                self._in_flight += task.count
                self.counters.inputs += task.count if task.inputs is None else task.inputs.length
                if self.ordered:
                    self._tasks.append(task)
                else:
                    self._begun.add(task)
                self._fetching = False  # not before the task has its place, so that no fault lets another one take it
                if task.outcomes is not None:
                    task.nbytes = sum(map(nbytes_of, task.outcomes))
                    self._account.settle(task.count, 0, task.nbytes)
                    self._finish(task, task.outcomes)
                    continue
                if self._fills_blocks():
                    self._assign_rows(task)
                self._call_worker()
                return task

    def _reserve(self, wanted: int) -> int:
        """How many of the elements that are wanted may be begun, for the memory that they take."""
        size = self._account.reserve(wanted)
        self.counters.refusals += not size
        return size

    def _fills_blocks(self) -> bool:
        return self._stacks and (self._block is not None or self._demand > 1)

    def _assign_rows(self, task: Task) -> None:
        """A block for each chunk that the consumer is going to ask for, the rows in the order of the elements."""
        if self._block is None:
            self._block, self._row = Block(max(self._demand, task.count)), 0
        task.block, task.row = self._block, self._row
        self._row += task.count
        if self._row == self._block.length:
            self._block = None

    def _fetch(self, size: int) -> Task | None:
        started = time.perf_counter()
        first = self.inner.position
        try:
            while not (allowed := self.inner.pass_given(size)):
                if self._stopped:
                    return None
            first = self.inner.position
            if self._trail is not None:
                self._leave_mark(self._trail)
            task = self.inner.next_task(allowed)
        except BaseException as error:
            if concerns_iteration(error):
                raise
            task = Task(None, 0, 1, [error])  # raised in the consumer's thread, at its place
        if task is not None:
            task.numbers = range(first, self.inner.position)
            task.input_seconds = time.perf_counter() - started
        return task

    def _leave_mark(self, trail: ReplayLog) -> None:
        """Leave a mark if it is time for one. Called by who reads the input."""
        if not (self._build.repeats_input and self.inner.may_be_marked):
            return
        trail.read = self.inner.position
        if trail.step() and trail.is_long:
            with self._lock:
                first = self._first_not_given()
            trail.forget(first)

    def _finish(self, task: Task, outcomes: list[Outcome]) -> None:
        """Put the outcomes of a task where the consumer finds them when those before have come."""
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
        if self._wanted and self._is_enough(self._wanted):
            self._filled.notify()

    def _accept(self, task: Task) -> None:
        self._in_flight -= task.count
        self._waiting_bytes -= task.nbytes
        outcomes = list(self.inner.accept(task))
        if not outcomes:
            self._account.release(task.nbytes)
        ready = len(self._ready)
        for left, outcome in zip(reversed(range(len(outcomes))), outcomes, strict=True):
            self._ready.put(outcome, 0 if left else task.nbytes)  # all are counted until the last of them is taken
            if not self._knows_size and isinstance(outcome, Chunk):
                self._knows_size = True
                self._stacks = outcome.nbytes >= LARGE_BYTES * outcome.length
        self._count_made(len(self._ready) - ready, task.numbers)
        # The frames of an exception hold the task. Through it one that waits would hold another, which has been raised,
        # and with that the iterator.
        task.outcomes = None
        del outcomes

    def _count_made(self, count: int, numbers: range) -> None:
        accepted = self._accepted
        if not count:
            if not (self.ordered and accepted):
                return
            # In order, what comes to nothing is given with what comes before it. There may be very many of them.
            _, last_count, last = accepted[-1]
            if not last_count and last.stop == numbers.start:
                accepted.pop()
                numbers = range(last.start, numbers.stop)
        self._made += count
        accepted.append((self._made, count, numbers))

    def _leave(self, visit: object) -> None:
        self._visits.discard(visit)
        if not self._visits:
            self._left.notify_all()
        if self._wanted and (not self._active or self._is_enough(self._wanted)):
            self._filled.notify()

    # The ends, and what is between them.

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._filled.notify_all()
        self.inner.interrupt_tasks()

    @property
    def runs(self) -> str:
        """Where the work is done."""
        return "in processes" if self.in_processes else super().runs

    @property
    def capacity(self) -> int:
        """How many elements may be ready before the workers rest."""
        return self._ahead()

    def buffered(self) -> tuple[int, int]:
        """How many elements are held here, those that are worked on included, and the bytes of the finished ones."""
        with self._lock:
            return self._in_flight + len(self._ready), self._waiting_bytes + self._ready.nbytes

    def state_dict(self) -> State:
        if self.coordinator.forked:
            self.coordinator.check_usable()
        with self._lock:
            if self._trail is None:  # no worker has anything to do with it
                return self.inner.state_dict()
            place = self._place(self._trail) if self._build.repeats_input else None
        return self._state_by_value() if place is None else place

    @property
    def _given(self) -> int:
        """Of the elements that were accepted, how many have been given."""
        waiting = self._hand.rest()
        return self._taken - (0 if waiting is None else waiting.length)

    def _first_not_given(self) -> int:
        """The number of the first input that may be needed again. The consumer may be taking from its hand."""
        numbers = [numbers.start for _, _, numbers in self._accepted]
        numbers += [task.numbers.start for task in (self._tasks if self.ordered else self._begun)]
        return min(numbers, default=self._read)

    def _not_given(self) -> list[tuple[range, int]]:
        """The inputs of which something has not been given, in runs, and how much was given of what each run makes."""
        found = [(task.numbers, 0) for task in (self._tasks if self.ordered else self._begun)]
        given = self._given
        for made, count, numbers in self._accepted:
            if made > given:
                some = max(0, count - (made - given))
                found.append((numbers[some:], 0) if count == len(numbers) else (numbers, some))
        return sorted(found, key=_first_number)

    def _place(self, trail: ReplayLog) -> State | None:
        """Where the input was, and what has been given since; None where that does not say all."""
        waiting = self._not_given()
        if not waiting and not self._active:
            return self.inner.state_dict()
        mark = trail.mark_before(waiting[0][0].start if waiting else self._read)
        if mark is None or not self._is_told or not all(numbers for numbers, _ in waiting):
            return None
        number, state = mark
        runs: list[Run] = []
        for numbers, some in waiting:
            if numbers.start > number or some:
                runs.append((number, numbers.start - number, some))
            number = numbers.stop
        if number < self._read:
            runs.append((number, self._read - number, 0))
        return self.inner.with_given(state, runs, self._read)

    def _state_by_value(self) -> State:
        """Waits for the elements that are worked on, then saves what is held by value."""
        with self.coordinator.blocked(), self._lock:
            self._paused = True
            try:
                while self._active:
                    self._left.wait()
                self._put_back()
                self.inner.ready.take_from(self._ready)
                try:
                    return self.inner.state_dict()
                finally:
                    self._ready.take_from(self.inner.ready)
            finally:
                self._paused = False

    def _put_back(self) -> None:
        """Have all that waits in ``_ready``, and no more in the hand or behind what workers have made."""
        rest = self._hand.rest()
        if rest is not None:
            self._taken -= rest.length
            self._ready.put_first(rest, self._hand_bytes)
            self._hand, self._hand_bytes = Remainder(), 0
        if self.inner.ready:
            self._account.hold(self.inner.ready.counted_bytes)
            self._count_made(len(self.inner.ready), range(0))
            self._ready.take_from(self.inner.ready)

    def load_state_dict(self, state: State) -> None:
        self.inner.load_state_dict(state)

    def state_after(self, state: State, count: int) -> State | None:
        return self.inner.state_after(state, count) if self.ordered else None

    def close(self) -> None:
        if self.coordinator.forked:
            return
        self._stop()
        with self.coordinator.blocked(), self._lock:
            while self._active and not self.coordinator.has_ended:
                self._left.wait_held()
            self._ready.clear()
            self._tasks.clear()
            self._hand = Remainder()
            self._account.close()
        self.coordinator.unregister(self)
        self.inner.close()


def _first_number(waiting: tuple[range, int]) -> int:
    return waiting[0].start


def in_parallel(
    build: ExecutionContext,
    operator: Divisible,
    num_parallel_calls: int | None,
    deterministic: bool | None,
    *,
    counted: bool = True,
    in_processes: bool = False,
    stages: int = 1,
) -> Operator:
    """The operator, or one that has its work done by several workers where the user asked for that.

    An operator of several stages gets as many for each.
    """
    calls = build.parallel_calls(num_parallel_calls)
    if calls is None:
        return operator
    if calls.is_fixed:
        calls = Tunable(calls.name, calls.value * stages)
    if in_processes:
        operator.open_processes(calls.maximum)
    ordered = build.keeps_order(deterministic)
    if not ordered:
        build.say_unrepeatable()
    pace = TaskSizer(REMOTE_TASK_SECONDS, may_inline=False) if in_processes else TaskSizer()
    return ParallelOperator(operator, build, calls, pace, ordered=ordered, counted=counted, in_processes=in_processes)


def parallel_detail(num_parallel_calls: int | None, deterministic: bool | None) -> str:
    """How plans show the parallelism of an op."""
    if num_parallel_calls is None:
        return ""
    calls = "AUTOTUNE" if num_parallel_calls == AUTOTUNE else num_parallel_calls
    return f"{calls} parallel calls{', in any order' if deterministic is False else ''}"
