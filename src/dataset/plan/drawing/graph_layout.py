"""Graph layout: the result is at the bottom, each box is above its readers, and no line crosses a box.

Boxes are arranged in rows, each one row above the highest of its readers. Everything above a box gets its own strip, as
wide as necessary, so strips never overlap, and the lines of a tree never cross. A box with several readers is in the
strip of the lowest of them. If that is more than a row away, a thread leads from the box down to it, through a place in
each row between; the other readers join that thread, or the box itself, one row above them. So all lines that are not
straight run between two rows, where there are no boxes. The time is linear in the number of boxes, lines and places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

N = TypeVar("N")

_BOX_GAP = 18.0
_ROW_GAP = 26.0
_ROW_GAP_MAX = 90.0  # rows are further apart where lines run far to the side
_STEEPNESS = 16.0  # horizontal distance of a line that widens the gap by 1
_THREAD_WIDTH = 10.0

Point = tuple[float, float]
Size = tuple[float, float]
_Place = tuple[N, int]  # a node and a row: that of its box, or a row that its thread passes through


@dataclass(frozen=True)
class Box:
    """Rectangle, given by its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class DiagramLine:
    """Line between two rows: a curve from ``start`` to ``bend``, then straight down to ``end``.

    Attributes:
        start: the middle of the lower edge of a box, or a place of a thread.
        bend: the point at the upper edge of the lower row.
        end: a point at the upper edge of a box, or at the lower end of a place of a thread.
        is_arrow: whether the line ends at a box.
    """

    start: Point
    bend: Point
    end: Point
    is_arrow: bool


@dataclass(frozen=True)
class DiagramLayout(Generic[N]):
    """Layout of a picture from (0, 0) to (width, height), without its texts."""

    boxes: Mapping[N, Box]
    lines: Sequence[DiagramLine]
    width: float
    height: float


def lay_out(inputs: dict[N, Sequence[N]], sizes: Mapping[N, Size]) -> DiagramLayout[N]:
    """Lay out a graph with one result.

    Args:
        inputs: the inputs of each node, in topological order; the result is the last node.
        sizes: the width and height of each node's box.
    """
    rows = _LayoutRows(inputs, sizes)
    return DiagramLayout(rows.boxes, [*rows.arrows(), *rows.threads()], rows.width, rows.bottoms[0])


class _LayoutRows(Generic[N]):
    """Tables computed during layout; each step uses the previous ones."""

    def __init__(self, inputs: dict[N, Sequence[N]], sizes: Mapping[N, Size]) -> None:
        self.inputs = inputs
        self.sizes = sizes
        self.result: N = next(reversed(inputs))
        self.row_of = self._row_of()
        self.above = self._above()
        self.strips = self._strips()
        self.width = self.strips[self.result, 0]
        self.centres = self._centres()
        self.tops, self.bottoms = self._tops_and_bottoms()
        self.boxes = {node: self._box(node) for node in inputs}

    def _row_of(self) -> dict[N, int]:
        """Return the row of each node, counted from the bottom; row 0 is the result's."""
        found = dict.fromkeys(self.inputs, 0)
        for node, sources in reversed(self.inputs.items()):
            for source in sources:
                found[source] = max(found[source], found[node] + 1)
        return found

    def _above(self) -> dict[_Place[N], list[_Place[N]]]:
        """Return the places directly above each place, from left to right; lower places first."""
        lowest: dict[N, N] = {}
        for node in sorted(self.inputs, key=self.row_of.__getitem__):
            for source in self.inputs[node]:
                lowest.setdefault(source, node)
        found: dict[_Place[N], list[_Place[N]]] = {}
        waiting: list[_Place[N]] = [(self.result, 0)]
        while waiting:
            node, row = place = waiting.pop()
            sources = dict.fromkeys(self.inputs[node]) if row == self.row_of[node] else [node]
            found[place] = [(source, row + 1) for source in sources if source is node or lowest[source] is node]
            waiting += found[place]
        return found

    def _place_width(self, place: _Place[N]) -> float:
        node, row = place
        return self.sizes[node][0] if row == self.row_of[node] else _THREAD_WIDTH

    def _strips(self) -> dict[_Place[N], float]:
        """Return the width of each place, including everything above it."""
        found: dict[_Place[N], float] = {}
        for place in reversed(self.above):
            found[place] = max(self._place_width(place), _side_by_side(found[child] for child in self.above[place]))
        return found

    def _centres(self) -> dict[_Place[N], float]:
        """Return the centre of each place: below the centre of what is above it, as far as its strip allows."""
        lefts: dict[_Place[N], float] = {(self.result, 0): 0.0}
        for place, children in self.above.items():
            left = lefts[place] + (self.strips[place] - _side_by_side(self.strips[child] for child in children)) / 2
            for child in children:
                lefts[child] = left
                left += self.strips[child] + _BOX_GAP
        found: dict[_Place[N], float] = {}
        for place in reversed(self.above):
            left, right, half = lefts[place], lefts[place] + self.strips[place], self._place_width(place) / 2
            above = [found[child] for child in self.above[place]] or [(left + right) / 2]
            found[place] = min(max((above[0] + above[-1]) / 2, left + half), right - half)
        return found

    def _tops_and_bottoms(self) -> tuple[list[float], list[float]]:
        """Return the upper and lower edges of all rows."""
        heights = [0.0] * (max(self.row_of.values()) + 1)
        aside = [0.0] * len(heights)  # the largest horizontal distance of lines into the row
        for node, row in self.row_of.items():
            heights[row] = max(heights[row], self.sizes[node][1])
            for source in self.inputs[node]:
                aside[row] = max(aside[row], abs(self.centres[source, row + 1] - self.centres[node, row]))
        tops, bottoms = [0.0], [heights[-1]]
        for height, distance in zip(heights[-2::-1], aside[-2::-1], strict=True):
            tops.append(bottoms[-1] + min(_ROW_GAP_MAX, _ROW_GAP + distance / _STEEPNESS))
            bottoms.append(tops[-1] + height)
        return tops[::-1], bottoms[::-1]

    def _box(self, node: N) -> Box:
        width, height = self.sizes[node]
        row = self.row_of[node]
        return Box(self.centres[node, row] - width / 2, self.bottoms[row] - height, width, height)

    def arrows(self) -> Iterable[DiagramLine]:
        """Yield a line into each box from each of its inputs, at equal distances along the upper edge."""
        for node, sources in self.inputs.items():
            box, row = self.boxes[node], self.row_of[node]
            for number, source in enumerate(sources, 1):
                x = box.x + box.width * number / (len(sources) + 1)
                start = (self.centres[source, row + 1], self.bottoms[row + 1])
                yield DiagramLine(start, (x, self.tops[row]), (x, box.y), is_arrow=True)

    def threads(self) -> Iterable[DiagramLine]:
        """Yield a line into each place of a thread, from the one above it."""
        for (node, row), x in self.centres.items():
            if row < self.row_of[node]:
                start = (self.centres[node, row + 1], self.bottoms[row + 1])
                yield DiagramLine(start, (x, self.tops[row]), (x, self.bottoms[row]), is_arrow=False)


def _side_by_side(widths: Iterable[float]) -> float:
    found = list(widths)
    return sum(found) + _BOX_GAP * max(0, len(found) - 1)
