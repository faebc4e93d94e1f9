"""What works in the background says what it does, and has a knob that may be turned while it works.

A *stage* is an operator with work of its own in the background: a prefetch, a parallel map, a parallel interleave. It
counts what it does, under its own lock, and reads its knob without one. The autotuner, and ``iterator.stats()``, read
the counts without a lock: they only grow, and a count that is a moment old does no harm.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar


class Counters:
    """What a stage has done since it was opened.

    Attributes:
        inputs: elements that were read from below.
        elements: that were made; an exception counts as one.
        nbytes: of these, as far as they tell.
        tasks: runs of elements that were made in one go.
        work_seconds: what the tasks took, all workers together, the reading of their inputs left out.
        cpu_seconds: how long the processor was busy for them. What is missing to ``work_seconds`` was waiting: for
            files, for other threads that hold the interpreter's lock, for a core.
        squares: the sum over the elements of the squared ``work_seconds`` of each, where those of one task count as
            equal: for the variance.
        input_seconds: what reading the inputs took, which one worker at a time does.
        taken: elements that were handed to the consumer, which is the op above.
        wait_seconds: how long the consumer waited for them.
        waits: how often it did.
        waited_until: when it last did, on the clock of ``time.perf_counter``, and ``taken_before``, how many elements
            it had taken by then. From one such moment to another the rate is exact, however many come at once.
        waiting_since: when the wait began that goes on now, on the same clock; 0 while there is none.
        rest_seconds: how long a thread of the stage waited for room. Only of stages that have a thread of their own.
        least_ready: the fewest finished elements that a consumer found; whoever reads it may set it back.
        refusals: how often no more was begun for want of memory.
    """

    __slots__ = (
        "cpu_seconds",
        "elements",
        "input_seconds",
        "inputs",
        "least_ready",
        "nbytes",
        "refusals",
        "rest_seconds",
        "squares",
        "taken",
        "taken_before",
        "tasks",
        "wait_seconds",
        "waited_until",
        "waiting_since",
        "waits",
        "work_seconds",
    )

    def __init__(self) -> None:
        self.inputs = self.elements = self.nbytes = self.tasks = self.taken = self.refusals = 0
        self.waits = self.taken_before = 0
        self.waited_until = self.waiting_since = 0.0
        self.work_seconds = self.cpu_seconds = self.squares = 0.0
        self.input_seconds = self.wait_seconds = self.rest_seconds = 0.0
        self.least_ready = NOTHING_SEEN

    def add_task(self, count: int, nbytes: int, seconds: float, cpu_seconds: float, input_seconds: float) -> None:
        """Count a task that is done."""
        self.elements += count
        self.nbytes += nbytes
        self.tasks += 1
        self.work_seconds += seconds
        self.cpu_seconds += cpu_seconds
        self.squares += seconds * seconds / count
        self.input_seconds += input_seconds

    def add_wait(self, since: float, until: float) -> None:
        """The consumer has waited, on the clock of ``time.perf_counter``, and can go on now."""
        self.waited_until, self.waiting_since = until, 0.0
        self.taken_before = self.taken
        self.waits += 1
        self.wait_seconds += until - since
        self.least_ready = 0

    def reset_least_ready(self) -> None:
        """From now on, the fewest anew."""
        self.least_ready = NOTHING_SEEN


NOTHING_SEEN = 1 << 62
"""``least_ready`` while nobody has looked."""


class Tunable:
    """A number that a stage reads each time it needs it, and that the autotuner may set meanwhile.

    Attributes:
        name: of the argument: ``num_parallel_calls`` or ``buffer_size``.
        value: what holds now.
        minimum, maximum: what it may be set to; both are ``value`` where the user has given a number.
    """

    __slots__ = ("maximum", "minimum", "name", "value")

    def __init__(self, name: str, value: int, minimum: int | None = None, maximum: int | None = None) -> None:
        self.name = name
        self.value = value
        self.minimum = value if minimum is None else minimum
        self.maximum = value if maximum is None else maximum

    @property
    def is_fixed(self) -> bool:
        """Whether it must stay as it is."""
        return self.minimum == self.maximum

    def __repr__(self) -> str:
        span = "fixed" if self.is_fixed else f"{self.minimum} to {self.maximum}"
        return f"Tunable({self.name}={self.value}, {span})"


class BackgroundOperator(ABC):
    """What the autotuner sees of an operator that works in the background."""

    relays: ClassVar[bool] = False
    """Whether its thread only runs what is below, and does no work of its own."""

    counters: Counters
    knob: Tunable

    @property
    def inline(self) -> bool:
        """Whether the consumer does the work itself now, because that is quicker than handing it over."""
        return False

    @property
    def runs(self) -> str:
        """Where it does its work now."""
        return "inline" if self.inline else "in a thread" if self.relays else "in threads"

    @property
    @abstractmethod
    def capacity(self) -> int:
        """How many finished elements it may hold before it rests."""

    @abstractmethod
    def buffered(self) -> tuple[int, int]:
        """How many elements are held here, those that are worked on included, and the bytes of the finished ones."""

    @property
    def learned(self) -> Any:
        """What the next iteration of the same dataset may begin with, beside the value of the knob; None: nothing."""
        return None

    def begin_with(self, learned: Any) -> None:  # noqa: B027  # most have nothing to begin with
        """Begin with what this stage has learned in the iteration before."""


class EndedBackgroundOperator(BackgroundOperator):
    """How a stage ran last. It holds nothing any more."""

    def __init__(self, stage: BackgroundOperator) -> None:
        self.counters = stage.counters
        self.knob = stage.knob
        self._inline = stage.inline
        self._runs = stage.runs
        self._capacity = stage.capacity
        self._learned = stage.learned
        vars(self)["relays"] = stage.relays  # of the class otherwise, which this one stands for

    @property
    def inline(self) -> bool:
        """As it was."""
        return self._inline

    @property
    def runs(self) -> str:
        """As it was."""
        return self._runs

    @property
    def capacity(self) -> int:
        """As it was."""
        return self._capacity

    def buffered(self) -> tuple[int, int]:
        """Nothing."""
        return 0, 0

    @property
    def learned(self) -> Any:
        """As it was."""
        return self._learned


class Variation:
    """How much times vary, the last hundred or so counting most.

    Attributes:
        squared: variance over squared mean: 0 for equal times, 1 for exponentially distributed ones.
    """

    __slots__ = ("_count", "_mean", "_square", "squared")

    def __init__(self) -> None:
        self._count = 0
        self._mean = self._square = self.squared = 0.0

    def add(self, seconds: float) -> None:
        """One more time."""
        self._count = min(self._count + 1, _REMEMBERED)
        self._mean += (seconds - self._mean) / self._count
        self._square += (seconds * seconds - self._square) / self._count
        self.squared = max(0.0, self._square / (self._mean * self._mean) - 1) if self._mean > 0 else 0.0


_REMEMBERED = 64


class CpuClock:
    """How long the processor is busy for the work of one thread.

    Asking the system takes about as long as a small task, so of short tasks only some are measured; the others count
    as busy for the same share of their time. One thread uses it at a time.
    """

    __slots__ = ("_began", "_share", "_skip")

    def __init__(self) -> None:
        self._began: float | None = None
        self._share = 1.0
        self._skip = 0

    def begin(self) -> None:
        """A task begins."""
        if self._skip:
            self._skip -= 1
            self._began = None
        else:
            self._began = time.thread_time()

    def end(self, seconds: float) -> float:
        """It has ended, after ``seconds``: how long the processor was busy for it, in seconds."""
        if self._began is None:
            return seconds * self._share
        busy = min(seconds, time.thread_time() - self._began)
        self._share = busy / seconds if seconds > 0 else 1.0
        self._skip = min(_SKIP_MAX, int(_WORTH_SECONDS / max(seconds, 1e-9)))
        return busy


_WORTH_SECONDS = 3e-4  # of work, beside which the question costs little
_SKIP_MAX = 15
