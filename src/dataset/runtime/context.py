"""What an operator is opened with: its place in the plan, and what all operators of an iteration share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dataset.options import AUTOTUNE, Options
from dataset.plan.epochs import drawing_nodes, openings
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.file_trace import Opening
from dataset.runtime.contract import Operator, State
from dataset.runtime.metrics.background import Counters, Tunable
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.random.streams import DrawingNode, Draws, EpochCounter, EpochLedger, counter_numbers, derived_seed
from dataset.runtime.resources.coordinator import Coordinator
from dataset.runtime.resources.ledger import Ledger
from dataset.runtime.resources.limits import Limits
from dataset.runtime.resources.periodic import PeriodicCallback

_NO_OPTIONS = Options()

Moved: TypeAlias = Callable[[str], str]
"""The name that a file has now, given the one in a saved state."""


def unmoved(name: str) -> str:
    """Where no data have moved."""
    return name


CALLS_MAX = 128
"""What AUTOTUNE may become where it stands for calls at once, for work that waits."""

LENT_MAX = 1024
"""How many elements are lent at once: beside so many, what it costs is small, and so is the memory that they take."""

_EPOCHS = 1 << 63


class Iteration:
    """What all operators of one iteration share, those of inner datasets included.

    Args:
        coordinator: owns the threads.
        epochs: says which epoch each shuffle is in.
        options: of the whole pipeline.
        pulse: what is to be done now and then.
        moved: of the files that a saved state names.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        epochs: EpochLedger,
        options: Options,
        pulse: PeriodicCallback,
        moved: Moved = unmoved,
    ) -> None:
        self.moved = moved
        self.coordinator = coordinator
        self.epochs = epochs
        self.options = options
        self.limits = Limits(options)
        self.pulse = pulse
        self.first_counter = next(counter_numbers)
        """Counters with smaller numbers were made before the iteration."""
        self.passes_to_repeat: dict[Node, State] = {}
        """Where the passes started that a saved state reads from, by the op that keeps them (ops/cache/caching.py)."""
        self.filled: set[Node] = set()
        """The ops that have kept a whole pass in this iteration."""


