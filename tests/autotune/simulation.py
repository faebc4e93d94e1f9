"""A pipeline in virtual time: a discrete-event simulation that the model and the tuner are tested against.

No thread, no clock and no sleep is real, so a minute of work takes a moment and comes out the same each time. Threads
are generators: they yield while they sleep, compute, or wait to be woken, and a Machine resumes them in the order of
time. Their code follows the runtime's, line by line where it matters: who rests when, who wakes whom.

**Physics.** ``cores`` are shared equally: of k parts that compute, each advances at the speed min(1, cores / k). What
needs the interpreter's lock gets it in turns, as in CPython, which takes it away after 5 ms. Sleeping costs nobody
anything. Starting a thread and handing over a task takes the lock for a while. Other processes need only a core.

Example, a consumer that takes 2 ms per element of a parallel map that computes for 3 ms::

    decode = ParallelMap("decode", Work(compute=3e-3), calls=Tunable("num_parallel_calls", 2))
    simulation = Simulation([decode], Work(wait=2e-3), cores=2)
    simulation.run(elements=1000)
    assert simulation.period(since=100) == pytest.approx(2e-3)
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from dataset.runtime.choice import Action
from dataset.runtime.metrics.background import Counters, Tunable
from dataset.runtime.parallel.controller import PROCESSES, SIZE_MAX, THREADS, Clock, Controller
from dataset.runtime.parallel.pool import INLINE_MAX, INLINE_SECONDS

Thread: TypeAlias = Generator[None, None, None]

STEAL_STEP = 0.01
"""Seconds after which, at the latest, the machine looks again what share of its cores others take."""

SWITCH_SECONDS = 5e-3
"""How long a thread may keep the lock while others wait for it."""

THREAD_SECONDS = 1e-4
HANDOVER_SECONDS = {THREADS: 2e-5, PROCESSES: 2e-4}
"""What starting a thread and handing over a task cost, with the lock."""

PARTS_MAX = 32
"""In how many parts the elements of a task are simulated, at most."""

WINDOW_PER_CALL = 32
"""Elements that may be on their way in a parallel map for each worker, as in runtime/parallel/tasks.py."""


class Sharing:
    """Threads that compute at the same speed. Each has the same progress since it began, so one clock does for all."""

    def __init__(self) -> None:
        self.progress = 0.0
        self.ends: list[tuple[float, int, Thread]] = []  # the progress at which each is done, in a heap

    def __len__(self) -> int:
        return len(self.ends)

    def add(self, seconds: float, count: int, thread: Thread) -> None:
        heapq.heappush(self.ends, (self.progress + seconds, count, thread))

    def seconds_left(self, speed: float) -> float:
        """Until the first of them is done."""
        return (self.ends[0][0] - self.progress) / speed if self.ends and speed else math.inf

    def advance(self, progress: float) -> None:
        self.progress = self.progress + progress if self.ends else 0.0  # beginning anew keeps it exact

    def pop(self) -> Thread:
        self.progress, _, thread = heapq.heappop(self.ends)
        return thread


class Machine:
    """Cores, a lock and a clock, and the threads that use them. ``now`` is in seconds."""

    def __init__(self, cores: float, steal: Callable[[float], float] | None = None) -> None:
        self.cores = cores
        self.steal = steal
        self.now = 0.0
        self.cpu_seconds = 0.0  # of this process
        cpu_seconds = lambda: self.cpu_seconds  # of the process, and here also of the thread
        self.clock = Clock(lambda: self.now, cpu_seconds, lambda: self._switches[self._running], cpu_seconds)
        self._current: Thread | None = None
        self._switches: Counter[Thread] = Counter()
        self._count = 0  # breaks ties in the heaps: first come, first served
        self._awake: deque[Thread] = deque()
        self._asleep: list[tuple[float, int, Thread]] = []
        self._computing = Sharing()
        self._locked: deque[tuple[float, Thread]] = deque()  # the seconds left of the lock's owner and those who wait
        self._turn = 0.0  # how long the owner may still keep it
        self._remote = Sharing()  # those that compute in other processes

    def start(self, thread: Thread) -> None:
        self._awake.append(thread)

    def wake(self, thread: Thread) -> None:
        """Let a parked thread go on."""
        self._awake.append(thread)

    @property
    def _running(self) -> Thread:
        assert self._current is not None
        return self._current

    def parking(self) -> Thread:
        """The current thread, which must yield now, until somebody wakes it."""
        self._switches[self._running] += 1
        return self._running

    def working(self, work: Work, factor: float) -> Thread:
        """Do this many times the work, here."""
        locked = work.compute * factor * work.lock_share
        return self.doing(work.wait * factor, work.compute * factor - locked, locked)

    def doing(self, wait: float, compute: float, locked: float, *, remotely: bool = False) -> Thread:
        """Sleep, then compute, then compute with the lock held, for so many seconds each. To be yielded from."""
        self._count += 1
        count = self._count
        if wait:
            heapq.heappush(self._asleep, (self.now + wait, count, self.parking()))
            yield
        if compute:
            (self._remote if remotely else self._computing).add(compute, count, self._running)
            yield
        if locked:
            if len(self._locked) == 1:
                self._turn = SWITCH_SECONDS
            self._locked.append((locked, self.parking() if self._locked else self._running))
            yield

    def run_until(self, is_over: Callable[[], bool], until: float) -> None:
        """Let things happen until ``is_over``, or the clock shows ``until``."""
        while not is_over():
            if self._awake:
                self._resume(self._awake.popleft())
            elif not self._advance(until):
                return

    def _resume(self, thread: Thread) -> None:
        self._current = thread
        next(thread, None)

    def _advance(self, until: float) -> bool:
        """Go to the next event and wake who waits for it; False where ``until`` comes first."""
        speed = self._speed()
        computing, remote = self._computing.seconds_left(speed), self._remote.seconds_left(speed)
        locked = math.inf
        if self._locked and speed:
            owned = self._locked[0][0]
            locked = (owned if len(self._locked) == 1 else min(owned, self._turn)) / speed
        asleep = self._asleep[0][0] - self.now if self._asleep else math.inf
        look = STEAL_STEP if self.steal else math.inf
        seconds = max(0.0, min(computing, remote, locked, asleep, look, until - self.now))
        if seconds == math.inf or (seconds == look and until == math.inf and not self._is_busy()):
            raise AssertionError(f"nothing can happen any more after {self.now} s: every thread waits to be woken")
        progress = seconds * speed
        self.cpu_seconds += progress * len(self._computing)
        self._computing.advance(progress)
        self._remote.advance(progress)
        self.now += seconds
        if self._locked:
            self._use_lock(progress, is_over=seconds == locked)
        if seconds == computing:
            self._awake.append(self._computing.pop())
        elif seconds == remote:
            self._awake.append(self._remote.pop())
        elif self._asleep and seconds >= asleep:
            self.now, _, thread = heapq.heappop(self._asleep)
            self._awake.append(thread)
        return bool(self._awake) or self.now < until

    def _use_lock(self, progress: float, *, is_over: bool) -> None:
        self.cpu_seconds += progress
        left, owner = self._locked.popleft()
        is_done = is_over and (not self._locked or left <= self._turn)
        self._turn -= progress
        if is_done:
            self._awake.append(owner)
        elif is_over:
            self._locked.append((left - progress, owner))
        else:
            self._locked.appendleft((left - progress, owner))
        if is_over:
            self._turn = SWITCH_SECONDS

    def _is_busy(self) -> bool:
        return bool(self._computing or self._locked or self._remote or self._asleep)

    def _speed(self) -> float:
        cores = self.cores * (1 - self.steal(self.now)) if self.steal else self.cores
        return min(1.0, cores / max(1, len(self._computing) + len(self._remote) + bool(self._locked)))


@dataclass(frozen=True)
class Work:
    """What an element costs on average, in seconds. One draw scales all parts of an element's work.

    Attributes:
        wait: asleep.
        compute: busy on a core.
        lock_share: of ``compute``, with the interpreter's lock held.
        law: of the draws: "constant", "exponential" or "lognormal".
        cv: coefficient of variation of the lognormal draws.
        crowded: how many times as much it computes in a worker thread, as libraries do that have threads of their own.
    """

    wait: float = 0.0
    compute: float = 0.0
    lock_share: float = 0.0
    law: str = "constant"
    cv: float = 1.0
    crowded: float = 1.0

    @property
    def seconds(self) -> float:
        return self.wait + self.compute

    @property
    def is_simple(self) -> bool:
        """Whether the work of several elements is one part."""
        return self.law == "constant" and [self.wait, self.compute].count(0.0) > 0 and self.lock_share in {0, 1}


Schedule: TypeAlias = Work | Callable[[int], Work]
"""What each element costs, or a function that tells it by the element's number, for work that changes."""


