"""The contract of everything that runs: operators pull chunks from their inputs.

Demand decides the size. ``pull(n)`` gives between 1 and ``n`` elements, and an operator never asks its input for more
than it needs to answer; so nothing runs for elements that nobody asked for. An operator that reads ahead says how far.

An exception takes the place of one element: it comes out after everything before it, once, and the next ``pull`` goes
on behind it. An exception that is kept until then refers, once raised, to the frames that it passes, and through them
to the iterator. So a function that raises a kept exception deletes its own variable for it: else exception and frame
would hold each other, and dropping the iterator would end its threads only at the next garbage collection.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

from dataset.options import AUTOTUNE, Options
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.runtime.chunk import Array, Chunk
from dataset.runtime.coordinator import Coordinator
from dataset.runtime.cores import usable_cores
from dataset.runtime.ledger import UNBOUNDED, Ledger
from dataset.runtime.memory import default_budget
from dataset.runtime.observation import Line, Observation
from dataset.runtime.pulse import Pulse
from dataset.runtime.references import Opening
from dataset.runtime.rng import EpochLedger
from dataset.runtime.skips import SkipCount
from dataset.runtime.stages import Counters, Knob

State: TypeAlias = dict[str, Any]

_NO_OPTIONS = Options()

CALLS_MAX = 128
"""What AUTOTUNE may become where it stands for calls at once, for work that waits."""

LENT_MAX = 1024
"""How many elements are lent at once: beside so many, what it costs is small, and so is the memory that they take."""

_PASSED_MAX = 1024  # elements made at a time that are thrown away, so that little memory is held


class Operator(ABC):
    """One node of a plan, open for one iteration."""

    @abstractmethod
    def pull(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements, ``n`` being at least 1; None at the end and ever after."""

    def seek(self, count: int) -> None:
        """Go forward over ``count`` elements without making them; there are more than that.

        For nodes that have random access, and before the first pull.
        """
        raise NotImplementedError

    picks: bool = False
    """Whether ``pick`` gives elements."""

    def pick(self, positions: Array) -> Chunk:
        """The elements at these positions of all that come out, in this order, or the first few; at least one.

        At any time, and without going anywhere, in an operator that ``picks``. What may fail raises at its place.
        """
        raise NotImplementedError

    @property
    def lends(self) -> int:
        """For how many elements ``pull`` may be asked before they are wanted, as nobody notices; 0 where somebody may.

        Who asks for so many, which are 2 at least, goes back to where he is, with ``go_back``, before he asks for
        anything but more of them.
        """
        return 0

    def pulled(self) -> int:
        """How many elements were pulled, from wherever it counts. Of operators that lend."""
        raise NotImplementedError

    def go_back(self, place: int) -> None:
        """Go back to a place from where the last pull began to where it ended. Of operators that lend."""
        raise NotImplementedError

    def pass_over(self, n: int) -> int:
        """Go forward over 1 to ``n`` elements that nobody wants, and say over how many; 0 at the end.

        Whatever ``pull`` would raise for them is raised. Only what is known not to fail may be left unmade.
        """
        chunk = self.pull(min(n, _PASSED_MAX))
        return 0 if chunk is None else chunk.length

    @abstractmethod
    def state_dict(self) -> State:
        """Where this operator and its inputs stand, after the last element that was pulled, as plain data."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Go there. Called at most once, before the first pull."""

    def state_after(self, state: State, count: int) -> State | None:  # noqa: ARG002  # most can't tell
        """The state ``count`` elements behind ``state``, where arithmetic tells; None where they would have to be made.

        Called from any thread, also while another one is inside ``pull``: it reads nothing that a pull changes.

        Args:
            state: one of this operator, or of another that runs the same node.
            count: how many elements, at least 1; there may be fewer than that, which is then None.
        """
        return None

    @abstractmethod
    def close(self) -> None:
        """Let go of files, threads and inputs. May be called twice; nothing is pulled afterwards."""


_trusting: ContextVar[bool] = ContextVar("_trusting", default=False)


@contextlib.contextmanager
def trusting() -> Iterator[None]:
    """Have ``state_after``, in this thread, take it that no element fails whose failure would move those behind it.

    So a batch begins early behind an element that fails, and take does not count it. For who says so, as skip() does.
    """
    token = _trusting.set(True)
    try:
        yield
    finally:
        _trusting.reset(token)


