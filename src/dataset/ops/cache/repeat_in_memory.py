"""cycle: a short dataset again and again, without opening it anew. Only the optimizer makes it, of repeat.py.

Each pass of ``repeat`` opens the operators below, which takes longer than ten numbers take to make.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dataset.ops.repeat import Repeat
from dataset.runtime.chunks.chunk import Chunk, Column
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator

PASS_MAX = 4096
"""Elements of a pass, at most, that are held: beside making so many, opening the input costs little."""

_AHEAD = 4096  # elements that are handed on at once, at least, where passes are joined


@dataclass(frozen=True, eq=False)
class RepeatInMemory(Repeat):
    """``repeat`` of a source that gives at most PASS_MAX elements, all of them at once if so asked."""

    op: ClassVar[str] = "cycle"

    def described(self) -> str:
        return "cycle()" if self.times < 0 else f"cycle({self.count})"

    def lower(self, build: ExecutionContext) -> Operator:
        length = self.source.cardinality()
        return CycleOperator(build(self.source), length, sys.maxsize if self.times < 0 else length * self.times)


class CycleOperator(UnaryOperator):
    """Holds the elements of one pass, once the first is asked for.

    What may be written to is handed out as a copy, which may as well reach into the next pass. Read-only arrays are
    handed out themselves, up to the end of a pass: a copy could be written to.
    """

    def __init__(self, source: Operator, length: int, count: int) -> None:
        super().__init__(source)
        self.length = length  # of a pass
        self.place = 0  # in the pass
        self.left = count  # elements still to be given, in all passes
        self._pass: Chunk | None = None
        self._copies = False
        self._places = np.zeros(0, np.int64)  # from the first in the pass on, for a chunk that reaches into others

    def pull(self, n: int) -> Chunk | None:
        elements = self._pass
        if elements is None:
            elements = self._read()
        if n > self.left:  # noqa: PLR1730  # min() is a tenth of what a pull costs
            n = self.left
        if not n:
            return None
        start, stop = self.place, self.place + n
        if stop <= self.length:
            chunk = _copy(elements, start, stop) if self._copies else elements.slice(start, stop)
        elif self._copies:
            chunk = elements.take(self._places[start:stop])
        else:
            chunk = elements.slice(start, self.length)
        self.seek(chunk.length)
        return chunk

    def _read(self) -> Chunk:
        elements = self._pass = self.source.pull(self.length)
        assert elements is not None  # the optimizer leaves empty inputs alone
        self._copies = not any(map(_is_read_only, elements.columns()))
        if self._copies:
            self._places = np.arange(self.length + _AHEAD) % self.length
        return elements

    def seek(self, count: int) -> None:
        self.left -= count
        self.place += count
        if self.place >= self.length:
            self.place %= self.length

    def pass_over(self, n: int) -> int:
        passed = min(n, self.left)
        self.seek(passed)
        return passed

    def state_dict(self) -> State:
        return {"op": RepeatInMemory.op, "place": self.place, "left": self.left}

    def state_after(self, state: State, count: int) -> State | None:
        left = int(state["left"]) - count
        return {**state, "place": (int(state["place"]) + count) % self.length, "left": left} if left >= 0 else None

    def load_state_dict(self, state: State) -> None:
        self.place, self.left = int(state["place"]), int(state["left"])


def _is_read_only(column: Column) -> bool:
    return isinstance(column, np.ndarray) and not column.flags.writeable


def _copy(elements: Chunk, start: int, stop: int) -> Chunk:
    return Chunk(elements.structure, stop - start, [column[start:stop].copy() for column in elements.columns()])
