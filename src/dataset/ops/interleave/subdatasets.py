"""Subdatasets: datasets that a user function returns for the elements of another dataset.

flat_map, interleave and group_by_window share this module. An inner dataset is identified by the element it was created
from, so that a saved state can recreate it.

If its replay log knows the position of the returned elements (runtime/state/replay_log.py), elements that were read
ahead are not saved. Otherwise, they are saved by value, while no thread is reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dataset.errors import SpecError, StateError
from dataset.name_guard import watching_names
from dataset.plan.nested import REWRITTEN_ELEMENTS_MIN, is_dataset, optimized_subdataset
from dataset.plan.node import Node, ParallelNode, UnaryNode, elements_in_memory, walk
from dataset.plan.origin import call_for
from dataset.plan.random_state import is_unseeded
from dataset.plan.structure import LEAF, Structure
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.context import Call, ExecutionContext
from dataset.runtime.contract import Operator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position, holding
from dataset.runtime.random.streams import CallSeeds, seed_sequence
from dataset.runtime.resources.exceptions import concerns_iteration, raise_with_location
from dataset.runtime.state.held_elements import Elements, ElementsOperator
from dataset.runtime.state.own_elements import (
    REMEDY,
    OwnElements,
    holds_text,
    holds_values,
    key_of,
    names_in,
    saved_key,
)
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import (
    SpecGetter,
    holds_only_elements,
    load_chunk,
    load_error,
    save_chunk,
    save_error,
)
from dataset.world.interrupts import call as call_user

DATASET = "dataset"
"""The op in the positions of inner datasets."""

_FAILED = "failed"
"""The op in the position of a dataset that could not be opened."""


class Subdataset:
    """Open inner dataset, with the element it was created from and its read-ahead buffer.

    Attributes:
        order: the index of the function call that returned it, from 0.
        given: the number of returned elements, as its replay log counts them. Elements that a saved state held by value
            precede the first one that the log counts.
        before: how many elements were returned before those.
        ended: whether nothing is left to read; the read-ahead buffer may still hold elements.
        is_whole: whether the first read returns all of its elements, which are in memory.
        place: the position of the argument in the operator's input, as the input's replay log counts, if a saved state
            lets the input repeat it; None if the state holds the argument by value.
    """

    def __init__(self, argument: Chunk, order: int, plan: Node, operator: Operator) -> None:
        self.place: int | None = None
        self.is_over = False  # all elements were returned, and the operator is closed
        self.argument = argument
        self.order = order
        self.plan = plan
        self.operator = operator
        self.log = ReplayLog(operator, DATASET)
        self.given = 0
        self.before = 0
        self.ahead = OutcomeQueue()
        self.ended = False
        self.is_whole = False
        self.closed = False

    def give(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements that were read ahead; raise the exception if one is next."""
        try:
            chunk = self.ahead.give(n)
        except Exception:  # an interrupt does not count as an element
            self.given += 1
            raise
        if chunk is not None:
            self.given += chunk.length
        return chunk

    def close(self) -> None:
        """Close its files, threads and inputs, once."""
        if not self.closed:
            self.closed = True
            self.operator.close()

    def leave(self) -> None:
        """Close it after all its elements were returned."""
        self.is_over = True
        self.close()


_ENDED_MIN = 4  # datasets, before their number of elements is taken as typical

_NOTHING = Elements(Chunk(LEAF, 0, [[]]))

_UNKNOWN = Position(DATASET)  # of a dataset that is read again from its beginning


def _ended() -> Subdataset:
    """Return a placeholder for a dataset that has ended and need not be recreated."""
    inner = Subdataset(_NOTHING.chunk, 0, _NOTHING, ElementsOperator(_NOTHING.chunk))
    inner.ended = True
    return inner