def is_trusting() -> bool:
    """Whether none is taken to fail."""
    return _trusting.get()


class UnaryOperator(Operator):
    """An operator with one input and, unless it says otherwise, no state of its own."""

    def __init__(self, source: Operator) -> None:
        self.source = source

    def state_dict(self) -> State:
        return {"source": self.source.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.source.load_state_dict(state["source"])

    def close(self) -> None:
        self.source.close()


class Iteration:
    """What all operators of one iteration share, those of inner datasets included.

    Args:
        coordinator: owns the threads.
        epochs: says which epoch each shuffle is in.
        options: of the whole pipeline.
        pulse: what is to be done now and then.
    """

    def __init__(self, coordinator: Coordinator, epochs: EpochLedger, options: Options, pulse: Pulse) -> None:
        self.coordinator = coordinator
        self.epochs = epochs
        self.options = options
        self.pulse = pulse
        self.passes_to_repeat: dict[Node, State] = {}
        """Where the passes started that a saved state reads from, by the op that keeps them; see keeping.py."""

    @lazy_property
    def cores(self) -> int:
        """That AUTOTUNE may keep busy. Counted once: it takes reading some files."""
        return self.options.autotune.cpu_budget or usable_cores()

    @lazy_property
    def ledger(self) -> Ledger:
        """Who holds how much of the memory budget."""
        settings = self.options.autotune
        return Ledger(UNBOUNDED if settings.enabled is False else settings.ram_budget or default_budget)


class Build:
    """Opens the operators of one iteration. Each op is lowered with a Build of its own, which knows the op's line.

    Args:
        iteration: what they share.
        line: of the op that is opened with this; None where nobody observes it.
        skipped: where to count what is left out, if not on a line of its own.
        reader: the Build of the op that reads from this one.
    """

    __slots__ = ("_iteration", "_line", "_reader", "repeats_input", "skipped", "within")

    def __init__(
        self,
        iteration: Iteration,
        line: Line | None = None,
        skipped: SkipCount | None = None,
        reader: Build | None = None,
    ) -> None:
        self._iteration = iteration
        self._line = line
        self._reader = reader
        self.skipped = skipped or (SkipCount() if line is None else line.skipped)
        self.repeats_input = True
        """Whether the op's input, set to a place that it was at, gives the same again, and says cheaply where it is.

        Else what was read ahead of it has to be saved by value. Datasets that open later may change that.
        """
        self.within: tuple[Opening, ...] | None = None if reader is None else reader.within
        """Where elements that are read from files are to say that they are (runtime/references.py), the datasets that
        the op is inside of, from outer to inner, beginning with those below who wants to know; None where nobody does.
        """

    def say_unrepeatable(self) -> None:
        """Say that the op's elements come in an order that chance decides on, or that it holds many by value."""
        reader = self._reader
        while reader is not None and reader.repeats_input:
            reader.repeats_input = False
            reader = reader._reader  # noqa: SLF001  # its own class

    @property
    def coordinator(self) -> Coordinator:
        """Owns the threads."""
        return self._iteration.coordinator

    @property
    def epochs(self) -> EpochLedger:
        """Says which epoch each shuffle is in."""
        return self._iteration.epochs

    @property
    def options(self) -> Options:
        """Of the whole pipeline."""
        return self._iteration.options

    @property
    def pulse(self) -> Pulse:
        """What is to be done now and then."""
        return self._iteration.pulse

    @property
    def passes_to_repeat(self) -> dict[Node, State]:
        """Where the passes started that a saved state reads from, by the op that keeps them; see keeping.py."""
        return self._iteration.passes_to_repeat

    def __call__(self, node: Node) -> Operator:
        if self._line is None:
            unobserved: Operator = node.lower(Build(self._iteration, skipped=self.skipped, reader=self))
            return unobserved
        line = self._line.input(node)
        operator: Operator = node.lower(Build(self._iteration, line, reader=self))
        self._line.input_opened(line, operator)
        return operator

    def joins(self, *nodes: Node) -> None:
        """Say that the operator does the work of these nodes below its own, too."""
        if self._line is not None:
            self._line.joined = nodes

    def unobserved(self) -> Build:
        """The same, for datasets that are opened by the thousand: no lines, and numbers that stay as they are.

        What is left out in them is counted where it is in this op.
        """
        return Build(self._iteration, skipped=self.skipped, reader=self)

    def inside(self, node: Node, argument: Chunk, plan: Node) -> Build:
        """The same, for a dataset that a function made: the arguments are those of ``Opening``."""
        if self.within is None:
            return self
        inner = Build(self._iteration, self._line, self.skipped, self)
        inner.within = (*self.within, Opening(node, argument, plan))
        return inner

    def apart(self) -> Build:
        """The same, for operators that go over elements once more: no lines, and epochs that count for themselves."""
        own = Iteration(self.coordinator, EpochLedger(instead_of=self.epochs), self.options, self.pulse)
        return Build(own, skipped=self.skipped, reader=self)

    @property
    def background(self) -> bool:
        """Whether there may be work in the background. A look at one element must not make others ahead."""
        return not self.epochs.probing

    @property
    def counters(self) -> Counters:
        """Where the op counts what it does in the background."""
        return Counters() if self._line is None else self._line.counters

    @property
    def _tunes(self) -> bool:
        return self._line is not None and self.options.autotune.enabled is not False

    def parallel_calls(
        self, requested: int | None, autotuned: int | None = None, maximum: int = CALLS_MAX
    ) -> Knob | None:
        """How many calls an op given ``num_parallel_calls=requested`` may make at once; None for no threads.

        Args:
            requested: by the user.
            autotuned: what AUTOTUNE means, and begins with; default, the number of cores.
            maximum: what AUTOTUNE may become.
        """
        if requested is None or not self.background:
            return None
        if requested != AUTOTUNE:
            return self._knob("num_parallel_calls", requested)
        first = min(autotuned, self.options.autotune.cpu_budget or autotuned) if autotuned else self._iteration.cores
        return self._knob("num_parallel_calls", first, max(first, maximum))

    def buffer_size(self, requested: int, autotuned: int, maximum: int) -> Knob:
        """How many elements an op given ``buffer_size=requested`` may hold; the rest as for ``parallel_calls``."""
        if requested != AUTOTUNE:
            return self._knob("buffer_size", requested)
        return self._knob("buffer_size", autotuned, maximum)

    def _knob(self, name: str, value: int, maximum: int | None = None) -> Knob:
        knob = Knob(name, value) if maximum is None or not self._tunes else Knob(name, value, min(1, value), maximum)
        if self._line is None:
            return knob
        if self._line.knob is None:  # else it is opened anew, and goes on with what was set
            self._line.knob = knob
        return self._line.knob

    @property
    def ledger(self) -> Ledger:
        """Who holds how much of the memory budget."""
        return self._iteration.ledger

    def keeps_order(self, deterministic: bool | None) -> bool:
        """Whether an op must keep the order that was given ``deterministic``; without it the options tell."""
        if deterministic is None:
            deterministic = self.options.deterministic
        return deterministic is not False


Reader: TypeAlias = Callable[[Build, Node], Operator]
"""Opens a plan with a Build, and gives what reads from its last operator."""


def open_plan(
    plan: Node,
    options: Options | None = None,
    *,
    probing: bool = False,
    observation: Observation | None = None,
    epochs: EpochLedger | None = None,
    reader: Reader | None = None,
) -> tuple[Coordinator, Operator]:
    """The last operator of a plan, open, and who owns its threads: ``shut_down(operator.close, ...)`` ends both.

    Args:
        plan: what to run.
        options: of the whole pipeline; default, none set.
        probing: for a look at an element or two, which uses up no random order and makes nothing ahead.
        observation: of the iteration, if somebody is going to look at it.
        epochs: which says in which epoch each shuffle is; default, one of its own.
        reader: opens the plan, and what reads from it; for an iteration that somebody looks at.
    """
    options = _NO_OPTIONS if options is None else options
    coordinator = Coordinator(options.threading.private_threadpool_size or None)
    epochs = EpochLedger(probing=probing) if epochs is None else epochs
    if observation is None:
        return coordinator, Build(Iteration(coordinator, epochs, options, Pulse()))(plan)
    iteration = Iteration(coordinator, epochs, options, observation.pulse)
    observation.iteration = iteration
    build = Build(iteration, observation.top)
    return coordinator, build(plan) if reader is None else reader(build, plan)
