"""Execution context of an operator: its place in the plan, and what all operators of an iteration share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from dataset.options import AUTOTUNE, Options, bounded
from dataset.plan.epochs import openings, random_states
from dataset.plan.lazy import lazy_property
from dataset.plan.node import Node, UnaryNode, inputs_first
from dataset.plan.random_state import RandomState, state_numbers
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.chunks.file_trace import Opening
from dataset.runtime.chunks.lineage import LineageWriter, RecordSource, Rows, joined
from dataset.runtime.contract import Operator
from dataset.runtime.metrics.background import Counters, Tunable
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.runtime.metrics.op_record import OpRecord
from dataset.runtime.metrics.profile import PipelineProfile
from dataset.runtime.metrics.step_times import StepTimes
from dataset.runtime.position import Position
from dataset.runtime.random.streams import Draws, EpochLedger, derived_seed
from dataset.runtime.resources.coordinator import Coordinator
from dataset.runtime.resources.limits import Limits
from dataset.runtime.resources.memory import keep_freed_memory
from dataset.runtime.resources.periodic import PeriodicCallback

_NO_OPTIONS = Options()

Moved: TypeAlias = Callable[[str], str]
"""Maps the name of a file in a saved state to its current name."""


def unmoved(name: str) -> str:
    """Return the name unchanged: no files have moved."""
    return name


_EPOCHS = 1 << 63


class Iteration:
    """State shared by all operators of one iteration, including those of inner datasets.

    Args:
        coordinator: owns the threads.
        epochs: knows which epoch each shuffle is in.
        options: the options of the whole pipeline.
        pulse: the periodic callback of the iteration.
        moved: maps the file names in a saved state to current names.
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
        self.first_random = next(state_numbers)
        """Random states with smaller numbers were created before the iteration."""
        self.passes_to_repeat: dict[Node, Position] = {}
        """The start of each pass that a saved state reads from, by the op that caches it (ops/cache/caching.py)."""
        self.filled: set[Node] = set()
        """The ops that have cached a whole pass in this iteration."""
        self.background = not epochs.probing and coordinator.may_start
        """Whether background work is allowed. Probing a single element must not compute elements ahead."""
        self.read_from_store: set[Node] = set()
        """The ops that read the elements they have cached, without running their inputs."""
        self.cache_choices: dict[Any, Any] = {}
        """Where each cache(AUTOTUNE) keeps elements in its present pass (ops/cache/auto_cache.py)."""
        self.profile: PipelineProfile | None = None
        """The profile of the iteration, if it is observed."""
        self.repeats = True
        """Whether the iteration, restored to a state, repeats its elements, however large its states are."""
        self.above: tuple[tuple[int, ...], int] = (), 0
        """``inputs`` and ``epoch`` of the LineageContext in another process that reads from the plan."""


