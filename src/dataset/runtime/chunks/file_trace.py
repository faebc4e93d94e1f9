"""Marks in a file that is read, by which elements of it are found again.

A ``FileTrace`` says for the numbers of elements (provenance.py) where in the file to go. It leaves a mark now and then,
where the next element stands. The elements after a mark are found by reading on from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.chunks.provenance import ELEMENT_BITS, ELEMENTS_MAX, Numbers, References


class RereadFile(Protocol):
    """An open file, as far as it is needed to find elements again: see ``ElementFile`` in io/dataset_files.py."""

    def columns(self, n: int) -> Sequence[Column] | None:
        """The next 1 to ``n`` elements; None at the end."""

    def tell(self) -> tuple[int, int]:
        """Where the next element stands."""

    def seek(self, offset: int, number: int) -> None:
        """Continue at a place that ``tell`` gave."""

    def close(self) -> None:
        """Give the file back."""


@runtime_checkable
class ReadsFiles(Protocol):
    """A node that reads files, whose elements are found again by their places."""

    def open_file(self, path: str) -> RereadFile:
        """The elements of one file. Nothing is read yet."""

    @property
    def read_on_max(self) -> int:
        """Up to which distance between offsets that ``tell`` gives reading on costs less than ``seek``."""


@runtime_checkable
class OpensDatasets(Protocol):
    """A node that reads from the datasets that a user's function makes of its input's elements."""

    function: Any

    def datasets(self, build: Any) -> Any:
        """What opens them."""


@dataclass(frozen=True, eq=False)
class Opening:
    """A dataset inside of datasets: the node that has it made, the element that it was made from, and its plan."""

    node: Node
    argument: Chunk
    plan: Node


class Mark(NamedTuple):
    """A place in a file.

    Attributes:
        element: how many elements had been read before it, since reading began.
        offset: what ``tell`` gave there.
        number: and its second part.
    """

    element: int
    offset: int
    number: int


_MARKS_MAX = 1024
_STRIDE_FIRST = 32  # elements to the second mark
_STRIDE_BYTES = 1 << 19  # from mark to mark about; files are read in blocks of half as much
_STRIDE_MAX = 1 << 14

_numbers = itertools.count()


class FileTrace:
    """The marks that are left in one file while it is read. One thread at a time reads, and any may look meanwhile.

    Marks are left where they cost nothing, between two blocks, else in distances of some blocks. Of many, every second
    one of the older half is dropped: of what was read last, most is still held.

    Args:
        within: the datasets, from outer to inner, whose plan ``node`` is in.
        node: which reads the file.
        path: the file.
        marks: out of a saved state.
    """

    __slots__ = ("_due", "_stride", "count", "marks", "node", "number", "path", "within")

    def __init__(self, within: tuple[Opening, ...], node: Node, path: str, marks: Sequence[Mark] = ()) -> None:
        self.within = within
        self.node = node
        self.path = path
        self.marks = list(marks)
        self.count = 0  # elements that were read
        self.number = next(_numbers)  # stands for the file, in this process
        self._due = 0  # how many must have been read for the next mark
        self._stride = _STRIDE_FIRST

    def step(self, file: RereadFile) -> None:
        """To be called before each reading: leaves a mark if it is time for one."""
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
        """The references of the next ``length`` elements, where ``asked`` were asked for."""
        first = self.count
        self.count += length
        if length < asked:  # a block is used up, so the place behind it is at hand
            self._due = self.count
        if self.count > ELEMENTS_MAX:
            return None
        base = self.number << ELEMENT_BITS
        return References(np.arange(base + first, base + self.count), {self.number: self})

    def references(self, elements: Numbers) -> References:
        """Those of elements, by their numbers in this file."""
        return References(elements + (self.number << ELEMENT_BITS), {self.number: self})
