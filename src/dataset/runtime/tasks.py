"""Work that can be cut into tasks, which several threads do at once.

An operator that is Divisible works by itself like any other. ``parallel.py`` may also take tasks from it, in order and
one at a time, have them done by workers, several at once, and hand the outcomes back to it in whatever order is wanted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

from dataset.runtime.blocks import Block
from dataset.runtime.chunk import Chunk, Outcome, Remainder
from dataset.runtime.operator import Operator, State, UnaryOperator
from dataset.runtime.pending import Pending


class Task:
    """Inputs that are worked on together.

    Attributes:
        inputs: what to work on; None where it has failed before it began.
        position: the number of the first of them.
        count: how many elements will come out at most, an exception counting as one.
        outcomes: those, once they are there.
        input_seconds: what it took to read the inputs.
        nbytes: of the outcomes.
        block: what they are written into, if they are, from ``row`` on.
        learned: what a FusedOperator's stages have found out about their results.
    """

    __slots__ = ("block", "count", "input_seconds", "inputs", "learned", "nbytes", "outcomes", "position", "row")

    def __init__(self, inputs: Chunk | None, position: int, count: int, outcomes: list[Outcome] | None = None) -> None:
        self.inputs = inputs
        self.position = position
        self.count = count
        self.outcomes = outcomes
        self.input_seconds = 0.0
        self.nbytes = 0
        self.block: Block | None = None
        self.row = 0
        self.learned: list[Any] | None = None


Worker: TypeAlias = Callable[[Task], list[Outcome]]
"""Does tasks, one at a time; it raises nothing."""


class Divisible(UnaryOperator):
    """An operator whose work can be cut into tasks.

    Attributes:
        ready: what is made and waits for the consumer. It is part of the state.
        window_per_call: how many elements may be on their way, for each worker. With 1 element in 20 taking 20 times
            as long as the others, 32 let ordered output keep up with unordered.
        task_size_max: how many elements a task makes at most, where the operator bounds that.
        into_arrays: whether the elements are going to be stacked, so that they are best written into arrays at once.
    """

    ready: Pending
    window_per_call: ClassVar[int] = 32
    task_size_max: ClassVar[int | None] = None
    into_arrays: bool = False

    @abstractmethod
    def next_task(self, n: int) -> Task | None:
        """The task that makes the next 1 to ``n`` elements; None at the end. Called by one thread at a time."""

    @abstractmethod
    def worker(self) -> Worker:
        """Somebody to do tasks, at the same time as others."""

    @property
    def must_go_singly(self) -> bool:
        """Whether the next task may make one element only, for now."""
        return False

    def interrupt_tasks(self) -> None:
        """Make the tasks in progress end soon, where that can be done. From any thread."""

    def open_processes(self, count: int) -> None:
        """Have up to ``count`` worker processes do the tasks from now on. For operators that can send their work."""
        raise NotImplementedError

    def accept(self, task: Task) -> Iterable[Outcome]:
        """The outcomes of a task, in the order in which they will come out, checked against those before."""
        assert task.outcomes is not None  # it is done
        return task.outcomes


def outcomes_of(
    pull: Callable[[int], Chunk | None], n: int, interrupted: Callable[[], None] | None = None
) -> list[Outcome]:
    """All that ``pull(n)`` gives up to the end, exceptions in their places.

    ``interrupted`` is called for KeyboardInterrupt and its like, which use up no element of their own accord.
    """
    outcomes: list[Outcome] = []
    try:
        while True:
            try:
                chunk = pull(n)
                if chunk is None:
                    return outcomes
                outcomes.append(chunk)
            except Exception as error:  # noqa: BLE001  # raised in the consumer's thread, at its place
                outcomes.append(error)
            except BaseException as error:  # noqa: BLE001  # in a worker, it is an element's outcome like any other
                outcomes.append(error)
                if interrupted is not None:
                    interrupted()
    finally:
        del outcomes  # see runtime/operator.py on exceptions that are kept


class Feed(Operator):
    """An input that gives what it was handed, and then nothing until it is handed more."""

    def __init__(self) -> None:
        self._rest = Remainder()

    def hand(self, chunk: Chunk) -> None:
        """Have ``chunk`` given next."""
        self._rest = Remainder(chunk)

    def pull(self, n: int) -> Chunk | None:
        return self._rest.give(n)

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """There is nothing to go to."""

    def close(self) -> None:
        """Nothing is held."""