class ExecutionContext:
    """Opens the operators of one iteration. Each op is lowered with a context of its own, which knows the op's record.

    Args:
        iteration: what they share.
        line: of the op that is opened with this; None where nobody observes it.
        skipped: where to count what is left out, if not on a line of its own.
        reader: the context of the op that reads from this one.
        node: the op.
        opening: which of its inputs the reader opens with this, counted from 0; or which run of the only one.
    """

    __slots__ = (
        "_beginning",
        "_call",
        "_iteration",
        "_line",
        "_node",
        "_opening",
        "_reader",
        "repeats_input",
        "replays",
        "skipped",
        "within",
    )

    def __init__(
        self,
        iteration: Iteration,
        line: OpRecord | None = None,
        skipped: DroppedCount | None = None,
        reader: ExecutionContext | None = None,
        node: Node | None = None,
        opening: int = 0,
    ) -> None:
        self._iteration = iteration
        self._node = node
        self._opening = opening
        self._line = line
        self._reader = reader
        self.skipped = skipped or (DroppedCount() if line is None else line.skipped)
        self.repeats_input = True
        """Whether the op's input, set to a place that it was at, gives the same again, and says cheaply where it is.

        Else what was read ahead of it has to be saved by value. Datasets that open later may change that.
        """
        self.within: tuple[Opening, ...] | None = None if reader is None else reader.within
        """Where elements that are read from files are to say that they are (chunks/provenance.py), the datasets that
        the op is inside of, from outer to inner, beginning with those below who wants to know; None where nobody does.
        """
        self.replays = False
        """Whether the op runs a pass over its input again, to resume, and must find the same order."""
        self._beginning: dict[EpochCounter, Draws] | None = None  # of a run that began elsewhere
        self._call: Call | None = None  # of a function, that returned the dataset which is opened with this

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
    def moved(self) -> Moved:
        """The names that files have now, given those in a saved state."""
        return self._iteration.moved

    @property
    def pulse(self) -> PeriodicCallback:
        """What is to be done now and then."""
        return self._iteration.pulse

    @property
    def passes_to_repeat(self) -> dict[Node, State]:
        """Where the passes started that a saved state reads from, by the op that keeps them (ops/cache/caching.py)."""
        return self._iteration.passes_to_repeat

    @property
    def filled(self) -> set[Node]:
        """The ops that have kept a whole pass in this iteration."""
        return self._iteration.filled

    def __call__(self, node: Node, opening: int = 0) -> Operator:
        """The operator of an input.

        Args:
            node: the input.
            opening: which of several inputs it is, counted from 0; or which run of the only one.
        """
        if self._line is None:
            build = ExecutionContext(self._iteration, None, self.skipped, self, node, opening)
            unobserved: Operator = node.lower(build)
            return unobserved
        line = self._line.input(node)
        operator: Operator = node.lower(ExecutionContext(self._iteration, line, None, self, node, opening))
        self._line.input_opened(line, operator)
        return operator

    def joins(self, *nodes: Node) -> None:
        """Say that the operator does the work of these nodes below its own, too."""
        if self._line is not None:
            self._line.joined = nodes

    def unobserved(self) -> ExecutionContext:
        """The same, for datasets that are opened by the thousand: no lines, and numbers that stay as they are.

        What is left out in them is counted where it is in this op.
        """
        return ExecutionContext(self._iteration, None, self.skipped, self, self._node)

    def inside(self, argument: Chunk, plan: Node, call: Call) -> ExecutionContext:
        """The same, for a dataset that a function made.

        Args:
            argument: what the function was given.
            plan: of the dataset.
            call: of the function.
        """
        inner = ExecutionContext(self._iteration, self._line, self.skipped, self)
        inner._call = call
        if self.within is not None:
            inner.within = (*self.within, Opening(call.node, argument, plan))
        return inner

    def draws(self, node: DrawingNode) -> Draws:
        """What the random numbers depend on of the op that this opens.

        The epoch is the number of runs of the op that come before this one in a complete run of the plan. An op that
        was made before the iteration, and is in a dataset that a function returns, is in another iteration for each
        call.
        """
        found, epoch, root, call = self._place(node.counter)
        if found is not None:
            return Draws(found.key, found.iteration, (found.epoch + epoch) % _EPOCHS)
        key, iteration = node.key or 0, 0
        if call is None:
            return Draws(self.epochs.key(node.counter, key), self.epochs.iteration(node.counter), epoch % _EPOCHS)
        if node.counter.number < self._iteration.first_counter:
            iteration = call.number
            if getattr(node, "seed", None) is None:
                key = derived_seed(call.node_key, list(openings(root)).index(node.counter))
        return Draws(key, iteration, epoch % _EPOCHS)

    def _place(self, counter: EpochCounter) -> tuple[Draws | None, int, Node, Call | None]:
        """Where the op with this counter is that this opens.

        Returns:
            What a saved pass begins with that it is in, the runs before it in that pass or the plan, the plan, and the
            call of a function that returned the plan.
        """
        assert self._node is not None
        epoch, found, build, root = 0, None, self, self._node
        while build._reader is not None and build._node is not None:
            root, reader = build._node, build._reader
            if found is None and build._beginning is not None:
                found = build._beginning.get(counter)
            if found is None:
                epoch += _runs_before(counter, root, reader._node, build._opening)  # noqa: SLF001  # its own class
            build = reader
        return found, epoch, root, build._call  # noqa: SLF001

    def beginning(self, node: Node) -> list[list[int]]:
        """What the ops that draw random numbers in an input begin with in this run of the op, as plain data."""
        return [list(self.draws(part)) for part in drawing_nodes(node)]

    def from_beginning(self, node: Node, beginning: list[list[int]]) -> Operator:
        """The operator of an input, in a run that began so, in this iteration or in another one."""
        draws = [Draws(*map(int, entry)) for entry in beginning]
        build = ExecutionContext(self._iteration, self._line, self.skipped, self, self._node)
        build._beginning = {part.counter: draw for part, draw in zip(drawing_nodes(node), draws, strict=True)}
        return build(node)

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
    ) -> Tunable | None:
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
        first = (
            min(autotuned, self.options.autotune.cpu_budget or autotuned) if autotuned else self._iteration.limits.cores
        )
        return self._knob("num_parallel_calls", first, max(first, maximum))

    def buffer_size(self, requested: int, autotuned: int, maximum: int) -> Tunable:
        """How many elements an op given ``buffer_size=requested`` may hold; the rest as for ``parallel_calls``."""
        if requested != AUTOTUNE:
            return self._knob("buffer_size", requested)
        return self._knob("buffer_size", autotuned, maximum)

    def _knob(self, name: str, value: int, maximum: int | None = None) -> Tunable:
        knob = (
            Tunable(name, value) if maximum is None or not self._tunes else Tunable(name, value, min(1, value), maximum)
        )
        if self._line is None:
            return knob
        if self._line.knob is None:  # else it is opened anew, and goes on with what was set
            self._line.knob = knob
        return self._line.knob

    @property
    def ledger(self) -> Ledger:
        """Who holds how much of the memory budget."""
        return self._iteration.limits.ledger

    def keeps_order(self, deterministic: bool | None) -> bool:
        """Whether an op must keep the order that was given ``deterministic``; without it the options tell.

        Below an op that keeps its elements it must: what a state is taken of in the first pass has to come again.
        """
        reader: ExecutionContext | None = self
        while reader is not None:
            if reader.replays:
                return True
            reader = reader._reader  # noqa: SLF001  # its own class
        if deterministic is None:
            deterministic = self.options.deterministic
        return deterministic is not False


