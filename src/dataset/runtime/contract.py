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
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

from dataset.runtime.chunks.chunk import Array, Chunk

State: TypeAlias = dict[str, Any]

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
