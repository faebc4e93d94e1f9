"""Datasets inside datasets: calling a user's function that returns one, and reading from it.

flat_map and interleave share this. An inner dataset is remembered by the element it was made from, so that a saved
state can make it again.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dataset.errors import SpecError
from dataset.plan.nested import is_dataset
from dataset.plan.node import Node, UnaryNode, walk
from dataset.plan.structure import Structure
from dataset.runtime.calls import arguments, raise_placed
from dataset.runtime.chunk import Chunk, Outcome, nbytes_of
from dataset.runtime.operator import Build, Operator, State
from dataset.runtime.rng import seed_sequence
from dataset.runtime.state import (
    SpecGetter,
    holds_only_elements,
    load_chunk,
    load_error,
    load_pending,
    save_chunk,
    save_error,
    save_pending,
)


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

    def save(self) -> list[Any]:
        """All of it as plain data."""
        items = [item for item, _ in self._items]
        if self._given and isinstance(items[0], Chunk):
            items[0] = items[0].slice(self._given, items[0].length)
        return save_pending(items)

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
    """One inner dataset, open, the element that it was made from, and what was read from it ahead."""

    def __init__(self, argument: Chunk, plan: Node, operator: Operator) -> None:
        self.argument = argument
        self.plan = plan
        self.operator = operator
        self.given = 0  # elements that were read, and exceptions in the places of elements
        self.ahead = ReadAhead()
        self.ended = False  # nothing is left to be read; what was read ahead may be
        self.closed = False

    def close(self) -> None:
        """Let go of its files, threads and inputs, once."""
        if not self.closed:
            self.closed = True
            self.operator.close()


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
        return Inner(argument, result.plan, self.build(result.plan))

    def pull(self, inner: Inner, n: int) -> Chunk | None:
        """Elements of an inner dataset.

        Raises:
            SpecError: if they have not the structure of those before.
        """
        chunk = self.read(inner, n)
        if chunk is not None:
            self.check(chunk)
        return chunk

    def read(self, inner: Inner, n: int) -> Chunk | None:
        """Elements of an inner dataset, unchecked. Several threads may read at once, but only one from one dataset."""
        try:
            chunk = inner.operator.pull(n)
        except Exception:
            inner.given += 1
            raise
        if chunk is not None:
            inner.given += chunk.length
        return chunk

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
        """The place of an inner dataset, and what was read from it ahead."""
        if inner is None:
            return None
        # A dataset that comes back from the state as its elements has another plan, where this place means nothing.
        has_place = not inner.ended and holds_only_elements(inner.argument)
        return {
            "argument": save_chunk(inner.argument),
            "given": inner.given,
            "inner": inner.operator.state_dict() if has_place else None,
            "held": inner.ahead.save(),
            "ended": inner.ended,
        }

    def load(self, state: State | None) -> Inner | None:
        """The inner dataset at a saved place: the function is called again for the element it was called for."""
        return None if state is None else self.reopen(state)

    def reopen(self, state: State) -> Inner:
        """The same, of a state that is there."""
        argument = load_chunk(state["argument"], self.argument_spec)
        assert argument is not None
        inner = self._open(argument)
        inner.ahead.load(state["held"], lambda: inner.plan.element_spec)
        inner.ended = bool(state["ended"])
        if state["inner"] is not None:
            inner.operator.load_state_dict(state["inner"])
        elif not inner.ended:
            self._go_to(inner, int(state["given"]))
        inner.given = int(state["given"])
        return inner

    def save_openings(self, openings: Iterable[Inner | BaseException]) -> list[Any]:
        """Datasets that were opened ahead, and exceptions in the places of those that could not be."""
        return [save_error(item) if isinstance(item, BaseException) else self.save(item) for item in openings]

    def load_openings(self, data: list[Any]) -> list[Inner | BaseException]:
        """The inverse of ``save_openings``."""
        return [load_error(item) if "error" in item else self.reopen(item) for item in data]

    def _go_to(self, inner: Inner, given: int) -> None:
        """Go on to the place behind what was given before the state was saved."""
        while inner.given < given:
            with contextlib.suppress(Exception):  # it was raised then
                if self.pull(inner, given - inner.given) is None:
                    return