class Draws:
    """Random factors with a mean of 1, drawn in blocks, which is quick."""

    BLOCK = 1024

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._blocks: dict[object, list[float]] = {}

    def factor(self, work: Work) -> float:
        if work.law == "constant":
            return 1.0
        key = work.law if work.law == "exponential" else work.cv
        block = self._blocks.get(key)
        if not block:
            block = self._blocks[key] = self._draw(work).tolist()
        return block.pop()

    def _draw(self, work: Work) -> np.ndarray:
        if work.law == "exponential":
            return self.rng.exponential(size=self.BLOCK)
        variance = math.log1p(work.cv**2)
        return self.rng.lognormal(-variance / 2, math.sqrt(variance), self.BLOCK)


class Source:
    """Gives whatever is asked for, at once: what is below the last stage."""

    def pull(self, n: int) -> Thread:
        yield from ()


class SimulatedStage:
    """What the kinds of stages share. It is a Stage, as runtime/metrics/background.py defines it.

    Args:
        name: for who reads it.
        work: what an element costs.
        knob: how many workers, or how many elements are held.
        takes: elements of the stage below that one of this takes: 32 behind a batch of 32, 0.5 where one gives two.
        nbytes: of an element, or a function that draws it.
    """

    relays = inline = False
    is_settled = True
    actions: ClassVar[deque[Action]] = deque()

    def __init__(
        self,
        name: str,
        work: Schedule,
        knob: Tunable,
        *,
        takes: float = 1.0,
        nbytes: int | Callable[[np.random.Generator], int] = 0,
    ) -> None:
        self.name = name
        self.knob = knob
        self.runs = "in threads"
        self.takes = takes
        self.counters = Counters()
        self._work = work
        self._nbytes = nbytes
        self._ready: deque[int] = deque()  # bytes of each element
        self._finished_bytes = 0
        self._begun = 0  # elements, ever
        self._owed = 0.0  # elements to be taken from below, the fraction that is left
        self._taker: Thread | None = None  # waits for elements

    def open(self, simulation: Simulation, below: SimulatedStage | Source, rng: np.random.Generator) -> None:
        self.simulation = simulation
        self.machine = simulation.machine
        self.below = below
        self._draws = Draws(rng)

    def buffered(self) -> tuple[int, int]:
        raise NotImplementedError

    def pull(self, n: int) -> Thread:
        """What who takes ``n`` elements goes through."""
        raise NotImplementedError

    def work_of(self, number: int) -> Work:
        return self._work(number) if callable(self._work) else self._work

    def _fetching(self, elements: int) -> Thread:
        """Take what so many elements need from below."""
        self._owed += self.takes * elements
        count = int(self._owed)
        self._owed -= count
        self.counters.inputs += count
        if count:
            yield from self.below.pull(count)

    def _working(
        self, elements: int, *, remotely: bool = False, in_thread: bool = False
    ) -> Generator[None, None, tuple[list[int], float]]:
        """Do the work of some elements; returns the bytes of each, and the CPU seconds."""
        numbers = range(self._begun, self._begun + elements)
        self._begun += elements
        is_one = isinstance(self._work, Work) and self._work.is_simple  # then it may be simulated as one part
        total = 0.0
        together = elements if is_one else -(-elements // PARTS_MAX)
        for number in numbers[::together]:
            work = self.work_of(number)
            factor = self._draws.factor(work) * min(together, numbers.stop - number)
            compute = work.compute * factor * (work.crowded if in_thread else 1)
            locked = 0.0 if remotely else compute * work.lock_share
            total += compute
            yield from self.machine.doing(work.wait * factor, compute - locked, locked, remotely=remotely)
        draw = self._nbytes
        nbytes = [draw(self._draws.rng) for _ in range(elements)] if callable(draw) else [draw] * elements
        return nbytes, total

    def _put(self, nbytes: int) -> None:
        self._ready.append(nbytes)

    def _hold(self, nbytes: int) -> None:
        """Count the bytes of a finished element; less than 0 when it goes."""
        self._finished_bytes += nbytes
        self.simulation.count_bytes(nbytes)

    def _take(self, n: int) -> None:
        for _ in range(n):
            self._hold(-self._ready.popleft())
        self.counters.taken += n
        self.simulation.freed()

    def _count_wait(self, since: float) -> None:
        self.counters.waiting_since = 0.0
        if self.machine.now > since:
            self.counters.add_wait(since, self.machine.now)

    def _look(self) -> None:
        self.counters.least_ready = min(self.counters.least_ready, len(self._ready))

    def _wake_taker(self) -> None:
        if self._taker is not None:
            taker, self._taker = self._taker, None
            self.machine.wake(taker)

    def _is_admitted(self, is_needed: bool) -> bool:
        """Whether one more may be begun. What somebody waits for always may, or nothing would ever be freed."""
        if self.simulation.admit is None or is_needed or self.simulation.admit(self):
            return True
        self.counters.refusals += 1
        self.simulation.refused.append(self)
        return False

    def go_on(self) -> None:
        """Look again whether there is something to do."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class SimulatedRecord:
    """Record of a simulated stage, as far as the tuner reads one (runtime/metrics/op_record.py)."""

    name: str
    stage: SimulatedStage
    inputs: tuple[SimulatedRecord, ...] = ()

    def stages(self) -> tuple[SimulatedRecord, ...]:
        return self.inputs

    def walk(self) -> Iterator[SimulatedRecord]:
        yield self
        for record in self.inputs:
            yield from record.walk()


class FixedWay:
    """Stands for a controller that compares nothing: tasks have one element.

    Attributes:
        inline: whether the consumer does the work itself.
    """

    size = 1
    pull_max = 1 << 30
    measures = in_processes = is_starting = False
    is_settled = True
    actions: ClassVar[deque[Action]] = deque()

    def __init__(self, knob: Tunable | None = None, clock: Clock | None = None, *, inline: bool = False) -> None:
        self.inline = inline

    def begin_inline(self) -> None: ...

    def end_inline(self, count: int, size_max: int) -> float:
        return 1.0  # nothing is computed ahead

    def lease(self, count: int, seconds: float) -> int:
        return 0

    def waited(self, since: float, until: float) -> None: ...

    def add(self, count: int, seconds: float, size_max: int, now: float, waiting_since: float) -> None: ...


class ParallelMap(SimulatedStage):
    """Up to ``calls.value`` workers and a consumer that may do the work itself, as in runtime/parallel/pool.py.

    Args:
        input_work: what reading an input costs, which one worker does at a time; besides, it waits for those below.
        control: makes the controller, of the knob and the clock.
    """

    def __init__(self, name: str, work: Schedule, calls: Tunable | int = 1, *, input_work: Work = Work(),
                 takes: float = 1.0,
                 control: Callable[[Tunable, Clock], Controller | FixedWay] = FixedWay,
                 nbytes: int | Callable[[np.random.Generator], int] = 0) -> None:  # fmt: skip
        knob = calls if isinstance(calls, Tunable) else Tunable("num_parallel_calls", calls)
        super().__init__(name, work, knob, takes=takes, nbytes=nbytes)
        self.input_work = input_work
        self._control = control
        self._threads = 0  # that were ever started
        self._active = 0
        self._reads = False  # a worker reads the input, or is about to
        self._tasks: deque[list[int]] = deque()  # the bytes of each element of a task; none until it is done
        self._in_flight = 0  # elements of these tasks
        self._hand = self._lease = self._leased = self._wanted = self._due = 0  # as in the pool
        self._step = self._demand = 1
        self._is_logged = self._has_waited = False

    def open(self, simulation: Simulation, below: SimulatedStage | Source, rng: np.random.Generator) -> None:
        super().open(simulation, below, rng)
        self.controller = self._control(self.knob, self.machine.clock)

    @property
    def inline(self) -> bool:  # type: ignore[override]
        return self.controller.inline and not (self._active or self._in_flight)

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        return self.controller.is_settled

    @property
    def actions(self) -> deque[Action]:  # type: ignore[override]
        return self.controller.actions

    def buffered(self) -> tuple[int, int]:
        return self._in_flight + len(self._ready), self._finished_bytes

    @property
    def capacity(self) -> int:
        return self._ahead()

    # The consumer's side

    def pull(self, n: int) -> Thread:
        while n:
            if n != self._due:
                self._demand = max(n, self._demand * 7 // 8)
                if self.controller.measures:
                    self.controller.requested(self.counters.taken - self._hand)
            given = min(n, self._hand) or (yield from self._pull(n))
            self._hand -= given
            self._due = n = n - given

    def _pull(self, n: int) -> Generator[None, None, int]:
        """Put elements into the hand; returns how many of them to give."""
        if n <= self._lease:
            self._lease -= n
            yield from self._compute(n)
        else:
            yield from self._meet(n)
        return min(n, self._hand)

    def _meet(self, n: int) -> Thread:
        while not self._hand:
            if len(self._ready) >= n or (self.inline and self._ready):
                self._take_ready(n)
            elif self.inline:
                yield from self._pull_inline(n)
            else:
                self._has_waited = True
                yield from self._wait(n)

    def _take_ready(self, n: int) -> None:
        self._look()
        most = max(n, INLINE_MAX if self.controller.inline else self.controller.size)
        self._hand = min(len(self._ready), most)
        self._take(self._hand)
        if 2 * len(self._ready) <= self._ahead():
            self._call_worker()

    def _wait(self, n: int) -> Thread:
        started = self.machine.now
        self._wanted = n
        while len(self._ready) < n and not self.inline:
            self._call_worker()
            self.counters.waiting_since = max(started, 1e-12)  # 0 says that nobody waits
            self._taker = self.machine.parking()
            yield
        self._wanted = 0
        self._count_wait(started)
        self.controller.waited(started, self.machine.now)

    def _pull_inline(self, n: int) -> Thread:
        controller = self.controller
        n = min(n, controller.pull_max)
        count = n + max(0, self._step - n) // self._demand * self._demand
        if controller.is_starting:
            count = min(n, self._step)
        elif 2 * self._demand > self._step and (not self._is_logged or self._has_waited):
            count, self._is_logged = n, False
        else:
            self._is_logged = True
        self._has_waited = False
        controller.begin_inline()
        nbytes = yield from self._compute(count)
        seconds = controller.end_inline(count, self._size_max())
        self._step = max(1, min(2 * count, INLINE_MAX, int(INLINE_SECONDS / max(1e-9, seconds) * count)))
        self._lease = controller.lease(count, seconds) if not self._is_logged and self._step <= n else 0
        if self._is_logged:
            for size in nbytes:
                self._hold(size)
                self._put(size)
            self._take_ready(n)
        else:
            self.counters.taken += count + self._leased
            self._leased = self._lease
        self.simulation.tick()

    def _compute(self, count: int) -> Generator[None, None, list[int]]:
        yield from self._reading(count)
        nbytes, _ = yield from self._working(count)
        self._hand = 0 if self._is_logged else count
        return nbytes

    def _size_max(self) -> int:
        return max(SIZE_MAX, self._demand)

    def _ahead(self) -> int:
        return self.knob.value * self.controller.size + (self._demand if self._demand > 1 else 0)

    # The workers' side

    def _room(self) -> int:
        if self._reads or self.controller.inline or self._active > self.knob.value:
            return 0
        if len(self._ready) >= self._ahead():
            return 0
        window = max(WINDOW_PER_CALL * self.knob.value, 4 * self._demand)
        ahead = self._in_flight + len(self._ready)
        size = min(self.controller.size, self._size_max(), window - ahead)
        is_needed = not self._tasks and len(self._ready) < self._wanted
        return size if size > 0 and self._is_admitted(is_needed) else 0

    def go_on(self) -> None:
        self._call_worker()

    def _call_worker(self) -> None:
        if self._active < self.knob.value and self._room():
            self._active += 1
            self._reads = True
            self.machine.start(self._run())

    def _run(self) -> Thread:
        if self._active > self._threads:
            self._threads += 1
            yield from self.machine.doing(0, 0, THREAD_SECONDS)
        remotely = self.controller.in_processes
        self._reads = False
        while size := self._room():
            self._reads = True
            task: list[int] = []
            self._tasks.append(task)
            self._in_flight += size
            started = self.machine.now
            yield from self._reading(size)
            self._reads = False
            self._call_worker()
            if isinstance(self.controller, Controller):
                yield from self.machine.doing(0, 0, HANDOVER_SECONDS[PROCESSES if remotely else THREADS])
            began = self.machine.now
            nbytes, cpu_seconds = yield from self._working(size, remotely=remotely, in_thread=not remotely)
            task += nbytes
            seconds = self.machine.now - began
            self.counters.add_task(size, sum(nbytes), seconds, seconds if remotely else cpu_seconds, began - started)
            self._finish(task)
            self.controller.add(size, seconds, self._size_max(), self.machine.now, self.counters.waiting_since)
            self._tell_consumer()
            self.simulation.tick()
        self._active -= 1
        self._tell_consumer()

    def _tell_consumer(self) -> None:
        if self._wanted and (len(self._ready) >= self._wanted or not self._active):
            self._wake_taker()

    def _reading(self, count: int) -> Thread:
        yield from self._fetching(count)
        factor = sum(self._draws.factor(self.input_work) for _ in range(count)) if self.input_work.seconds else 0.0
        yield from self.machine.working(self.input_work, factor)

    def _finish(self, task: list[int]) -> None:
        self._hold(sum(task))
        while self._tasks and self._tasks[0]:
            self._accept(self._tasks.popleft())

    def _accept(self, task: list[int]) -> None:
        self._in_flight -= len(task)
        for nbytes in task:
            self._put(nbytes)


class Prefetch(SimulatedStage):
    """One thread that pulls from below, as in ops/prefetch.py: it holds up to ``size.value`` elements.

    ``work`` is what the ops cost that stand between it and the stage below, in its thread.
    """

    def __init__(self, name: str, work: Schedule = Work(), size: Tunable | int = 2, *, takes: float = 1.0,
                 nbytes: int | Callable[[np.random.Generator], int] = 0) -> None:  # fmt: skip
        knob = size if isinstance(size, Tunable) else Tunable("buffer_size", size)
        super().__init__(name, work, knob, takes=takes, nbytes=nbytes)
        self._held = 0  # elements that are ready, and the one in the making
        self._is_open = False
        self._resting: Thread | None = None

    relays = True

    def buffered(self) -> tuple[int, int]:
        return self._held, self._finished_bytes

    @property
    def capacity(self) -> int:
        return self.knob.value

    def pull(self, n: int) -> Thread:
        if not self._is_open:
            self._is_open = True
            self.machine.start(self._run())
        self._look()
        while n:
            started = self.machine.now
            while not self._ready:
                self.counters.waiting_since = max(started, 1e-12)  # 0 says that nobody waits
                self._taker = self.machine.parking()
                yield
            self._count_wait(started)
            count = min(n, len(self._ready))
            n -= count
            self._take(count)
            self._held -= count
            self.go_on()

    def go_on(self) -> None:
        if self._resting is not None:
            resting, self._resting = self._resting, None
            self.machine.wake(resting)

    def _run(self) -> Thread:
        while True:
            started = self.machine.now
            while self._held >= self.knob.value or not self._is_admitted(not self._held):
                self._resting = self.machine.parking()
                yield
            self.counters.rest_seconds += self.machine.now - started
            self._held += 1
            started = self.machine.now
            yield from self._fetching(1)
            (nbytes,), cpu_seconds = yield from self._working(1)
            self.counters.add_task(1, nbytes, self.machine.now - started, cpu_seconds, 0.0)
            self._hold(nbytes)
            self._put(nbytes)
            self._wake_taker()
            self.simulation.tick()


class Simulation:
    """A pipeline that works in virtual time.

    Args:
        stages: from the consumer's side down.
        consumer: what it does with each element, and the ops in its thread.
        takes: elements of the first stage that make one for the consumer.
        cores: that the machine has.
        steal: tells for a time, in seconds, what share of the cores others use.
        admit: asked before a stage begins an element that nobody waits for; where it says no, the stage rests until
            something is taken somewhere.
        seed: of all that is random.

    Attributes:
        now: virtual seconds since the beginning.
        times: when the consumer was done with each element.
        cpu_seconds: how long cores were busy, the consumer's included.
        held_bytes: of finished elements in all stages.
        peak_bytes: the most of these that ever were.
    """

    def __init__(
        self,
        stages: list[SimulatedStage],
        consumer: Schedule = Work(),
        *,
        takes: float = 1.0,
        cores: float = 2,
        steal: Callable[[float], float] | None = None,
        admit: Callable[[SimulatedStage], bool] | None = None,
        seed: int = 0,
    ) -> None:
        self.machine = Machine(cores, steal)
        self.stages = stages
        self.admit = admit
        self.refused: list[SimulatedStage] = []
        self.times: list[float] = []
        self.held_bytes = self.peak_bytes = 0
        self._on_time: Callable[[float], None] | None = None
        self._consumer = consumer
        rngs = [np.random.default_rng([seed, number]) for number in range(len(stages) + 1)]
        belows = [*stages[1:], Source()]
        for stage, below, rng in zip(stages, belows, rngs, strict=False):
            stage.open(self, below, rng)
        self._draws = Draws(rngs[-1])
        self.machine.start(self._consume(stages[0] if stages else Source(), takes))

    @property
    def now(self) -> float:
        return self.machine.now

    @property
    def cpu_seconds(self) -> float:
        return self.machine.cpu_seconds

    def run(
        self,
        elements: float = math.inf,
        until: float = math.inf,
        on_time: Callable[[float], None] | None = None,
    ) -> None:
        """Let the consumer take so many more elements, or the clock come to ``until``, whichever is first.

        ``on_time`` is called with the time whenever a task has ended or the consumer was done with an element.
        """
        if not math.isfinite(elements) and not math.isfinite(until):
            raise ValueError("run: say for how many elements, or until when")
        self._on_time = on_time
        wanted = len(self.times) + elements
        self.machine.run_until(lambda: len(self.times) >= wanted, until)

    def period(self, since: int = 0) -> float:
        """Seconds per element of the consumer, after the element ``since``."""
        times = self.times[since:]
        return (times[-1] - times[0]) / (len(times) - 1)

    def tick(self) -> None:
        """Something has been done."""
        if self._on_time is not None:
            self._on_time(self.machine.now)

    def count_bytes(self, nbytes: int) -> None:
        """Finished elements of so many bytes are held more."""
        self.held_bytes += nbytes
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def freed(self) -> None:
        """Elements were taken, so that stages which were refused may look again."""
        refused, self.refused = self.refused, []
        for stage in dict.fromkeys(refused):
            stage.go_on()

    def _consume(self, first: SimulatedStage | Source, takes: float) -> Thread:
        owed = 0.0
        while True:
            owed += takes
            count = int(owed)
            owed -= count
            if count:
                yield from first.pull(count)
            number = len(self.times)
            work = self._consumer(number) if callable(self._consumer) else self._consumer
            yield from self.machine.working(work, self._draws.factor(work))
            self.times.append(self.machine.now)
            self.tick()
            self.machine.wake(self.machine.parking())  # so that the simulation may end here
            yield
