"""What works in the background says what it does, and has a knob that may be turned while it works.

A *stage* is an operator with work of its own in the background: a prefetch, a parallel map, a parallel interleave. It
counts what it does, under its own lock, and reads its knob without one. The autotuner, and ``iterator.stats()``, read
the counts without a lock: they only grow, and a count that is a moment old does no harm.
"""

from __future__ import annotations

from typing import Protocol


class Counters:
    """What a stage has done since it was opened.

    Attributes:
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
        rest_seconds: how long a thread of the stage waited for room. Only of stages that have a thread of their own.
        least_ready: the fewest finished elements that a consumer found; whoever reads it may set it back.
        refusals: how often no more was begun for want of memory.
    """

    __slots__ = (
        "cpu_seconds",
        "elements",
        "input_seconds",
        "least_ready",
        "nbytes",
        "refusals",
        "rest_seconds",
        "squares",
        "taken",
        "tasks",
        "wait_seconds",
        "work_seconds",
    )

    def __init__(self) -> None:
        self.elements = self.nbytes = self.tasks = self.taken = self.refusals = 0
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


NOTHING_SEEN = 1 << 62
"""``least_ready`` while nobody has looked."""


class Knob:
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
        return f"Knob({self.name}={self.value}, {span})"


class Stage(Protocol):
    """What the autotuner sees of an operator that works in the background."""

    counters: Counters
    knob: Knob

    @property
    def inline(self) -> bool:
        """Whether the consumer does the work itself now, because that is quicker than handing it over."""

    def buffered(self) -> tuple[int, int]:
        """How many elements are held here, those that are worked on included, and the bytes of the finished ones."""
