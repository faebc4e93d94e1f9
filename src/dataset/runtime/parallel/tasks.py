"""Work that can be cut into tasks, which several threads do at once.

An operator that is Divisible works by itself like any other. ``pool.py`` may also take tasks from it, in order and
one at a time, have them done by workers, several at once, and hand the outcomes back to it in whatever order is wanted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeAlias

from dataset.errors import StateError
from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.parallel.blocks import Block
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.resources.exceptions import concerns_iteration


class Task:
    """Inputs that are worked on together.

    Attributes:
        inputs: what to work on; None where it has failed before it began.
        position: the number of the first of them.
        numbers: of all inputs that it was made of, where they failed, too; none of what had been made before.
        count: how many elements will come out at most, an exception counting as one.
        outcomes: those, once they are there.
        input_seconds: what it took to read the inputs.
        nbytes: of the outcomes.
        block: what they are written into, if they are, from ``row`` on.
        learned: what a FusedOperator's stages have found out about their results.
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
"""Does tasks, one at a time; it raises nothing."""


Run: TypeAlias = tuple[int, int, int]
"""What was given of an operator before its state was saved: the number of an input; so many inputs from there on, of
which all was given that came of them; and so many elements more, of what comes of those behind."""


class Divisible(UnaryOperator):
    """An operator whose work can be cut into tasks.

    Attributes:
        node: whose work it is.
        position: how many elements were taken from the input, and so the number of the next.
        ready: what is made and waits for the consumer. It is part of the state.
        given: runs that are still to be passed over, in order.
        window_per_call: how many elements may be on their way, for each worker. With 1 element in 20 taking 20 times
            as long as the others, 32 let ordered output keep up with unordered.
        task_size_max: how many elements a task makes at most, where the operator bounds that.
        into_arrays: whether the elements are going to be stacked, so that they are best written into arrays at once.
    """

    node: UnaryNode
    position: int
    ready: Pending
    given: deque[Run]
    window_per_call: ClassVar[int] = 32
    task_size_max: ClassVar[int | None] = None
    into_arrays: bool = False

    @abstractmethod
    def next_task(self, n: int) -> Task | None:
        """The task that makes the next 1 to ``n`` elements; None at the end. Called by one thread at a time.

        What waits in ``ready`` comes first, as a task that is done. An exception that is raised takes the place of one
        element, and of all inputs by which ``position`` moved.
        """

    @abstractmethod
    def pass_given(self, n: int) -> int:
        """Pass over what was given before the state was saved, of what is next: some of it, and 0 comes back.

        Else it says how many of ``n`` elements may be asked for before more has to be passed over. To be called before
        ``next_task``, until it is not 0, in the same thread.
        """

    def after_given(self, n: int) -> int:
        """Pass over all that is next; how many of ``n`` elements may then be asked for."""
        while not (allowed := self.pass_given(n)):
            pass
        return allowed

    @property
    def may_be_marked(self) -> bool:
        """Whether a state is one of the inputs, as it is where nothing waits that was made of them."""
        return not self.ready

    def after_inputs(self, state: State, count: int) -> State | None:
        """The state in which ``count`` inputs more have been taken, where arithmetic tells; any may have failed."""
        source = None if holds_elements(state) else self.source.state_after(state["source"], count)
        return None if source is None else {**state, "source": source, "position": state["position"] + count}

    def with_given(self, state: State, runs: Sequence[Run], read: int) -> State | None:
        """The state with all this given, too; None where it cannot be said.

        Args:
            state: one that ``may_be_marked``.
            runs: in order, from the position of that state on.
            read: the number of the input up to which they say all.
        """
        waiting = (tuple(run) for run in state.get("given", ()))
        runs = [*runs, *(run for run in waiting if run[0] >= read)]
        state = {key: value for key, value in state.items() if key != "given"}
        if runs and runs[0][0] == state["position"]:
            start, inputs, outputs = runs[0]
            exact = self.after_inputs(state, inputs) if inputs else None
            if exact is not None:
                state = exact
                runs[:1] = [(start + inputs, 0, outputs)] if outputs else []
        return {**state, "given": [list(run) for run in runs]} if runs else state

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


def holds_elements(state: State) -> bool:
    """Whether elements stand in the state by value, or runs of such that are to be passed over."""
    return bool(state.get("ready") or state.get("todo") or state.get("waiting") or state.get("given"))


def load_given(state: State) -> deque[Run]:
    """The runs in a saved state."""
    runs = deque[Run]()
    for run in state.get("given", ()):
        start, inputs, outputs = map(int, run)
        if min(start, inputs, outputs) < 0 or (runs and start < runs[-1][0]):
            raise StateError(f"a saved place has passed over elements that there are not: {run!r:.100}")
        runs.append((start, inputs, outputs))
    return runs


def passed_over(source: Operator, n: int) -> int:
    """Over how many of ``n`` outcomes of ``source``, that are not wanted, it went; 0 at the end."""
    try:
        return source.pass_over(n)
    except Exception as error:
        if concerns_iteration(error):
            raise
        return 1  # it was raised when its turn was


def outcomes_of(
    pull: Callable[[int], Chunk | None], n: int, interrupted: Callable[[], list[Outcome]] | None = None
) -> list[Outcome]:
    """All that ``pull(n)`` gives up to the end, exceptions in their places.

    ``interrupted`` is called for KeyboardInterrupt and its like, which use up no element of their own accord. It passes
    over that element, and returns what comes before it.
    """
    outcomes: list[Outcome] = []
    try:
        while True:
            try:
                chunk = pull(n)
                if chunk is None:
                    return outcomes
                outcomes.append(chunk)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                outcomes.append(error)  # raised in the consumer's thread, at its place
            except BaseException as error:  # noqa: BLE001  # in a worker, it is an element's outcome like any other
                outcomes += [] if interrupted is None else interrupted()
                outcomes.append(error)
    finally:
        del outcomes  # see runtime/contract.py on exceptions that are kept


class PushedInput(Operator):
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
