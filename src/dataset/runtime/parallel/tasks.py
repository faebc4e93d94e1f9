"""Tasks: work that several threads can do concurrently.

A Divisible operator works on its own like any other. ``pool.py`` may also take tasks from it, in order and one at a
time, run them concurrently on workers, and return the outcomes to it in any order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.contract import Operator
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.buffered_operator import BufferedUnaryOperator
from dataset.runtime.position import Position, Run
from dataset.runtime.resources.exceptions import concerns_iteration


class Task:
    """Inputs that are processed together.

    Attributes:
        inputs: the inputs; None if reading them has failed.
        position: the number of the first input.
        numbers: the numbers of all its inputs, including failed ones; empty for elements computed before.
        count: the maximum number of output elements; an exception counts as one.
        outcomes: the outcomes, once they are computed.
        input_seconds: the time it took to read the inputs.
        nbytes: the size of the outcomes.
        block: the block that outcomes are written into, from ``row`` on; None if they are not.
        learned: what the stages of a FusedOperator have learned about their results.
    """

    __slots__ = (
        "block",
        "count",
        "input_seconds",
        "inputs",
        "learned",
        "nbytes",
        "numbers",
        "outcomes",
        "position",
        "row",
    )

    def __init__(self, inputs: Chunk | None, position: int, count: int, outcomes: list[Outcome] | None = None) -> None:
        self.inputs = inputs
        self.position = position
        self.numbers = range(0)
        self.count = count
        self.outcomes = outcomes
        self.input_seconds = 0.0
        self.nbytes = 0
        self.block: Block | None = None
        self.row = 0
        self.learned: list[Any] | None = None


Worker: TypeAlias = Callable[[Task], list[Outcome]]
"""Runs tasks, one at a time; raises nothing."""


InputReader: TypeAlias = Callable[[Callable[[int], Chunk | None], int], Chunk | None]
"""Calls the function that it is given with the number that it is given, and returns the result."""


class Divisible(BufferedUnaryOperator):
    """An operator whose work can be divided into tasks.

    Attributes:
        given: runs that are still to be skipped, in order.
        window_per_call: how many elements may be in progress for each worker. With 1 element in 20 taking 20 times as
            long as the others, 32 let ordered output keep up with unordered output.
        task_size_max: the maximum number of elements that a task computes, if the operator limits it.
        write_into_batch: whether the elements will be stacked, so that they are best written into arrays directly.
        one_to_one: whether each input yields one element or one exception, which depends on that input and its position
            only.
    """

    node: UnaryNode
    given: deque[Run]
    window_per_call: ClassVar[int] = 32
    task_size_max: ClassVar[int | None] = None
    write_into_batch: bool = False
    one_to_one: bool = False
    input_reader: InputReader | None = None

    @abstractmethod
    def next_task(self, n: int) -> Task | None:
        """Return the task that computes the next 1 to ``n`` elements, or None at the end.

        Called by one thread at a time. Elements in the outbox come first, as a finished task. A raised exception takes
        the place of one element, and of all inputs by which ``at`` advanced.
        """

    @abstractmethod
    def pass_given(self, n: int) -> int:
        """Skip some of the next elements if they had been given before the state was saved, and return 0.

        Otherwise, return how many of ``n`` elements may be requested before more must be skipped. Must be called before
        ``next_task`` until it does not return 0, in the same thread.
        """

    def after_given(self, n: int) -> int:
        """Skip all next elements that were given; return how many of ``n`` elements may then be requested."""
        while not (allowed := self.pass_given(n)):
            pass
        return allowed

    def read_through(self, reader: InputReader | None) -> None:
        """Pull inputs through ``reader`` from now on, which measures how long that takes; None: pull them directly."""
        self.input_reader = reader

    @property
    def runs_on_columns(self) -> bool:
        """Whether its function is not called, because its operations are applied to whole columns instead."""
        return False

    @property
    def may_be_marked(self) -> bool:
        """Whether a state can be taken as a position of the input: no elements computed from it are waiting."""
        return not self.outbox

    def save(self) -> Position:
        return super().save().having(given=tuple(self.given))

    def load(self, position: Position) -> None:
        super().load(position)
        self.given = deque(position.given)

    def with_given(self, position: Position, runs: Sequence[Run], read: int) -> Position | None:
        """Return the position with these runs also marked as given; None if this cannot be expressed.

        Args:
            position: a position taken while ``may_be_marked`` was true.
            runs: in order, from that position on.
            read: the number of the input up to which the runs are complete.
        """
        runs = [*runs, *(run for run in position.given if run[0] >= read)]
        position = position.having(given=())
        if runs and runs[0][0] == position.at:
            start, inputs, outputs = runs[0]
            exact = self.advance_input(position, inputs) if inputs else None
            if exact is not None:
                position = exact
                runs[:1] = [(start + inputs, 0, outputs)] if outputs else []
        return position.having(given=tuple(runs))

    @abstractmethod
    def worker(self) -> Worker:
        """Return a new worker, which may run concurrently with others."""

    def remote_worker(self) -> Worker:
        """Return a new worker that runs its tasks in processes. Only after ``open_processes``."""
        raise NotImplementedError

    @property
    def single_element_tasks(self) -> bool:
        """Whether the next task must compute a single element, for now."""
        return False

    def interrupt_tasks(self) -> None:
        """Make the tasks in progress end soon, if possible. May be called from any thread."""

    def open_processes(self, count: int) -> None:
        """Run tasks in up to ``count`` worker processes from now on. Only for operators that can send their work."""
        raise NotImplementedError

    def start_process(self) -> None:
        """Start one of these processes before a task needs it, and wait for it."""
        raise NotImplementedError

    def accept(self, task: Task) -> Iterable[Outcome]:
        """Return the outcomes of a task in output order, checked against earlier ones."""
        assert task.outcomes is not None  # the task is finished
        return task.outcomes


def passed_over(source: Operator, n: int) -> int:
    """Skip up to ``n`` outcomes of ``source``; return how many were skipped, 0 at the end."""
    try:
        return source.skip(n)
    except Exception as error:
        if concerns_iteration(error):
            raise
        return 1  # it was raised in its place before
