"""Operator of a repeat of a short source that does not reopen it.

Each pass of ``repeat`` opens the upstream operators, which takes longer than computing ten numbers.
"""

from __future__ import annotations

import sys

import numpy as np

from dataset.amounts import AHEAD_ELEMENTS
from dataset.plan.node import Node
from dataset.runtime.chunks.chunk import Chunk, Column, take_column
from dataset.runtime.chunks.lineage import Lineage, later
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position

PASS_MAX = 4096
"""The maximum number of elements of a pass to hold: for longer passes, the cost of opening the input is negligible."""


def open_in_memory(context: ExecutionContext, source: Node, times: int) -> Operator:
    """Return the operator that repeats a source, which returns a whole pass in one pull if requested."""
    length = source.cardinality()
    return InMemoryRepeatOperator(context(source), length, sys.maxsize if times < 0 else length * times)


class InMemoryRepeatOperator(UnaryOperator):
    """Operator that holds the elements of one pass, starting with the first pull.

    Writable arrays are returned as copies, which may span the end of a pass. Read-only arrays are returned without a
    copy, up to the end of a pass: a copy would be writable.
    """

    op = "repeat"

    def __init__(self, source: Operator, length: int, count: int) -> None:
        super().__init__(source)
        self.length = length  # elements of a pass
        self.left = self.count = count  # remaining elements in all passes
        self._pass: Chunk | None = None
        self._copies = False
        self._places = np.zeros(0, np.int64)  # element indices for a chunk that spans several passes

    def pull(self, n: int) -> Chunk | None:
        elements = self._pass
        if elements is None:
            elements = self._read()
        if n > self.left:  # noqa: PLR1730  # min() would be a tenth of the cost of a pull
            n = self.left
        if not n:
            return None
        start, stop = self.at, self.at + n
        if stop <= self.length:
            chunk = _copy(elements, start, stop) if self._copies else elements.slice(start, stop)
        elif self._copies:
            chunk = elements.take(self._places[start:stop])
        else:
            chunk = elements.slice(start, self.length)
        if elements.lineage is not None:
            chunk = self._traced(chunk, elements.lineage)
        self._move(chunk.length)
        return chunk

    def _traced(self, chunk: Chunk, lineage: Lineage) -> Chunk:
        """Return the next elements with their lineage, given that of all elements."""
        numbers = np.arange(self.count - self.left, self.count - self.left + chunk.length)
        of_pass = take_column(lineage, numbers % self.length)
        return chunk.with_lineage(later(of_pass, numbers // self.length, nested=False))

    def _read(self) -> Chunk:
        elements = self._pass = self.source.pull(self.length)
        assert elements is not None  # the optimizer does not rewrite empty inputs
        self._copies = not any(map(_is_read_only, elements.columns()))
        if self._copies:
            self._places = np.arange(self.length + AHEAD_ELEMENTS) % self.length
        return elements

    def _move(self, count: int) -> None:
        self.left -= count
        self.at += count
        if self.at >= self.length:
            self.at %= self.length

    def skip(self, n: int) -> int:
        passed = min(n, self.left)
        self._move(passed)
        return passed

    def save(self) -> Position:
        return Position(self.op, self.at, own={"left": self.left})

    def advance(self, position: Position, count: int) -> Position | None:
        left = position.count("left") - count
        return Position(self.op, (position.at + count) % self.length, own={"left": left}) if left >= 0 else None

    def load(self, position: Position) -> None:
        self.at, self.left = position.at, position.count("left")


def _is_read_only(column: Column) -> bool:
    return isinstance(column, np.ndarray) and not column.flags.writeable


def _copy(elements: Chunk, start: int, stop: int) -> Chunk:
    return Chunk(elements.structure, stop - start, [column[start:stop].copy() for column in elements.columns()])