class ExecutionContext:
    """Opens the operators of one iteration. Each op is lowered with its own context, which knows the op's record.

    Args:
        iteration: the state shared by all operators.
        record: the record of the op opened with this context; None if it is not observed.
        skipped: the counter for dropped elements, used if ``record`` is None.
        reader: the context of the op that reads from this one.
        node: the op.
        opening: the index of the reader's input that is opened with this context, or of the run of its only input.
    """

    __slots__ = (
        "_argument",
        "_beginning",
        "_call",
        "_node",
        "_opening",
        "_reader",
        "_record",
        "input_is_replayable",
        "is_traced",
        "iteration",
        "may_be_packed",
        "provenance",
        "replays",
        "skipped",
    )

    def __init__(
        self,
        iteration: Iteration,
        record: OpRecord | None = None,
        skipped: DroppedCount | None = None,
        reader: ExecutionContext | None = None,
        node: Node | None = None,
        opening: int = 0,
    ) -> None:
        self.iteration = iteration
        self._node = node
        self._opening = opening
        self._record = record
        self._reader = reader
        self.skipped = skipped or (DroppedCount() if record is None else record.skipped)
        self.input_is_replayable = True
        """Whether the op's input, restored to an earlier position, repeats its elements and has a cheap state.

        Otherwise, elements read ahead from it must be saved by value. Datasets that are opened later may change this.
        """
        self.provenance: tuple[Opening, ...] | None = None if reader is None else reader.provenance
        """The enclosing datasets, from outer to inner, if elements read from files must record their origin.

        The list starts below the op that needs the origins (chunks/provenance.py). None if no op needs them.
        """
        self.is_traced: bool = iteration.options.provenance is True if reader is None else reader.is_traced
        """Whether the sources tell which records their elements are (chunks/lineage.py)."""
        self.may_be_packed = False
        """Whether the reader takes a BytesColumn in the place of a list of byte strings."""
        self.replays = False
        """Whether the op repeats a pass over its input to resume, and so requires the same order."""
        self._beginning: dict[RandomState, Draws] | None = None  # of a run that began in another context
        self._call: Call | None = None  # the function call that returned the dataset opened with this context
        self._argument: Rows | None = None  # the lineage of the argument of that call

    def mark_not_replayable(self, *, repeats: bool = False) -> None:
        """Declare that the op's order is not repeatable, or if it ``repeats``, that its state holds many elements."""
        self.iteration.repeats &= repeats
        reader = self._reader
        while reader is not None and reader.input_is_replayable:
            reader.input_is_replayable = False
            reader = reader._reader  # noqa: SLF001  # its own class

    def __call__(self, node: Node, opening: int = 0, *, packed: bool | None = None) -> Operator:
        """Open the operator of an input.

        Args:
            node: the input.
            opening: the index of the input among several, or of the run of the only input.
            packed: whether the op takes a BytesColumn in the place of a list; by default, if it only selects and orders
                elements of one input for a reader that does.
        """
        record = None if self._record is None else self._record.input(node)
        context = ExecutionContext(
            self.iteration, record, self.skipped if record is None else None, self, node, opening
        )
        if packed is None:
            reader = self._node
            passes = reader is None or (reader.traits.only_reorders and len(reader.inputs) == 1)
            packed = self.may_be_packed and passes
        context.may_be_packed = packed
        operator: Operator = node.lower(context)
        if self._record is not None and record is not None:
            self._record.input_opened(record, operator)
        return operator

    def fused_with(self, *nodes: Node) -> StepTimes:
        """Declare that the operator also does the work of these nodes below its own; return what may measure each."""
        if self._record is None:
            return StepTimes(len(nodes) + 1)
        if self._record.fused != nodes:
            self._record.fused, self._record.step_times = nodes, StepTimes(len(nodes) + 1)
        return self._record.step_times

    def unprofiled(self) -> ExecutionContext:
        """Return a context for datasets that are opened in large numbers: without op records and without tuning.

        Elements dropped in them are counted for this op.
        """
        return ExecutionContext(self.iteration, None, self.skipped, self, self._node)

    def for_call(self, argument: Chunk, plan: Node, call: Call) -> ExecutionContext:
        """Return a context for a dataset that a function returned.

        Args:
            argument: the argument of the function.
            plan: the plan of the dataset.
            call: the call of the function.
        """
        inner = ExecutionContext(self.iteration, self._record, self.skipped, self)
        inner._call = call
        inner.may_be_packed = self.may_be_packed
        if argument.lineage is not None:
            inner._argument = joined(argument.lineage)
        if self.provenance is not None:
            inner.provenance = (*self.provenance, Opening(call.node, argument, plan))
        return inner

    def draws(self, random: RandomState, *, of_first_run: bool = False) -> Draws:
        """Return what the random numbers of an op depend on: this context's op, or one in its input.

        The epoch is the number of earlier runs of the op in a complete run of the plan. An op that was created before
        the iteration, and is part of a dataset that a function returns, has a different iteration number for each call.

        Args:
            random: the random state of the op.
            of_first_run: whether to return those of the first run of this context's op in the iteration.
        """
        found, epoch, root, call = self._place(random, of_first_run=of_first_run)
        if found is not None:
            return Draws(found.key, found.iteration, (found.epoch + epoch) % _EPOCHS)
        if call is None:
            iteration, key = self.iteration.epochs.place(random)
            return Draws(key, iteration, epoch % _EPOCHS)
        key, iteration = random.key, 0
        if random.number < self.iteration.first_random:
            iteration = call.iteration if of_first_run else call.number
            if random.seed is None:
                key = derived_seed(call.node_key, list(openings(root)).index(random))
        return Draws(key, iteration, epoch % _EPOCHS)

    def _place(self, random: RandomState, *, of_first_run: bool = False) -> tuple[Draws | None, int, Node, Call | None]:
        """Locate the op with this random state within the plan, in the present or the first run of this context's op.

        Returns:
            The draws with which the enclosing saved pass began, if any; the number of earlier runs of the op in that
            pass or in the plan; the plan; and the function call that returned the plan, if any.
        """
        assert self._node is not None
        epoch, found, context, root = 0, None, self, self._node
        counted = root  # the plan in which earlier runs count
        while context._reader is not None and context._node is not None:
            root, reader = context._node, context._reader
            if found is None:
                counted = root
                found = None if context._beginning is None else context._beginning.get(random)
            if found is None:
                epoch += _runs_before(random, root, reader._node, context._opening)  # noqa: SLF001  # its own class
            context = reader
        if of_first_run:
            epoch = _runs_before_first(random, self._node, counted)
        return found, epoch, root, context._call  # noqa: SLF001

    def from_beginning(self, node: Node, beginning: list[list[int]]) -> Operator:
        """Open an input for a run that began with these draws, in this or another iteration."""
        draws = [Draws(*map(int, entry)) for entry in beginning]
        context = ExecutionContext(self.iteration, self._record, self.skipped, self, self._node or node)
        context._beginning = dict(zip(random_states(node), draws, strict=True))
        return context(node)

    @property
    def counters(self) -> Counters:
        """The op's counters for background work."""
        return Counters() if self._record is None else self._record.counters

    def tunable(self, name: str, requested: int, autotuned: int, maximum: int) -> Tunable:
        """Return the value of an option that the tuner may set while the op runs.

        Args:
            name: the name of the option.
            requested: the user's value.
            autotuned: the initial value for AUTOTUNE.
            maximum: the upper bound for AUTOTUNE. Both are limited by the bound that the user may have set.
        """
        autotuned, maximum = bounded(requested, autotuned), bounded(requested, maximum)
        is_tuned = self._record is not None and self.iteration.options.autotune.enabled is not False
        if requested != AUTOTUNE:
            knob = Tunable(name, requested)
        elif is_tuned:
            knob = Tunable(name, autotuned, min(1, autotuned), maximum)
        else:
            knob = Tunable(name, autotuned)
        if self._record is None:
            return knob
        if self._record.knob is None:  # a reopened op keeps the knob that was set before
            self._record.knob = knob
        return self._record.knob

    def keeps_order(self, deterministic: bool | None) -> bool:
        """Return whether an op given ``deterministic`` must keep the order; if it is None, the options decide.

        An op below one that replays its input always keeps the order, because replaying must produce the same elements
        as the first pass.
        """
        reader: ExecutionContext | None = self
        while reader is not None:
            if reader.replays:
                return True
            reader = reader._reader  # noqa: SLF001  # its own class
        if deterministic is None:
            deterministic = self.iteration.options.deterministic
        return deterministic is not False


