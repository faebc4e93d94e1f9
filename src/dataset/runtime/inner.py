"""Datasets inside datasets: calling a user's function that returns one, and reading from it.

flat_map, interleave and group_by_window share this. An inner dataset is remembered by the element it was made from, so
that a saved state can make it again.

What was read from it and has not been given is not saved where its trail tells the place of what was given
(runtime/trail.py). Else it is saved by value, while nobody reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from dataset.errors import SpecError
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, UnaryNode, walk
from dataset.plan.structure import LEAF, Structure
from dataset.runtime.calls import arguments, raise_placed
from dataset.runtime.chunk import Chunk, Outcome, nbytes_of
from dataset.runtime.elements import Elements, ElementsOperator
from dataset.runtime.operator import Build, Operator, State
from dataset.runtime.rng import seed_sequence
from dataset.runtime.state import (
    SpecGetter,
    holds_only_elements,
    load_chunk,
    load_error,
    load_pending,
    save_chunk,
    save_pending,
)
from dataset.runtime.trail import Trail


class ReadAhead:
    """What was read from an inner dataset before its turn came: elements, and exceptions in the places of elements.

    Unlike Pending it keeps no count, so that one thread may put while another one takes, without a lock.

    Attributes:
        bytes_given: of all that has left, as far as it was said when it was put here. A chunk that is handed out in
            pieces has left with the last of them.
    """

    __slots__ = ("_given", "_items", "bytes_given")

    def __init__(self) -> None:
        self._items: deque[tuple[Outcome, int]] = deque()  # with their counted bytes
        self._given = 0  # elements of the first chunk
        self.bytes_given = 0

    def __bool__(self) -> bool:
        return bool(self._items)

    def put(self, item: Outcome, nbytes: int = 0) -> None:
        """Add an item behind all others; ``nbytes`` of it count."""
        self._items.append((item, nbytes))

    def clear(self) -> None:
        """Forget everything."""
        self._items.clear()
        self._given = 0

    def next_chunk(self) -> Chunk | None:
        """The chunk that the next element is in; None where an exception is next, or nothing."""
        first = self._items[0][0] if self._items else None
        return first if isinstance(first, Chunk) else None

    def waiting(self) -> int:
        """How many elements can be had in one piece."""
        first = self.next_chunk()
        return 0 if first is None else first.length - self._given

    def give(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements; raises the exception where one is next; None where nothing is left."""
        first = self.next_chunk()
        if first is None:
            self._fail_if_next()
            return None
        start, stop = self._given, min(self._given + n, first.length)
        self._given = stop
        if stop == first.length:
            self.bytes_given += self._items.popleft()[1]
            self._given = 0
        return first.slice(start, stop)

    def _fail_if_next(self) -> None:
        if not self._items:
            return
        error, nbytes = self._items.popleft()
        self.bytes_given += nbytes
        assert isinstance(error, BaseException)  # asked before
        try:
            raise error
        finally:
            del error  # see runtime/operator.py on exceptions that are kept

    def save(self, count: int | None = None) -> list[Any]:
        """The first ``count`` elements as plain data; default, all, while nobody puts or takes."""
        found: list[Outcome] = []
        missing = len(self) if count is None else count
        for item, _ in islice(self._items, len(self._items)) if missing else ():
            start = self._given if not found and isinstance(item, Chunk) else 0
            part = item.slice(start, min(item.length, start + missing)) if isinstance(item, Chunk) else item
            found.append(part)
            missing -= part.length if isinstance(part, Chunk) else 1
            if not missing:
                break
        return save_pending(found)

    def load(self, data: Any, spec: SpecGetter) -> None:
        """Put what was saved behind what is here; ``spec`` as for load_chunk."""
        for item in load_pending(data, spec):
            self.put(item, nbytes_of(item))

    @property
    def counted_bytes(self) -> int:
        """Of what is held, while nobody else puts or takes."""
        return sum(nbytes for _, nbytes in self._items)

    def __len__(self) -> int:
        """How many elements there are, each exception counting as one."""
        return sum(item.length if isinstance(item, Chunk) else 1 for item, _ in self._items) - self._given