def _require_agreement(plan: Node) -> None:
    """Raise ValueError if processes that each create this dataset may get different elements or orders."""
    for part in walk(plan):
        if isinstance(part, ParallelNode) and part.deterministic is False:
            lack = "deterministic=False, so each would have its own order: remove it"
        elif is_unseeded(part.random) and seed_sequence().seed is None:
            lack = "no seed, so each would draw different random numbers: set a seed"
        else:
            continue
        raise ValueError(
            f"shard_by_process() splits the elements of this dataset, so all processes must create the same elements; "
            f'but {part} has {lack}, or split by files with by="files"'
        )


class Subdatasets:
    """Factory of the inner datasets of one operator; checks that their elements have the same structure.

    Args:
        context: the execution context that opens their operators.
        node: the node of the operator.
        function: the user function that returns a Dataset.
        argument_spec: returns the spec of the arguments of ``function``; by default, that of the node's input.
        argument_name: the word for an argument in messages.
        in_agreement: whether other processes open the same datasets, which must then be deterministic.
    """

    def __init__(
        self,
        context: ExecutionContext,
        node: UnaryNode,
        function: Callable[..., Any],
        argument_spec: SpecGetter | None = None,
        argument_name: str = "element",
        *,
        must_match_across_processes: bool = False,
    ) -> None:
        self._outer = context
        self.context = context.unprofiled()
        if argument_spec is not None:  # an argument that holds elements is too large to identify a dataset
            self.context.provenance = None
        self.node = node
        self.function = function
        self.argument_spec = argument_spec or (lambda: node.source.element_spec)
        self.argument_name = argument_name
        self.must_match_across_processes = must_match_across_processes
        self.opened = 0
        self.argument: Chunk | None = None
        """The argument of the call that an interrupt aborted, which will be repeated."""
        self._structure: Structure | None = None  # of all elements, after the first
        self._ended = 0  # datasets that were read to their end
        self._ended_elements = 0  # their elements; both are approximate, because several threads may count at once

    def open(self, argument: Chunk, own: Callable[[Chunk], Chunk] | None = None, at_once: int = 0) -> Subdataset:
        """Open the dataset that the function returns for ``argument``, a one-element chunk.

        Args:
            argument: the argument.
            own: see ``reopen``.
            at_once: how many elements the first read requests, if it follows immediately. If there are no more than
                this, all in memory, no operators are needed.
        """
        self.argument = argument
        self.opened += 1
        try:
            inner = self._open(argument, self.opened - 1, own, at_once)
        except Exception:
            self.argument = None
            raise
        except BaseException:
            self.opened -= 1
            raise
        self.argument = None
        return inner

    def _open(
        self, argument: Chunk, order: int, own: Callable[[Chunk], Chunk] | None = None, at_once: int = 0
    ) -> Subdataset:
        """Open a dataset.

        Args:
            argument: the argument of the function.
            order: the index of the call.
            own: returns the input's own element for an argument that may come from a saved state. It is called if the
                library itself would open files for the argument.
            at_once: as for ``open``.
        """
        call = Call(self.context, self.node, order)
        plan = None
        if own is not None:
            with watching_names() as watch:
                try:
                    plan = self._make(argument, call)
                except Exception:
                    if not watch.is_used:
                        raise
            if plan is None or watch.is_used or any(node.traits.reads_files for node in walk(plan)):
                argument = own(argument)
                plan = None
        if plan is None:
            plan = self._make(argument, call)
        if at_once and self.may_skip_calls:
            whole: Chunk | None = elements_in_memory(plan)
            if whole is not None and 0 < whole.length <= at_once:
                inner = Subdataset(argument, order, plan, ElementsOperator(whole))
                inner.is_whole = True
                return inner
        return Subdataset(argument, order, plan, self.context.for_call(argument, plan, call)(plan))

    def _make(self, argument: Chunk, call: Call) -> Node:
        """Return the plan of the dataset that the function returns."""
        try:
            (values,) = zip(*argument.arguments(), strict=True)
            with CallSeeds(call.seed):
                result = call_for(self.node.origin, call_user, self.function, *values)
            if not is_dataset(result):
                raise TypeError(  # noqa: TRY301  # gets the same note as an exception of the function
                    f"{self.node.op}(): the function must return a Dataset, got {result!r} of type "
                    f"{type(result).__name__}"
                )
            if self.must_match_across_processes:
                _require_agreement(result.plan)
            if self._datasets_are_small:
                return result.plan
            return optimized_subdataset(result.plan, self.context.iteration.options.optimization.allows)
        except (Exception, GeneratorExit) as error:  # noqa: BLE001  # raised again with the position
            raise_with_location(error, self.node, call.order, self.argument_name)

    @property
    def _datasets_are_small(self) -> bool:
        """Whether rewriting another dataset would probably take longer than it saves."""
        return self._ended >= _ENDED_MIN and self._ended_elements < REWRITTEN_ELEMENTS_MIN * self._ended

    def _note_end(self, log: ReplayLog) -> None:
        self._ended += 1
        self._ended_elements += log.read

    def pull(self, inner: Subdataset, n: int) -> Chunk | None:
        """Pull elements of an inner dataset that are returned immediately.

        Raises:
            SpecError: if their structure differs from that of earlier elements.
        """
        log = inner.log
        if log.read < log.given:
            log.go_on()
        try:
            chunk = log.pull(n)
        finally:
            inner.given = log.read
        if chunk is None:
            self._note_end(log)
        elif chunk.structure is not self._structure:
            self.check(chunk)
        return chunk

    def read(self, inner: Subdataset, n: int, *, ahead: bool = False) -> Chunk | None:
        """Read elements of an inner dataset, unchecked. Threads may read concurrently, but only one per dataset.

        Args:
            inner: the dataset.
            n: the maximum number of elements.
            ahead: whether they are buffered, so that the replay log must know a position before them.
        """
        log = inner.log
        if ahead and (self.repeats or not log.read):
            log.forget(inner.given)
            log.step()
        if log.read < log.given:
            log.go_on()
        chunk = log.pull(n)
        if chunk is None:
            self._note_end(log)
        return chunk

    def take(self, inner: Subdataset, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements that were read ahead; raise the exception if one is next.

        Raises:
            SpecError: if the structure of the next differs from that of earlier elements.
        """
        chunk = inner.ahead.next_chunk()
        taken = inner.give(n if chunk is not None and self.fits(chunk) else 1)
        if taken is not None:
            self.check(taken)
        return taken

    def waiting(self, inner: Subdataset) -> int:
        """Return how many elements of the right structure can be taken in one chunk."""
        chunk = inner.ahead.next_chunk()
        return inner.ahead.waiting() if chunk is not None and self.fits(chunk) else 0

    @property
    def repeats(self) -> bool:
        """Whether inner datasets can repeat their elements from a saved position, and saving the position is cheap.

        A dataset that opens later may change this.
        """
        return self.context.input_is_replayable

    def fits(self, chunk: Chunk) -> bool:
        """Return whether elements have the structure of earlier elements."""
        return self._structure is None or chunk.structure is self._structure or chunk.structure == self._structure

    def check(self, chunk: Chunk) -> None:
        """Raise SpecError if the structure differs from that of earlier elements. Called in output order."""
        if not self.fits(chunk):
            raise SpecError(
                f"{self.node}: all datasets that the function returns must have the same structure, got "
                f"{self._structure!r} and {chunk.structure!r}. A reader that infers columns from each file needs them "
                'as an argument, such as JsonLinesDataset(path, {"text": bytes})'
            )
        self._structure = chunk.structure

    @property
    def has_given(self) -> bool:
        """Whether a first element has determined the structure."""
        return self._structure is not None

    def save(self, inner: Subdataset | None) -> Position | None:
        """Save an inner dataset, with its read-ahead buffer by value. No thread may be reading from it."""
        if inner is None:
            return None
        if inner.is_whole:  # its operator is not that of its plan, and is at the beginning or the end
            position = None if inner.given else _UNKNOWN
        else:
            position = None if inner.ended else inner.log.present()
        return self._saved(inner, inner.given, inner.ahead.save(), position)

    def save_by_place(self, inner: Subdataset, taken: int = 0) -> Position:
        """Save the position after the returned elements of an inner dataset, even while a thread is reading from it.

        Only elements that were restored by value are saved by value again.

        Args:
            inner: the dataset, which is only read with ``ahead=True``.
            taken: the number of elements that count as returned in addition to ``inner.given``.
        """
        log, given = inner.log, inner.given + taken
        start = max(given, log.given)
        nothing_behind = inner.ended and log.read <= start
        return self._saved(inner, given, inner.ahead.save(start - given), None if nothing_behind else log.place(start))

    def _saved(self, inner: Subdataset, given: int, ahead: list[Any], position: Position | None) -> Position:
        if position is None and not ahead:
            return Position(DATASET, own={"ended": True})
        # A dataset restored from its elements has a different plan, to which this position does not apply.
        found = position if position is not None and holds_only_elements(inner.argument) else _UNKNOWN
        own: dict[str, Any] = {"order": inner.order, "ended": position is None}
        held = holding(ahead=ahead)
        if inner.place is not None and self.source_repeats:
            own["place"] = inner.place
        else:
            held["argument"] = save_chunk(inner.argument)
        return found.having(at=given + inner.before, held=held, own=own)

    @property
    def may_skip_calls(self) -> bool:
        """Whether elements may be returned without opening the dataset that holds them."""
        return not self.context.is_traced and self.context.provenance is None

    @property
    def source_repeats(self) -> bool:
        """Whether the operator's input can repeat its elements from a saved position."""
        return self._outer.input_is_replayable

    def save_argument(self) -> tuple[int, Position | None]:
        """Return the number of opened datasets, including one whose opening was interrupted, and its position."""
        if self.argument is None:
            return self.opened, None
        return self.opened + 1, self.unopened(self.argument, self.opened)

    @staticmethod
    def unopened(argument: Chunk, order: int) -> Position:
        """Return the position of a dataset that has not been opened."""
        return _UNKNOWN.having(held={"argument": save_chunk(argument)}, own={"order": order, "ended": False})

    def load(self, position: Position | None) -> Subdataset | None:
        """Open the inner dataset at a saved position by calling the function again with the same argument."""
        return None if position is None else self.reopen(position)

    def reopen(
        self, position: Position, argument: Chunk | None = None, own: Callable[[Chunk], Chunk] | None = None
    ) -> Subdataset:
        """Open a saved inner dataset. Its first read skips the elements that were returned after the saved position.

        Args:
            position: the position of the inner dataset.
            argument: the argument of the function; by default, the one that the position holds by value.
            own: returns the input's own element for an argument by value if the library would open files for it.
        """
        if argument is None:
            argument = load_chunk(position.held.get("argument"), self.argument_spec)
            if argument is None:
                return _ended()
        inner = self._open(argument, position.count("order"), own)
        inner.ahead.load(position.held.get("ahead", ()), lambda: inner.plan.element_spec)
        inner.ended = position.like("ended", False)
        held = len(inner.ahead)
        if position.inputs:
            inner.log.load(position)
        elif not inner.ended:
            inner.log.given = position.at + held
        inner.given = inner.log.given - held
        inner.before = position.at - inner.given
        return inner


def failed(error: BaseException) -> Position:
    """Return the position of a dataset that could not be opened."""
    return Position(_FAILED, held={"error": save_error(error)})


class Inputs:
    """Input queue of an interleave: opens the inner datasets in order, starting with those of a loaded state.

    One thread at a time calls ``open_next`` and ``note``. Any thread may save meanwhile; it saves the position after
    the last noted dataset.

    An argument that contains text may name a file, so a state does not hold it. Instead, the saved position is before
    the first such argument whose dataset is open, and the source repeats the arguments from there. If the source cannot
    repeat its elements, the state holds the argument, which is then looked up in the elements of the source.

    Args:
        source: the input, whose elements the datasets are created from.
        datasets: the factory of the datasets.
        leaves_marks: whether the position may be saved while another thread opens a dataset.
    """

    def __init__(self, source: Operator, datasets: Subdatasets, *, leaves_marks: bool = False) -> None:
        self.source = source
        self.datasets = datasets
        self._source_ended = False
        self._saved: deque[Position] = deque()  # of datasets opened ahead, from the loaded state
        self._log = ReplayLog(source, datasets.node.op)
        self._base = 0  # the position of the log's first element
        self._noted = 0  # noted elements, as the log counts them
        self._opened = 0
        self._placed: list[Subdataset] = []  # datasets whose arguments the source can repeat
        self._arguments: dict[int, Chunk] = {}  # by position, those that the loaded state needs
        self._always_leaves_marks = leaves_marks
        self._leaves_marks = True
        self._own: OwnElements | None = None
        self._is_unverified = False  # whether the source's elements may come from a saved state

    @property
    def ended(self) -> bool:
        """Whether no dataset is left."""
        return self._source_ended and not self._saved

    def open_next(self, at_once: int = 0) -> Subdataset | None:
        """Open the next dataset; None if there is none left. Must not be called again before ``note``.

        ``at_once`` is as for ``Subdatasets.open``.
        """
        if self._saved:
            saved = self._saved[0]
            if saved.op == _FAILED:
                raise load_error(saved.held["error"])
            return self.reopen(saved)
        argument = self._pull(1) if self.datasets.argument is None else self.datasets.argument
        if argument is None:
            return None
        argument = argument.unpacked() if argument.is_packed else argument
        inner = self.datasets.open(argument, self._own_argument if self._is_unverified else None, at_once)
        self._take_place(inner, self._log.read - 1)
        # If the arguments are numbers, they are saved by value and need no marks.
        self._leaves_marks = self._always_leaves_marks or inner.place is not None
        return inner

    def _pull(self, n: int) -> Chunk | None:
        """Pull arguments; None at the end of the input."""
        log = self._log
        if self._leaves_marks and self.datasets.source_repeats:
            log.step()
        if log.read < log.given:
            log.go_on()
        arguments = log.pull(n)
        if arguments is None:
            self._source_ended = True
        return arguments

    @property
    def may_take(self) -> bool:
        """Whether ``take`` may be called."""
        return not self._saved and self.datasets.argument is None and not self._is_unverified

    def take(self, n: int) -> Chunk | None:
        """Return the arguments of the next 1 to ``n`` datasets, which the caller reads instead of opening them.

        They count as opened. Must not be called again before ``note``.
        """
        arguments = self._pull(n)
        self.datasets.opened += 0 if arguments is None else arguments.length
        return arguments

    def put_back(self, arguments: Chunk) -> None:
        """Put back the last arguments that ``take`` returned, after ``note``: their datasets are opened one by one."""
        first = self.datasets.opened - arguments.length
        for index in range(arguments.length):
            argument = arguments.slice(index, index + 1).unpacked()
            self._saved.append(self.datasets.unopened(argument, first + index))

    def _take_place(self, inner: Subdataset, count: int) -> None:
        """Record the position of the argument, after ``count`` elements, if it may name a file and can be repeated."""
        if self.datasets.source_repeats and holds_text(inner.argument) and self._log.mark_before(count) is not None:
            inner.place = self._base + count
            self._placed = [*(one for one in self._placed if not one.is_over), inner]

    def reopen(self, saved: Position) -> Subdataset:
        """Open an inner dataset of the position passed to ``load``."""
        if "place" not in saved.own:
            return self.datasets.reopen(saved, own=self._own_argument)
        place = saved.own["place"]
        if place not in self._arguments:
            raise StateError(f"the state is damaged: it has no argument at position {place!r:.40}")
        own = self._own_argument if self._is_unverified else None
        inner = self.datasets.reopen(saved, self._arguments[place], own)
        self._take_place(inner, place - self._base)
        return inner

    def _own_argument(self, argument: Chunk) -> Chunk:
        """Return the source's own element for an argument that may come from a saved state."""
        names = names_in(argument)
        if names is None:
            return argument
        context, node = self.datasets.context, self.datasets.node
        if self._own is None:
            self._own = OwnElements(context, node.source, key_of)
        found = (
            self._own.assembled(argument, lambda names: saved_key(names, context))
            or self._own.get(key_of(argument))
            or self._own.get(saved_key(names, context))
        )
        if found is None:
            raise StateError(f"{node}: the state holds {names!r:.500}, which the input does not contain; {REMEDY}")
        return found

    def note(self) -> None:
        """Note that the last opened dataset has arrived or failed."""
        if self._saved:
            self._saved.popleft()
        self.datasets.argument = None
        self._noted, self._opened = self._log.position, self.datasets.opened
        if self._leaves_marks:
            self._log.forget(self._first)

    @property
    def _first(self) -> int:
        """The log's element count before the first argument that the source must repeat."""
        if not self.datasets.source_repeats:
            return self._noted
        places = [one.place for one in self._placed if one.place is not None and not one.is_over]
        places += [saved.own["place"] for saved in self._saved if "place" in saved.own]
        return min([self._noted, *(place - self._base for place in places)])

    def save(self, slots: Sequence[Position | None], arrived: Sequence[Position] = (), *, by_place: bool) -> Position:
        """Save the position of the source, and the opened datasets that come before its next element.

        Args:
            slots: the positions of the datasets that are being read.
            arrived: the positions of the datasets that wait for a place in the cycle.
            by_place: whether to use the source's replay log. If not, no thread may be reading from the source.
        """
        log, first, opened, unopened = self._log, self._first, self._opened, None
        has_ended = self._source_ended and first == self._noted  # else it ends again after the elements from ``first``
        if has_ended and not log.is_behind:
            position = log.present()  # a cache in the source keeps its elements at the end
        elif by_place or first < self._noted:
            position = log.place(first)
        else:
            opened, unopened = self.datasets.save_argument()
            position = log.present()
        own = {"slots": len(slots), "ahead": self._noted - first, "opened": opened, "source_ended": has_ended}
        later = (*arrived, *(() if unopened is None else (unopened,)), *map(self._saved_again, self._saved))
        at = self._base + first + (unopened is not None)
        return position.having(at=at, inputs=(position.source, *slots, *later), own=own)

    def _saved_again(self, saved: Position) -> Position:
        """Return the position of a dataset that was not opened after loading."""
        if "place" not in saved.own or self.datasets.source_repeats:
            return saved
        own = {**saved.own}
        return saved.having(held={**saved.held, "argument": save_chunk(self._arguments[own.pop("place")])}, own=own)

    def load(self, position: Position) -> tuple[Position | None, ...]:
        """Go to a saved position, and return those of the datasets that were being read; open others on demand."""
        log = self._log
        log.load(position)
        self._is_unverified = holds_values(position.source)
        self._base = position.at - log.given
        inner, ahead, slots = position.inputs[1:], position.count("ahead"), position.count("slots")
        if ahead:
            self._pull_again(
                ahead, {saved.own["place"] for saved in inner if saved is not None and "place" in saved.own}
            )
        self._noted = log.position
        self.datasets.opened = self._opened = position.count("opened")
        self._source_ended = position.like("source_ended", False)
        self._saved.extend(saved for saved in inner[slots:] if saved is not None)
        return inner[:slots]

    def _pull_again(self, count: int, places: set[int]) -> None:
        """Pull the arguments of opened datasets again, and keep those at ``places``."""
        log = self._log
        log.go_on()
        for _ in range(count):
            place = self._base + log.read
            try:
                argument = log.pull(1)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                continue  # already raised before the state was saved
            if argument is None:
                break
            if place in places:
                self._arguments[place] = argument

    def close(self) -> None:
        """Close the source, and the one in which arguments are looked up."""
        if self._own is not None:
            self._own.close()
        self.source.close()
