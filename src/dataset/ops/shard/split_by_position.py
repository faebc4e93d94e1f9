"""Node and operator of split by position: the elements of one part, chosen by their positions in the input.

Which part an element belongs to is a function of its position, of the sizes of the parts and of the seed. It does not
depend on the elements or on what was read before. So the parts of one split never overlap, each iteration returns the
same elements, and a state is a position. An element that fails has a position, too: a failure that occurs in one
iteration but not in the next moves no element from one part to another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.amounts import FAR
from dataset.ops.sources.row_source import open_on_numbers
from dataset.plan.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, is_known
from dataset.plan.lazy import lazy_property
from dataset.plan.node import UnaryNode
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator, assumes_no_failures
from dataset.runtime.position import Position
from dataset.runtime.random.permutation import Permutation
from dataset.runtime.random.streams import Stream

_STREAM = 3  # separates the random numbers of splits from those of ops with the same seed
_BLOCK = 8192  # positions that are looked at together


class Part(ABC):
    """The positions of one part of a split."""

    stop: int | None = None
    """The position after the last one; None if it is unknown."""

    @abstractmethod
    def cardinality(self, available: int) -> int:
        """Return the number of elements, given the cardinality of the input."""

    @abstractmethod
    def between(self, start: int, stop: int) -> Array:
        """Return the positions of this part from ``start`` to ``stop``, ascending."""

    @abstractmethod
    def at(self, numbers: Array) -> Array | None:
        """Return the positions of the elements with these numbers within the part; None if they cannot be computed."""

    def after(self, position: int, count: int) -> int | None:
        """Return the position after the next ``count`` elements from ``position`` on; None if there are fewer."""
        while self.stop is None or position < self.stop:
            own = self.between(position, position + _BLOCK)
            if len(own) >= count:
                return int(own[count - 1]) + 1
            position, count = position + _BLOCK, count - len(own)
        return None


@dataclass(frozen=True)
class ConsecutivePart(Part):
    """Part of consecutive positions; with ``stop=None``, all from ``start`` on."""

    start: int
    stop: int | None

    def cardinality(self, available: int) -> int:
        if available == UNKNOWN_CARDINALITY or (available == INFINITE_CARDINALITY and self.stop is None):
            return available
        stop = min(self.stop, available) if is_known(available) and self.stop is not None else self.stop
        return max(0, (available if stop is None else stop) - self.start)

    def between(self, start: int, stop: int) -> Array:
        return np.arange(max(start, self.start), stop if self.stop is None else min(stop, self.stop))

    def at(self, numbers: Array) -> Array:
        return numbers + self.start

    def after(self, position: int, count: int) -> int | None:
        found = max(position, self.start) + count
        return found if self.stop is None or found <= self.stop else None


@dataclass(frozen=True)
class PermutedPart(Part):
    """Part ``index`` of a random permutation that is cut into runs of these sizes. Every choice is equally likely."""

    seed: int
    sizes: tuple[int, ...]
    index: int

    @lazy_property
    def positions(self) -> Array:
        """All positions, ascending."""
        total, first = sum(self.sizes), sum(self.sizes[: self.index])
        chosen = Permutation(Stream(self.seed, _STREAM), total).from_on(first)[: self.sizes[self.index]]
        return np.sort(chosen.astype(np.uint32 if total <= 1 << 32 else np.int64))

    @property
    def stop(self) -> int:  # type: ignore[override]  # it is known
        return int(self.positions[-1]) + 1

    def cardinality(self, available: int) -> int:  # noqa: ARG002  # it is the sum of the sizes
        return self.sizes[self.index]

    def between(self, start: int, stop: int) -> Array:
        first, end = np.searchsorted(self.positions, (start, stop))
        return self.positions[first:end].astype(np.int64)

    def at(self, numbers: Array) -> Array:
        found: Array = self.positions[numbers].astype(np.int64)
        return found

    def after(self, position: int, count: int) -> int | None:
        last = int(np.searchsorted(self.positions, position)) + count - 1
        return int(self.positions[last]) + 1 if last < len(self.positions) else None

    def __reduce__(self) -> Any:
        return type(self), (self.seed, self.sizes, self.index)  # the positions are computed again


@dataclass(frozen=True)
class DrawnPart(Part):
    """Part of an unknown number of elements: a random number for each position decides. Its size is approximate.

    Attributes:
        seed: the seed.
        start: the number from which on a position belongs to this part.
        end: the number from which on it belongs to later parts.
    """

    seed: int
    start: float
    end: float

    def cardinality(self, available: int) -> int:
        return available  # unknown or infinite

    def between(self, start: int, stop: int) -> Array:
        stream = Stream(self.seed, _STREAM)
        stream.seek(start)
        drawn = stream.random(stop - start)
        return start + np.flatnonzero((self.start <= drawn) & (drawn < self.end))

    def at(self, numbers: Array) -> None:  # noqa: ARG002  # they depend on all earlier draws
        return None


@dataclass(frozen=True, eq=False)
class SplitByPosition(UnaryNode, seekable=True, exact=True, only_reorders=True, views=True):
    """Node that passes on the elements of one part, in their order."""

    op: ClassVar[str] = "split"
    part: Part
    number: int
    count: int

    def cardinality(self) -> int:
        return self.part.cardinality(self.source.cardinality())

    def input_positions(self, positions: Array) -> Array | None:
        return self.part.at(positions)

    def parameters(self) -> dict[str, Any]:
        return {"part": repr(self.part)}

    def label(self) -> str:
        return f"split({self.number + 1} of {self.count})"

    def lower(self, context: ExecutionContext) -> Operator:
        return open_on_numbers(context, self, SplitOperator)


class SplitOperator(UnaryOperator):
    """Operator that counts the input elements it has read or skipped, including those that failed.

    A failure of any input element is raised: it may represent several elements, such as the rest of a file.
    """

    def __init__(self, source: Operator, node: SplitByPosition, *, is_infallible: bool) -> None:
        super().__init__(source)
        self.node = node
        self.is_infallible = is_infallible
        self._block = range(0)  # positions; the part has these of them:
        self._own: Array = np.zeros(0, np.int64)

    def pull(self, n: int) -> Chunk | None:
        stop = self.node.part.stop
        while stop is None or self.at < stop:
            own = self._upcoming()[:n]
            chunk, passed = self._read(own)
            if not passed:
                return None
            mine = own[own < self.at] - (self.at - passed)
            if chunk is not None and len(mine):
                is_run = int(mine[-1] - mine[0]) == len(mine) - 1
                return chunk.slice(int(mine[0]), int(mine[-1]) + 1) if is_run else chunk.take(mine)
        return None

    def _upcoming(self) -> Array:
        """Return the positions of the part from the current one to the end of a block."""
        if self.at not in self._block:
            self._block = range(self.at, self.at + _BLOCK)
            self._own = self.node.part.between(self._block.start, self._block.stop)
        return self._own[np.searchsorted(self._own, self.at) :]

    def _read(self, own: Array) -> tuple[Chunk | None, int]:
        """Read up to the last of these positions, or skip elements of other parts; return how many, 0 at the end."""
        others = (int(own[0]) if len(own) else self._block.stop) - self.at
        chunk = None
        try:
            if others < FAR and len(own):
                chunk = self.source.pull(int(own[-1]) + 1 - self.at)
                passed = 0 if chunk is None else chunk.length
            else:
                passed = self.source.skip(others)
        except Exception:
            self.at += 1
            raise
        self.at += passed
        return chunk, passed

    def advance(self, position: Position, count: int) -> Position | None:
        later = self.node.part.after(position.at, count)
        if later is None or not (self.is_infallible or assumes_no_failures()):
            return None
        return self.advance_input(position, later - position.at)