class LineageContext:
    """Place of an op among the inputs, passes and function calls of an iteration, which its lineage tells.

    Args:
        context: the execution context of the op.
    """

    __slots__ = ("_context",)

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context

    def writer(self, name: str, file: str | None = None, *, is_store: bool = False) -> LineageWriter:
        """Return the writer of the lineage of a source.

        Args:
            name: the name of the reader.
            file: the path of the file, without secrets; None for other sources.
            is_store: whether the records are elements that the op has stored.
        """
        arguments = (context._argument for context, _ in self._readers())  # noqa: SLF001  # same module
        argument = next((rows for rows in arguments if rows is not None), None)
        return LineageWriter(RecordSource(name, file, self.inputs, is_store), self.epoch, argument)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The index of the op among the inputs of each op that joins several datasets, from the last op on."""
        inputs: list[int] = []
        for context, reader in self._readers():
            if context._node is not reader._node and not isinstance(reader._node, UnaryNode | None):  # noqa: SLF001
                inputs.insert(0, context._opening)  # noqa: SLF001
        return *self._context.iteration.above[0], *inputs

    @property
    def epoch(self) -> int:
        """The number of earlier passes over the op, in this iteration."""
        epoch, passes = 0, 1
        for context, reader in self._readers():
            node = reader._node  # noqa: SLF001
            if node is not None and node.traits.passes != 1:
                epoch += context._opening * passes  # noqa: SLF001
                passes *= max(1, node.traits.passes)
        return epoch + self._context.iteration.above[1] * passes

    @property
    def is_of_call(self) -> bool:
        """Whether a function returned the dataset of the op."""
        return any(context._call is not None for context, _ in self._readers())  # noqa: SLF001

    def _readers(self) -> Iterator[tuple[ExecutionContext, ExecutionContext]]:
        """Yield the context of the op and those of its readers, each with the next."""
        context = self._context
        while (reader := context._reader) is not None:  # noqa: SLF001
            yield context, reader
            context = reader


def source_lineage(
    context: ExecutionContext, node: Node, file: str | None = None, *, op: str | None = None, is_store: bool = False
) -> LineageWriter | None:
    """Return the writer of the lineage of a source, or None if none is recorded.

    Args:
        context: opens the source.
        node: the source; its own name, or else its op, names it in provenance.
        file: as an argument of ``writer``.
        op: the name of the op if it is not that of the node.
        is_store: as an argument of ``writer``.
    """
    if not context.is_traced:
        return None
    return LineageContext(context).writer(node.name or op or node.op, file, is_store=is_store)


class Call:
    """One call of a function that returns a dataset.

    Args:
        context: opens the op that has the function.
        node: the op.
        order: the index of the call among all calls of the op, counted from 0.
    """

    def __init__(self, context: ExecutionContext, node: Node, order: int) -> None:
        assert node.random is not None  # set by the ops whose functions return datasets
        self._context = context
        self._random = node.random
        self.node = node
        self.order = order

    @lazy_property
    def number(self) -> int:
        """A number that is unique to this call and the same in all processes."""
        _, _, root, outer = self._context._place(self._random)  # noqa: SLF001
        functions = [random for random in openings(root) if random.of_functions]
        _, iteration, epoch = self._context.draws(self._random)
        above = 0 if outer is None else outer.number
        return derived_seed(functions.index(self._random), iteration, epoch, self.order, above)

    @lazy_property
    def iteration(self) -> int:
        """A number that all calls of the op in one iteration have in common."""
        outer = self._context._place(self._random)[-1]  # noqa: SLF001
        return self._context.draws(self._random).iteration if outer is None else outer.iteration

    @property
    def node_key(self) -> int:
        """The key for the random numbers of the op's inner datasets that have no seeds of their own."""
        return self._context.draws(self._random).key

    def seed(self) -> int:
        """Return the base of the seeds drawn during the call."""
        return derived_seed(self.node_key, self.number)


