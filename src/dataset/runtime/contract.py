"""The operator contract: operators pull chunks from their inputs.

Demand determines the chunk size. ``pull(n)`` returns between 1 and ``n`` elements, and an operator never requests more
from its input than it needs to answer, so no work is done for elements that were not requested. Operators that read
ahead document how far.

An exception takes the place of one element. It is raised once, after all elements before it, and the next ``pull``
continues after it. Once raised, an exception refers to the frames that it passed, and through them to the iterator.
Therefore a function that raises a stored exception deletes its local variable for it. Otherwise the exception and the
frame would form a reference cycle, and a dropped iterator would stop its threads only at the next garbage collection.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol

from dataset.amounts import STEP_ELEMENTS
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.position import Position


class Upstream(Protocol):
    """What an operator reads: an operator, or a buffer in front of one."""

    def save(self) -> Position:
        """Return its position."""

    def load(self, position: Position) -> None:
        """Restore a saved position."""

    def close(self) -> None:
        """Release it."""


class Operator(ABC):
    """One node of a plan, open for one iteration.

    Attributes:
        at: the number of the next element: of the input, or, without one, of this operator.
        saved: the names of the other attributes, counts and flags, that belong to its position.
    """

    at: int = 0
    saved: ClassVar[tuple[str, ...]] = ()

    @property
    def op(self) -> str:
        """The name of the operation: that of the operator's ``node``."""
        name: str = vars(self)["node"].op
        return name

    @abstractmethod
    def pull(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements (``n`` is at least 1), or None at the end and from then on."""

    def skip(self, n: int) -> int:
        """Skip 1 to ``n`` elements and return how many were skipped; 0 at the end.

        Raises whatever ``pull`` would raise for them. Only elements that are known not to fail may be skipped without
        computing them.
        """
        chunk = self.pull(min(n, STEP_ELEMENTS))
        return 0 if chunk is None else chunk.length

    def upstream(self) -> Sequence[Upstream]:
        """Return its inputs, whose positions belong to its own, and which it closes."""
        return ()

    def save(self) -> Position:
        """Return the position of this operator and its inputs after the last pulled element."""
        inputs = []
        for source in self.upstream():  # a generator would add a frame for each operation of a long pipeline
            inputs.append(source.save())  # noqa: PERF401
        return Position(self.op, self.at, tuple(inputs), own={name: getattr(self, name) for name in self.saved})

    def load(self, position: Position) -> None:
        """Restore a saved position. Called at most once, before the first pull."""
        self.at = position.at
        for name in self.saved:
            setattr(self, name, position.like(name, getattr(self, name)))
        for index, source in enumerate(self.upstream()):
            source.load(position.input(index))

    def advance(self, position: Position, count: int) -> Position | None:  # noqa: ARG002  # most cannot compute it
        """Return the position ``count`` elements later, or None if only computing the elements would reveal it.

        May be called from any thread, even during a ``pull`` in another thread, so it reads nothing that a pull
        changes.

        Args:
            position: a position of this operator, or of another operator of the same node.
            count: how many elements, at least 1. If fewer are left, the result is None.
        """
        return None

    def close(self) -> None:
        """Release files, threads and inputs. May be called twice; there are no pulls afterwards."""
        for source in self.upstream():
            source.close()


_assuming_no_failures: ContextVar[bool] = ContextVar("_assuming_no_failures", default=False)


@contextlib.contextmanager
def assuming_no_failures() -> Iterator[None]:
    """Make ``advance``, in this thread, assume that no failing element shifts the elements after it.

    Under this assumption, a failing element still counts for batches and for take. The caller documents this, as skip()
    does.
    """
    token = _assuming_no_failures.set(True)
    try:
        yield
    finally:
        _assuming_no_failures.reset(token)


def farthest(operator: Operator, position: Position, count: int) -> tuple[int, Position]:
    """Return how many elements, up to ``count``, a position can be moved by arithmetic, and where it then is.

    A failing element still counts for batches and for take.
    """
    with assuming_no_failures():
        found = operator.advance(position, count)
        if found is not None:
            return count, found
        passed, stop = 0, count
        while stop - passed > 1:
            middle = (passed + stop) // 2 if passed else 1  # if not even one, then none
            later = operator.advance(position, middle)
            if later is None:
                stop = middle
            else:
                passed, found = middle, later
    return passed, position if found is None else found


def seek(operator: Operator, count: int, origin: Position | None = None) -> int:
    """Move an operator, from which nothing was pulled, ``count`` elements on, by arithmetic if possible.

    Args:
        operator: the operator.
        count: how many elements.
        origin: the position to count from; default: the beginning.

    Returns:
        How many elements were passed: fewer than ``count`` if the data ended before.
    """
    passed, reached = 0, origin
    if count:
        passed, reached = farthest(operator, operator.save() if origin is None else origin, count)
    if reached is not None and (passed or origin is not None):
        operator.load(reached)
    while passed < count and (skipped := operator.skip(count - passed)):
        passed += skipped
    return passed


def assumes_no_failures() -> bool:
    """Return whether ``advance`` may assume that no element fails."""
    return _assuming_no_failures.get()


class HoldingOperator(Operator):
    """An operator that may hold elements before they are requested, such as the records of a block."""

    @property
    @abstractmethod
    def held(self) -> int:
        """How many elements the next pull only hands out; ``save_before`` knows their positions."""

    @abstractmethod
    def save_before(self, count: int) -> Position:
        """Return the position before the last ``count`` pulled elements, which were ``held`` when they were pulled."""


class IndexedOperator(Operator):
    """An operator that also returns elements by position."""

    @abstractmethod
    def gather(self, positions: Array) -> Chunk:
        """Return the output elements at these positions, in this order, or the first few of them (at least one).

        May be called at any time; does not move the current position. An element that fails raises in its place.
        """


class StoppingOperator(Operator):
    """An operator that can end a pull with the first element that meets a condition."""

    can_stop: bool = True
    """Whether ``pull_until`` may be called."""

    lists_are_structure: ClassVar[bool] = False
    """Whether a list at the top level of an element becomes a tuple."""

    @abstractmethod
    def pull_until(self, n: int, is_last: Callable[[Any], bool]) -> Chunk | None:
        """Return the same as ``pull(n)``, but end with the first element for which ``is_last`` returns True.

        ``is_last`` is called for elements as user code returned them, before they become components.
        """


class UnaryOperator(Operator):
    """An operator with one input and, by default, no state of its own."""

    def __init__(self, source: Operator) -> None:
        self.source = source

    def upstream(self) -> Sequence[Upstream]:
        return (self.source,)

    def advance_input(self, position: Position, count: int, passed: int | None = None, **own: Any) -> Position | None:
        """Return the position ``count`` elements later, with other own entries, if no element is held.

        Args:
            position: a position of this operator.
            count: how many elements.
            passed: by how many elements its input advances; default: ``count``.
            **own: own entries of the position.
        """
        if position.held or position.given:
            return None
        source = self.source.advance(position.source, count if passed is None else passed)
        return None if source is None else position.after(count, source, **own)

    def advance_log(self, position: Position, count: int) -> Position | None:
        """Return what ``advance`` returns for an operator whose position is that of a ReplayLog, if none is held."""
        source = None if position.held else self.source.advance(position.source, position.skipped + count)
        return None if source is None else position.having(inputs=(source,), given=())