class Inner:
    """One inner dataset, open, the element that it was made from, and what was read from it ahead.

    Attributes:
        given: elements that were given, as its trail counts them. Those that a saved state held by value come before
            the first that the trail counts.
        before: how many more had been given before those.
        ended: whether nothing is left to be read; what was read ahead may be.
    """

    def __init__(self, argument: Chunk, plan: Node, operator: Operator) -> None:
        self.argument = argument
        self.plan = plan
        self.operator = operator
        self.trail = Trail(operator)
        self.given = 0
        self.before = 0
        self.ahead = ReadAhead()
        self.ended = False
        self.closed = False

    def give(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements of those read ahead; raises the exception where one is next."""
        try:
            chunk = self.ahead.give(n)
        except Exception:  # an interrupt has not the place of an element
            self.given += 1
            raise
        if chunk is not None:
            self.given += chunk.length
        return chunk

    def close(self) -> None:
        """Let go of its files, threads and inputs, once."""
        if not self.closed:
            self.closed = True
            self.operator.close()


_NOTHING = Elements(Chunk(LEAF, 0, [[]]))


def _ended() -> Inner:
    """Stands for a dataset of which nothing is left, which need not be made again."""
    inner = Inner(_NOTHING.chunk, _NOTHING, ElementsOperator(_NOTHING.chunk))
    inner.ended = True
    return inner


def _require_agreement(plan: Node) -> None:
    """Raise ValueError if processes that make this dataset, each for itself, may get other elements or orders."""
    for part in walk(plan):
        if getattr(part, "deterministic", None) is False:
            lack = "deterministic=False, so each would have its own order: leave that out"
        elif hasattr(part, "counter") and getattr(part, "seed", None) is None and seed_sequence().seed is None:
            lack = "no seed, so each would draw other numbers: give it one"
        else:
            continue
        raise ValueError(
            f"shard_by_process() deals out the elements of this dataset, so all processes must make the same; but "
            f'{part.located()} has {lack}, or deal out files, with by="files"'
        )


class InnerDatasets:
    """Makes the inner datasets of one operator and checks that their elements are alike.

    Args:
        build: opens their operators.
        node: the operation that asks for them.
        function: the user's, which returns a Dataset.
        argument_spec: of what ``function`` is given; by default the elements of the node's input.
        argument_name: the word for one of them in messages.
        in_agreement: whether other processes open the same datasets, and nothing in them may be left to chance.
    """

    def __init__(
        self,
        build: Build,
        node: UnaryNode,
        function: Callable[..., Any],
        argument_spec: SpecGetter | None = None,
        argument_name: str = "element",
        *,
        in_agreement: bool = False,
    ) -> None:
        self.build = build.unobserved()
        if argument_spec is not None:  # an argument that holds elements is no short way to say which dataset it is
            self.build.within = None
        self.node = node
        self.function = function
        self.argument_spec = argument_spec or (lambda: node.source.element_spec)
        self.argument_name = argument_name
        self.in_agreement = in_agreement
        self.opened = 0
        self._structure: Structure | None = None  # of all elements, once the first is known

    def open_next(self, source: Operator) -> Inner | None:
        """The inner dataset of the next element of ``source``; None where there is none left."""
        argument = source.pull(1)
        return None if argument is None else self.open(argument)

    def open(self, argument: Chunk) -> Inner:
        """The inner dataset that the function returns for ``argument``, a chunk of one."""
        self.opened += 1
        return self._open(argument)

    def _open(self, argument: Chunk) -> Inner:
        try:
            (values,) = zip(*arguments(argument), strict=True)
            result = self.function(*values)
            if not is_dataset(result):
                raise TypeError(  # noqa: TRY301  # it gets the same note as an exception of the function
                    f"{self.node.op}(): the function must return a Dataset, got {result!r} of type "
                    f"{type(result).__name__}"
                )
            if self.in_agreement:
                _require_agreement(result.plan)
        except Exception as error:  # noqa: BLE001  # raised again, with its place
            raise_placed(error, self.node, self.opened - 1, self.argument_name)
        return Inner(argument, result.plan, self.build.inside(self.node, argument, result.plan)(result.plan))

    def pull(self, inner: Inner, n: int) -> Chunk | None:
        """Elements of an inner dataset, which are given at once.

        Raises:
            SpecError: if they have not the structure of those before.
        """
        try:
            chunk = self.read(inner, n)
        except Exception:
            inner.given += 1
            raise
        if chunk is not None:
            inner.given += chunk.length
            self.check(chunk)
        return chunk

    def read(self, inner: Inner, n: int, *, ahead: bool = False) -> Chunk | None:
        """Elements of an inner dataset, unchecked. Several threads may read at once, but only one from one dataset.

        Args:
            inner: the dataset.
            n: how many, at most.
            ahead: whether they are not given at once, so that its trail has to tell a place before them.
        """
        trail = inner.trail
        if ahead and (self.repeats or not trail.read):
            trail.forget(inner.given)
            trail.step()
        if trail.read < trail.given:
            trail.go_on()
        return trail.pull(n)

    def take(self, inner: Inner, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements that were read ahead; raises the exception where one is next.

        Raises:
            SpecError: if the next has not the structure of those before.
        """
        chunk = inner.ahead.next_chunk()
        taken = inner.give(n if chunk is not None and self.fits(chunk) else 1)
        if taken is not None:
            self.check(taken)
        return taken

    def waiting(self, inner: Inner) -> int:
        """How many elements of the right structure can be had in one piece."""
        chunk = inner.ahead.next_chunk()
        return inner.ahead.waiting() if chunk is not None and self.fits(chunk) else 0

    @property
    def repeats(self) -> bool:
        """Whether inner datasets, set to a place that they were at, give the same again, and say cheaply where it is.

        One that opens later may change that.
        """
        return self.build.repeats_input

    def fits(self, chunk: Chunk) -> bool:
        """Whether elements have the structure of those before."""
        return self._structure is None or chunk.structure is self._structure or chunk.structure == self._structure

    def check(self, chunk: Chunk) -> None:
        """Raise SpecError if elements have not the structure of those before. In the order in which they come out."""
        if not self.fits(chunk):
            raise SpecError(
                f"{self.node.located()}: the datasets that the function returns must have one structure, got "
                f"{self._structure!r} and {chunk.structure!r}"
            )
        self._structure = chunk.structure

    @property
    def has_given(self) -> bool:
        """Whether the structure is known, by a first element."""
        return self._structure is not None

    def save(self, inner: Inner | None) -> Any:
        """The place of an inner dataset, and by value what was read from it ahead. Nobody may be reading from it."""
        if inner is None:
            return None
        trail, place = inner.trail, None
        if not inner.ended:
            place = {"source": inner.operator.state_dict(), "behind": max(0, trail.given - trail.read)}
        return self._saved(inner, inner.given, inner.ahead.save(), place)

    def save_by_place(self, inner: Inner, taken: int = 0) -> State:
        """The place behind what was given of an inner dataset, also while a thread is reading from it.

        Only what a saved state held by value still is.

        Args:
            inner: the dataset, all readings of which are ahead.
            taken: elements that count as given, beside ``inner.given``.
        """
        trail, given = inner.trail, inner.given + taken
        start = max(given, trail.given)
        nothing_behind = inner.ended and trail.read <= start
        return self._saved(
            inner, given, inner.ahead.save(start - given), None if nothing_behind else trail.place(start)
        )

    def _saved(self, inner: Inner, given: int, held: list[Any], place: State | None) -> State:
        if place is None and not held:
            return {"argument": None, "given": 0, "source": None, "behind": 0, "held": [], "ended": True}
        # A dataset that comes back from the state as its elements has another plan, where this place means nothing.
        found = place if place is not None and holds_only_elements(inner.argument) else {"source": None, "behind": 0}
        given += inner.before
        return {
            "argument": save_chunk(inner.argument),
            "given": given,
            **found,
            "held": held,
            "ended": place is None,
        }

    def load(self, state: State | None) -> Inner | None:
        """The inner dataset at a saved place: the function is called again for the element it was called for."""
        return None if state is None else self.reopen(state)

    def reopen(self, state: State) -> Inner:
        """The same, of a state that is there. The first reading passes over what had been given behind the place."""
        if state["argument"] is None:
            return _ended()
        argument = load_chunk(state["argument"], self.argument_spec)
        assert argument is not None
        inner = self._open(argument)
        inner.ahead.load(state["held"], lambda: inner.plan.element_spec)
        inner.ended = bool(state["ended"])
        given, held = int(state["given"]), len(inner.ahead)
        if state["source"] is not None:
            inner.trail.load({"source": state["source"], "behind": state["behind"]})
        elif not inner.ended:
            inner.trail.given = given + held
        inner.given = inner.trail.given - held
        inner.before = given - inner.given
        return inner


class Inputs:
    """The inner datasets of an interleave, opened one after the other: first those that a saved state names.

    One thread at a time opens and takes note. Any may save meanwhile; what it saves is the place behind the last one
    that was noted.

    Args:
        source: gives the elements that datasets are made from.
        datasets: makes them.
    """

    def __init__(self, source: Operator, datasets: InnerDatasets) -> None:
        self.source = source
        self.datasets = datasets
        self._source_ended = False
        self._saved: deque[State] = deque()  # those that were opened ahead where the saved state was taken
        self._trail = Trail(source)
        self._noted = 0  # of the elements that the trail counts
        self._opened = 0

    @property
    def ended(self) -> bool:
        """Whether there is none left."""
        return self._source_ended and not self._saved

    def open_next(self, *, leaves_marks: bool = False) -> Inner | None:
        """The next one; None where there is none left. Called again only after ``note``.

        Args:
            leaves_marks: whether the place is asked for while this runs.
        """
        if self._saved:
            saved = self._saved[0]
            if "error" in saved:
                raise load_error(saved)
            return self.datasets.reopen(saved)
        trail = self._trail
        if leaves_marks:
            trail.step()
        if trail.read < trail.given:
            trail.go_on()
        argument = trail.pull(1)
        if argument is None:
            self._source_ended = True
            return None
        return self.datasets.open(argument)

    def note(self) -> None:
        """What was opened has arrived, or failed to."""
        if self._saved:
            self._saved.popleft()
        self._noted, self._opened = max(self._trail.read, self._trail.given), self.datasets.opened
        self._trail.forget(self._noted)

    def save(self, arrived: list[State], *, by_place: bool) -> State:
        """Where the source stands, and those that come before what it gives next.

        Args:
            arrived: the states of those that wait for a place in the cycle.
            by_place: whether the source's trail tells where it is. Else nobody may be reading from it.
        """
        trail = self._trail
        if by_place:
            place = trail.place(self._noted)
        else:
            place = {"source": self.source.state_dict(), "behind": max(0, trail.given - trail.read)}
        return {
            **place,
            "opened": self._opened,
            "source_ended": self._source_ended,
            "next_inputs": [*arrived, *self._saved],
        }

    def load(self, state: State) -> None:
        """Go to a saved place. Nothing is opened before it is asked for."""
        self._trail.load(state)
        self._noted = self._trail.given
        self.datasets.opened = self._opened = int(state["opened"])
        self._source_ended = bool(state["source_ended"])
        self._saved.extend(state["next_inputs"])
