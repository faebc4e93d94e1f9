"""File trace: marks in a file by which elements are found again.

A ``FileTrace`` maps the numbers of elements (provenance.py) to positions in the file. Occasionally, it stores a mark
with the position of the next element. The elements after a mark are found by reading on from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dataset.amounts import BLOCK_BYTES
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.provenance import ELEMENT_BITS, ELEMENTS_MAX, Numbers, References


class RereadFile(Protocol):
    """The part of an open file's interface for finding elements again: see ``ElementFile`` in io/dataset_files.py."""

    def columns(self, n: int) -> Sequence[Column] | None:
        """Return the next 1 to ``n`` elements, or None at the end."""

    def tell(self) -> tuple[int, int]:
        """Return the position of the next element."""

    def seek(self, offset: int, number: int) -> None:
        """Continue at a position returned by ``tell``."""

    def close(self) -> None:
        """Release the file."""


@runtime_checkable
class ReadsFiles(Protocol):
    """A node that reads files and can find their elements again by position."""

    name: str | None
    op: ClassVar[str]
    counts_elements: ClassVar[bool]

    def open_file(self, path: str) -> RereadFile:
        """Open the elements of one file. Nothing is read yet."""

    def over(self, path: bytes) -> Any:
        """Return a copy of the node that reads only one file."""

    def numbers_of(self, file: Any, length: int) -> Any:
        """Return the numbers of the ``length`` elements that were read last, if the node ``counts_elements``."""

    @property
    def read_on_max(self) -> int:
        """The largest distance between ``tell`` offsets for which reading on is cheaper than ``seek``."""


@runtime_checkable
class OpensDatasets(Protocol):
    """A node that reads from the datasets that a user function returns for its input's elements."""

    function: Any

    def datasets(self, build: Any) -> Any:
        """Return the object that opens the datasets."""


@dataclass(frozen=True, eq=False)
class Opening:
    """A dataset within a dataset: the node whose function returned it, the function's argument, and the plan."""

    node: Node
    argument: Chunk
    plan: Node


class Mark(NamedTuple):
    """A position in a file.

    Attributes:
        element: how many elements had been read before it.
        offset: the first part of the result of ``tell``.
        number: the second part.
    """

    element: int
    offset: int
    number: int


_MARKS_MAX = 1024
_STRIDE_FIRST = 32  # elements to the second mark
_STRIDE_BYTES = 2 * BLOCK_BYTES  # approximate distance of marks
_STRIDE_MAX = 1 << 14

_numbers = itertools.count()


class FileTrace:
    """File trace: the marks of one file.

    One thread at a time reads the file; any thread may access the marks meanwhile.

    Marks are preferably stored between two blocks, where they cost nothing, and otherwise every few blocks. If there
    are too many, every second mark of the older half is dropped: most marks of the recent part are kept.

    Args:
        within: the enclosing datasets of ``node``'s plan, from outer to inner.
        node: the node that reads the file.
        path: the path of the file.
        marks: the marks from a saved state.
    """

    __slots__ = ("_due", "_stride", "count", "marks", "node", "number", "path", "provenance")

    def __init__(self, within: tuple[Opening, ...], node: Node, path: str, marks: Sequence[Mark] = ()) -> None:
        self.provenance = within
        self.node = node
        self.path = path
        self.marks = list(marks)
        self.count = 0  # elements that were read
        self.number = next(_numbers)  # identifies the file within this process
        self._due = 0  # the number of elements at which the next mark is due
        self._stride = _STRIDE_FIRST

    def step(self, file: RereadFile) -> None:
        """Add a mark if it is time for one. Must be called before each read."""
        if self.count < self._due:
            return
        offset, number = file.tell()
        if self.marks:
            last = self.marks[-1]
            distance = max(1, offset - last.offset)
            self._stride = max(1, min(_STRIDE_MAX, _STRIDE_BYTES * max(1, self.count - last.element) // distance))
        self.marks.append(Mark(self.count, offset, number))
        self._due = self.count + self._stride
        if len(self.marks) > _MARKS_MAX:
            del self.marks[1 : _MARKS_MAX // 2 : 2]

    def refer(self, length: int, asked: int) -> References | None:
        """Return the references of the next ``length`` elements, of ``asked`` requested ones."""
        first = self.count
        self.count += length
        if length < asked:  # a block is used up, so the position after it is cheap to mark
            self._due = self.count
        if self.count > ELEMENTS_MAX:
            return None
        base = self.number << ELEMENT_BITS
        return References(np.arange(base + first, base + self.count), {self.number: self})

    def references(self, elements: Numbers) -> References:
        """Return references to elements, given by their numbers in this file."""
        return References(elements + (self.number << ELEMENT_BITS), {self.number: self})
