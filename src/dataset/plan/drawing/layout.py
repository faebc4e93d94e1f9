"""Where the boxes and lines of a graph go: the result on top, each box below its readers, no line through a box.

Boxes stand in rows, each one row below the lowest of its readers. What hangs below a box gets a strip of its own, as
wide as it needs, so strips never overlap, and the lines of a tree never cross. A box with several readers hangs below
the highest of them. Where that is more than a row away, a thread leads down to it, through a place in each row between;
the other readers join that thread, or the box itself, one row below them. So lines that are not straight run between
two rows, where there are no boxes. The work is linear in boxes, lines and places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

N = TypeVar("N")

_BOX_GAP = 18.0
_ROW_GAP = 26.0
_ROW_GAP_MAX = 90.0  # rows are further apart where lines go far to the side:
_STEEPNESS = 16.0  # by one for so many to the side
_THREAD_WIDTH = 10.0

Point = tuple[float, float]
Size = tuple[float, float]
_Place = tuple[N, int]  # a node and a row: that of its box, or one of those that its thread goes through


@dataclass(frozen=True)
class Box:
    """A rectangle, by its upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class DiagramLine:
    """The way of the data between two rows, and from ``bend`` straight up.

    Attributes:
        start: the middle of the upper edge of a box, or a place of a thread.
        bend: where the upper of the two rows begins.
        end: at the lower edge of a box, or at the upper end of a place of a thread.
        is_arrow: whether it ends at a box.
    """

    start: Point
    bend: Point
    end: Point
    is_arrow: bool


@dataclass(frozen=True)
class DiagramLayout(Generic[N]):
    """A picture without its texts, from (0, 0) to (width, height)."""

    boxes: Mapping[N, Box]
    lines: Sequence[DiagramLine]
    width: float
    height: float


def lay_out(inputs: dict[N, Sequence[N]], sizes: Mapping[N, Size]) -> DiagramLayout[N]:
    """Place a graph that has one result.

    Args:
        inputs: what each node reads from; those stand before their readers, the result last.
        sizes: width and height of the box of each node.
    """
    rows = _LayoutRows(inputs, sizes)
    return DiagramLayout(rows.boxes, [*rows.arrows(), *rows.threads()], rows.width, rows.bottoms[-1])


class _LayoutRows(Generic[N]):
    """The steps of the work, each a table that the next ones read."""

    def __init__(self, inputs: dict[N, Sequence[N]], sizes: Mapping[N, Size]) -> None:
        self.inputs = inputs
        self.sizes = sizes
        self.result: N = next(reversed(inputs))
        self.row_of = self._row_of()
        self.below = self._below()
        self.strips = self._strips()
        self.width = self.strips[self.result, 0]
        self.centres = self._centres()
        self.tops, self.bottoms = self._tops_and_bottoms()
        self.boxes = {node: self._box(node) for node in inputs}

    def _row_of(self) -> dict[N, int]:
        """Row 0 is the result's."""
        found = dict.fromkeys(self.inputs, 0)
        for node, sources in reversed(self.inputs.items()):
            for source in sources:
                found[source] = max(found[source], found[node] + 1)
        return found

    def _below(self) -> dict[_Place[N], list[_Place[N]]]:
        """Return what hangs below each place, from left to right; upper places first."""
        highest: dict[N, N] = {}
        for node in sorted(self.inputs, key=self.row_of.__getitem__):
            for source in self.inputs[node]:
                highest.setdefault(source, node)
        found: dict[_Place[N], list[_Place[N]]] = {}
        waiting: list[_Place[N]] = [(self.result, 0)]
        while waiting:
            node, row = place = waiting.pop()
            sources = dict.fromkeys(self.inputs[node]) if row == self.row_of[node] else [node]
            found[place] = [(source, row + 1) for source in sources if source is node or highest[source] is node]
            waiting += found[place]
        return found

    def _place_width(self, place: _Place[N]) -> float:
        node, row = place
        return self.sizes[node][0] if row == self.row_of[node] else _THREAD_WIDTH

    def _strips(self) -> dict[_Place[N], float]:
        """How wide each place is with all that hangs below it."""
        found: dict[_Place[N], float] = {}
        for place in reversed(self.below):
            found[place] = max(self._place_width(place), _side_by_side(found[child] for child in self.below[place]))
        return found

    def _centres(self) -> dict[_Place[N], float]:
        """Return the middle of each place: above the middle of what hangs below it, as far as its strip allows."""
        lefts: dict[_Place[N], float] = {(self.result, 0): 0.0}
        for place, children in self.below.items():
            left = lefts[place] + (self.strips[place] - _side_by_side(self.strips[child] for child in children)) / 2
            for child in children:
                lefts[child] = left
                left += self.strips[child] + _BOX_GAP
        found: dict[_Place[N], float] = {}
        for place in reversed(self.below):
            left, right, half = lefts[place], lefts[place] + self.strips[place], self._place_width(place) / 2
            below = [found[child] for child in self.below[place]] or [(left + right) / 2]
            found[place] = min(max((below[0] + below[-1]) / 2, left + half), right - half)
        return found

    def _tops_and_bottoms(self) -> tuple[list[float], list[float]]:
        """Return where each row begins and ends."""
        heights = [0.0] * (max(self.row_of.values()) + 1)
        aside = [0.0] * len(heights)  # how far lines go to the side on their way into the row
        for node, row in self.row_of.items():
            heights[row] = max(heights[row], self.sizes[node][1])
            for source in self.inputs[node]:
                aside[row] = max(aside[row], abs(self.centres[source, row + 1] - self.centres[node, row]))
        tops, bottoms = [0.0], [heights[0]]
        for height, distance in zip(heights[1:], aside, strict=False):
            tops.append(bottoms[-1] + min(_ROW_GAP_MAX, _ROW_GAP + distance / _STEEPNESS))
            bottoms.append(tops[-1] + height)
        return tops, bottoms

    def _box(self, node: N) -> Box:
        width, height = self.sizes[node]
        row = self.row_of[node]
        return Box(self.centres[node, row] - width / 2, self.tops[row], width, height)

    def arrows(self) -> Iterable[DiagramLine]:
        """Yield a line into each box from each of its inputs, at equal distances along the lower edge."""
        for node, sources in self.inputs.items():
            box, row = self.boxes[node], self.row_of[node]
            for number, source in enumerate(sources, 1):
                x = box.x + box.width * number / (len(sources) + 1)
                start = (self.centres[source, row + 1], self.tops[row + 1])
                yield DiagramLine(start, (x, self.bottoms[row]), (x, box.y + box.height), is_arrow=True)

    def threads(self) -> Iterable[DiagramLine]:
        """Yield a line into each place of a thread, from the one below it."""
        for (node, row), x in self.centres.items():
            if row < self.row_of[node]:
                start = (self.centres[node, row + 1], self.tops[row + 1])
                yield DiagramLine(start, (x, self.bottoms[row]), (x, self.tops[row]), is_arrow=False)


def _side_by_side(widths: Iterable[float]) -> float:
    found = list(widths)
    return sum(found) + _BOX_GAP * max(0, len(found) - 1)