class Call:
    """One call of a function that returns a dataset.

    Args:
        build: opens the op that has the function.
        node: the op.
        order: of the call among all that the op makes, counted from 0.
    """

    def __init__(self, build: ExecutionContext, node: Any, order: int) -> None:
        self._build = build
        self.node = node
        self.order = order

    @lazy_property
    def number(self) -> int:
        """Another one for each call; the same in all processes."""
        _, _, root, outer = self._build._place(self.node.counter)  # noqa: SLF001
        functions = [counter for counter in openings(root) if counter.of_functions]
        _, iteration, epoch = self._build.draws(self.node)
        above = 0 if outer is None else outer.number
        return derived_seed(functions.index(self.node.counter), iteration, epoch, self.order, above)

    @property
    def node_key(self) -> int:
        """What the random numbers depend on that are drawn in the datasets of the op, where those have no seeds."""
        return self._build.draws(self.node).key

    def seed(self) -> int:
        """What the seeds depend on that the call draws."""
        return derived_seed(self.node_key, self.number)


def _runs_before(counter: EpochCounter, node: Node, reader: Node | None, opening: int) -> int:
    """How often the op with ``counter`` runs in ``reader`` before an input, or run of the input: that is ``node``."""
    if not opening or reader is None:
        return 0
    if len(reader.inputs) == 1:
        return opening * openings(node).get(counter, 0)
    if openings(reader).get(counter) == openings(node).get(counter):
        return 0  # no other input has it
    return sum(openings(source).get(counter, 0) for source in reader.inputs[:opening])


Reader: TypeAlias = Callable[[ExecutionContext, Node], Operator]
"""Opens a plan with an ExecutionContext, and gives what reads from its last operator."""


def open_plan(
    plan: Node,
    options: Options | None = None,
    *,
    probing: bool = False,
    observation: PipelineProfile | None = None,
    epochs: EpochLedger | None = None,
    reader: Reader | None = None,
    moved: Moved = unmoved,
) -> tuple[Coordinator, Operator]:
    """The last operator of a plan, open, and who owns its threads: ``shut_down(operator.close, ...)`` ends both.

    Args:
        plan: what to run.
        options: of the whole pipeline; default, none set.
        probing: for a look at an element or two, which uses up no random order and makes nothing ahead.
        observation: of the iteration, if somebody is going to look at it.
        epochs: which says in which epoch each shuffle is; default, one of its own.
        reader: opens the plan, and what reads from it; for an iteration that somebody looks at.
        moved: the names that files have now, given those in a saved state.
    """
    options = _NO_OPTIONS if options is None else options
    coordinator = Coordinator(options.threading.private_threadpool_size or None)
    epochs = EpochLedger(probing=probing) if epochs is None else epochs
    if observation is None:
        return coordinator, ExecutionContext(Iteration(coordinator, epochs, options, PeriodicCallback(), moved))(plan)
    iteration = Iteration(coordinator, epochs, options, observation.pulse, moved)
    observation.limits = iteration.limits
    build = ExecutionContext(iteration, observation.top)
    return coordinator, build(plan) if reader is None else reader(build, plan)
