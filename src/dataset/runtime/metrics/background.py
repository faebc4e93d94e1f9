"""Background operators: the counters that they update, and the knob that may be changed while they run.

A *stage* is an operator with work of its own in the background: a prefetch, a parallel map, a parallel interleave. It
updates its counters under its own lock and reads its knob without one. The autotuner and ``iterator.stats()`` read the
counters without a lock: they only grow, and a slightly outdated value does no harm.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from dataset.amounts import ENDLESS
from dataset.runtime.choice import Learned
from dataset.runtime.metrics.scheduling_times import CoreWait
from dataset.world import time


@dataclass(slots=True, eq=False)
class Counters:
    """Counters of a stage since it was opened.

    Attributes:
        inputs: elements read from below.
        elements: elements computed; an exception counts as one.
        nbytes: their size, as far as known.
        tasks: runs of elements that were computed together.
        work_seconds: the duration of the tasks over all workers, without reading their inputs.
        cpu_seconds: their CPU time. The difference from ``work_seconds`` was spent waiting: for files, for other
            threads that hold the interpreter lock, or for a core.
        squares: the sum over the elements of the squared ``work_seconds`` of each, for the variance. Elements of one
            task count as equally long.
        input_seconds: the time for reading the inputs, which one worker at a time does.
        taken: elements handed to the consumer, which is the op above.
        wait_seconds: how long the consumer waited for them.
        waits: how often it waited.
        waited_until: the end of its last wait on the clock of ``time.perf_counter``. The rate between two such moments
            is exact, even if elements arrive in bursts.
        taken_before: how many elements it had taken by then.
        waiting_since: the start of the current wait on the same clock; 0 if there is none.
        rest_seconds: how long a thread of the stage waited for room. Only for stages with a thread of their own.
        least_ready: the smallest number of finished elements that a consumer found; its reader may reset it.
        refusals: how often no task was begun for lack of memory.
        by_source: for an op that mixes datasets, the number of elements from each; otherwise empty.
        core_wait: how long the threads of the stage wait for a core.
        trace: is called with the count, the seconds and the worker of each task; None if they are not traced.
    """

    inputs: int = 0
    elements: int = 0
    nbytes: int = 0
    tasks: int = 0
    work_seconds: float = 0.0
    cpu_seconds: float = 0.0
    squares: float = 0.0
    input_seconds: float = 0.0
    taken: int = 0
    wait_seconds: float = 0.0
    waits: int = 0
    waited_until: float = 0.0
    taken_before: int = 0
    waiting_since: float = 0.0
    rest_seconds: float = 0.0
    least_ready: int = ENDLESS
    refusals: int = 0
    by_source: list[int] = field(default_factory=list)
    core_wait: CoreWait = field(default_factory=CoreWait)
    trace: Callable[[int, float, str], None] | None = None

    def add_task(
        self,
        count: int,
        nbytes: int,
        seconds: float,
        cpu_seconds: float,
        input_seconds: float,
        worker: str = "",
        *,
        ended: float | None = None,
    ) -> None:
        """Count a task that ended at ``ended`` on the clock of ``time.perf_counter``; by default, that is now.

        ``worker`` names the process that has done it, if it is another one.
        """
        self.elements += count
        self.nbytes += nbytes
        self.tasks += 1
        self.work_seconds += seconds
        self.cpu_seconds += cpu_seconds
        self.squares += seconds * seconds / count
        self.input_seconds += input_seconds
        if not worker:
            self.core_wait.look(time.perf_counter() if ended is None else ended)
        if self.trace is not None:
            self.trace(count, seconds, worker)

    def add_wait(self, since: float, until: float) -> None:
        """Count a finished wait of the consumer, on the clock of ``time.perf_counter``."""
        self.waited_until, self.waiting_since = until, 0.0
        self.taken_before = self.taken
        self.waits += 1
        self.wait_seconds += until - since
        self.least_ready = 0

    def reset_least_ready(self) -> None:
        """Restart the minimum ``least_ready``."""
        self.least_ready = ENDLESS


class Tunable:
    """Tunable: a number that a stage reads each time it needs it, and that the autotuner may change meanwhile.

    Attributes:
        name: the name of the argument: ``num_parallel_calls`` or ``buffer_size``.
        value: the current value.
        minimum, maximum: the bounds of the value; both equal ``value`` if the user has given a number.
    """

    __slots__ = ("maximum", "minimum", "name", "value")

    def __init__(self, name: str, value: int, minimum: int | None = None, maximum: int | None = None) -> None:
        self.name = name
        self.value = value
        self.minimum = value if minimum is None else minimum
        self.maximum = value if maximum is None else maximum

    @property
    def is_fixed(self) -> bool:
        """Whether the value must stay as it is."""
        return self.minimum == self.maximum

    def __repr__(self) -> str:
        span = "fixed" if self.is_fixed else f"{self.minimum} to {self.maximum}"
        return f"Tunable({self.name}={self.value}, {span})"


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """What one worker of a distributed pipeline has done.

    Attributes:
        rank: the number of the worker, from 0.
        elements: how many elements have arrived from it.
        elements_per_second: the same per second of the iteration.
        waiting: the part of the time in which it computed nothing.
        restarts: how often it was replaced.
        node: the machine on which it runs; empty for this one.
        memory: its resident memory in bytes; 0 if unknown.
    """

    rank: int
    elements: int
    elements_per_second: float
    waiting: float
    restarts: int
    node: str
    memory: int


class _Controller(Protocol):
    """What decides who does the work of a stage (runtime/parallel/controller.py)."""

    @property
    def is_settled(self) -> bool: ...
    @property
    def is_comparing(self) -> bool: ...
    @property
    def actions(self) -> deque[Any]: ...
    @property
    def learned(self) -> Learned | None: ...
    def warm_start(self, learned: Learned) -> None: ...


class BackgroundOperator(ABC):
    """The autotuner's interface to an operator that works in the background."""

    relays: ClassVar[bool] = False
    """Whether its thread only runs the operators below, and does no work of its own."""

    counters: Counters
    knob: Tunable
    controller: _Controller | None = None
    """Decides who does the work; None if that is fixed."""
    record: Any = None
    """The record of the op (op_record.py), if the pipeline is measured; a weak reference."""

    def may_compare(self) -> bool:
        """Return whether no other stage compares ways to do its work: two comparisons at once disturb each other."""
        with contextlib.suppress(ReferenceError):  # the iterator has been dropped
            stages = () if self.record is None else (record.stage for record in self.record.top.walk())
            return not any(stage is not None and stage is not self and stage.is_comparing for stage in stages)
        return False

    @property
    def inline(self) -> bool:
        """Whether the consumer currently does the work itself, because that is faster than handing it over."""
        return False

    @property
    def runs(self) -> str:
        """Where it currently does its work."""
        return "inline" if self.inline else "in a thread" if self.relays else "in threads"

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many finished elements it may hold before it pauses."""

    @abstractmethod
    def buffered(self) -> tuple[int, int]:
        """Return the number of held elements, including those being computed, and the bytes of the finished ones."""

    def worker_figures(self) -> tuple[WorkerFigures, ...]:
        """Return what each worker of a distributed pipeline has done."""
        return ()

    @property
    def ready(self) -> int:
        """How many elements the next pull returns without waiting and without computing any."""
        return 0

    @property
    def is_settled(self) -> bool:
        """Whether it is known who does the work, so that the tuner may change its knob."""
        return self.controller is None or self.controller.is_settled

    @property
    def is_comparing(self) -> bool:
        """Whether it compares ways to do its work now."""
        return self.controller is not None and self.controller.is_comparing

    @property
    def actions(self) -> deque[Any]:
        """Its own decisions that are not in the log yet."""
        return deque() if self.controller is None else self.controller.actions

    @property
    def learned(self) -> Learned | None:
        """What the next stage that does the same work may begin with; None if nothing is known."""
        return None if self.controller is None else self.controller.learned

    def warm_start(self, learned: Learned) -> None:
        """Begin with what a stage that did the same work has learned."""
        if self.controller is not None:
            self.controller.warm_start(learned)


class EndedBackgroundOperator(BackgroundOperator):
    """The last figures of a stage that has ended. It holds no elements."""

    inline = False
    runs = ""
    capacity = 0
    is_settled, is_comparing = True, False
    learned: Learned | None = None

    def __init__(self, stage: BackgroundOperator) -> None:
        for name in ("relays", "counters", "knob", "inline", "runs", "capacity", "learned"):
            setattr(self, name, getattr(stage, name))
        self._workers = stage.worker_figures()

    def worker_figures(self) -> tuple[WorkerFigures, ...]:
        """Return the last figures of the workers."""
        return self._workers

    def buffered(self) -> tuple[int, int]:
        """Return zeros: nothing is held."""
        return 0, 0


class Variation:
    """Variation of durations, weighted towards the most recent ones.

    Attributes:
        squared: variance over squared mean: 0 for equal durations, 1 for exponentially distributed ones.
    """

    __slots__ = ("_count", "_mean", "_square", "squared")

    def __init__(self) -> None:
        self._count = 0
        self._mean = self._square = self.squared = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration."""
        self._count = min(self._count + 1, _REMEMBERED)
        self._mean += (seconds - self._mean) / self._count
        self._square += (seconds * seconds - self._square) / self._count
        self.squared = max(0.0, self._square / (self._mean * self._mean) - 1) if self._mean > 0 else 0.0


_REMEMBERED = 64


class CpuClock:
    """CPU time of the work of one thread.

    Reading the CPU time takes about as long as a small task, so only some of the short tasks are measured. The others
    are assumed to use the same share of their duration. Used by one thread at a time.
    """

    __slots__ = ("_began", "_share", "_skip")

    def __init__(self) -> None:
        self._began: float | None = None
        self._share = 1.0
        self._skip = 0

    def begin(self) -> None:
        """Note the start of a task."""
        if self._skip:
            self._skip -= 1
            self._began = None
        else:
            self._began = time.thread_time()

    def end(self, seconds: float) -> float:
        """Note the end of a task that took ``seconds``; return its CPU time in seconds."""
        if self._began is None:
            return seconds * self._share
        busy = min(seconds, time.thread_time() - self._began)
        self._share = busy / seconds if seconds > 0 else 1.0
        self._skip = min(_SKIP_MAX, int(_WORTH_SECONDS / max(seconds, 1e-9)))
        return busy


_WORTH_SECONDS = 3e-4  # of work per measurement, so that measuring costs little
_SKIP_MAX = 15