def _runs_before(random: RandomState, node: Node, reader: Node | None, opening: int) -> int:
    """Count how often the op with ``random`` runs in ``reader`` before the input (or run of the input) ``node``."""
    if not opening or reader is None:
        return 0
    if len(reader.inputs) == 1:
        return opening * openings(node).get(random, 0)
    if openings(reader).get(random) == openings(node).get(random):
        return 0  # no other input has it
    return sum(openings(source).get(random, 0) for source in reader.inputs[:opening])


def _runs_before_first(random: RandomState, node: Node, plan: Node) -> int:
    """Count how often the op with ``random`` runs in ``plan`` before ``node`` is opened for the first time."""
    runs = 0
    while plan is not node:
        place = next((place for place, source in enumerate(plan.inputs) if node in inputs_first(source)), None)
        if place is None:  # it is in a field of a node
            break
        runs += sum(openings(source).get(random, 0) for source in plan.inputs[:place])
        plan = plan.inputs[place]
    return runs


Reader: TypeAlias = Callable[[ExecutionContext, Node], Operator]
"""Opens a plan with an ExecutionContext and returns the operator that reads from its last operator."""


def open_plan(
    plan: Node,
    options: Options | None = None,
    *,
    probing: bool = False,
    profile: PipelineProfile | None = None,
    epochs: EpochLedger | None = None,
    reader: Reader | None = None,
    moved: Moved = unmoved,
) -> tuple[Coordinator, Operator]:
    """Open a plan and return its last operator and the coordinator that owns its threads.

    To end both, call ``shut_down(operator.close, ...)`` on the coordinator.

    Args:
        plan: what to run.
        options: the options of the whole pipeline; default: none are set.
        probing: whether to compute only an element or two, without using up a random order or computing ahead.
        profile: the profile of the iteration, if it is observed.
        epochs: knows which epoch each shuffle is in; default: a new ledger.
        reader: opens the plan and the operator that reads from it; only used with ``profile``.
        moved: maps the file names in a saved state to current names.
    """
    options = _NO_OPTIONS if options is None else options
    keep_freed_memory()
    coordinator = Coordinator(options.threading.private_threadpool_size or None)
    epochs = EpochLedger(probing=probing) if epochs is None else epochs
    if profile is None:
        return coordinator, ExecutionContext(Iteration(coordinator, epochs, options, PeriodicCallback(), moved))(plan)
    iteration = Iteration(coordinator, epochs, options, profile.pulse, moved)
    iteration.profile, profile.limits = profile, iteration.limits
    context = ExecutionContext(iteration, profile.top)
    return coordinator, context(plan) if reader is None else reader(context, plan)


def open_beside(context: ExecutionContext, plan: Node) -> tuple[Coordinator, Operator]:
    """Open an input of an op for a separate run with the random orders of the iteration, as ``open_plan`` does.

    The run uses up no order and computes nothing ahead.
    """
    mine = context.iteration
    coordinator = Coordinator(mine.options.threading.private_threadpool_size or None)
    epochs = EpochLedger(probing=True, instead_of=mine.epochs)
    iteration = Iteration(coordinator, epochs, mine.options, PeriodicCallback())
    iteration.first_random, iteration.passes_to_repeat = mine.first_random, dict(mine.passes_to_repeat)
    beside = ExecutionContext(iteration, None, None, context, context._node)  # noqa: SLF001  # same module
    beside.provenance = None
    return coordinator, beside(plan)
