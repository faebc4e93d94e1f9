"""Node and operator of window(size, shift, stride): windows of consecutive elements as datasets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, cast

import numpy as np

from dataset.ops.batch.sliding import SlidingBuffer
from dataset.plan.cardinality import map_known
from dataset.plan.checks import require_bool, require_int
from dataset.plan.nested import dataset_of
from dataset.plan.node import Node, UnaryNode, spec_is_static
from dataset.plan.origin import Origin
from dataset.plan.packed import WindowColumn
from dataset.plan.spec import DatasetSpec, flatten_spec, map_spec
from dataset.plan.structure import LEAF
from dataset.runtime.chunks.chunk import Chunk, Column, Outcome
from dataset.runtime.chunks.lineage import Lineage, joined
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import concerns_iteration, copy_exception
from dataset.runtime.state.held_elements import Elements
from dataset.runtime.state.saved_chunks import load_pending, save_pending


@dataclass(frozen=True, eq=False)
class Window(UnaryNode):
    """Node that yields datasets of ``size`` elements, every ``stride``-th, that start ``shift`` elements apart.

    For elements with several components, a window has one dataset per component. Windows at the end are shorter, unless
    ``drop_remainder``.
    """

    op: ClassVar[str] = "window"
    size: int
    shift: int | None = None
    stride: int = 1
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        self._set("size", require_int(self.op, "size", self.size, minimum=1))
        shift = self.size if self.shift is None else require_int(self.op, "shift", self.shift, minimum=1)
        self._set("shift", shift)
        self._set("stride", require_int(self.op, "stride", self.stride, minimum=1))
        self._set("drop_remainder", require_bool(self.op, "drop_remainder", self.drop_remainder))

    @property
    def span(self) -> int:
        """The number of input elements that a full window spans."""
        return (self.size - 1) * self.stride + 1

    def _element_spec(self) -> Any:
        return map_spec(DatasetSpec, self.source.element_spec)

    def cardinality(self) -> int:
        assert self.shift is not None
        shift, span = self.shift, self.span
        if self.drop_remainder:
            return map_known(lambda n: max(0, (n - span) // shift + 1), self.source.cardinality())
        return map_known(lambda n: -(-n // shift), self.source.cardinality())

    def label(self) -> str:
        parts = [str(self.size)]
        parts += [f"shift={self.shift}"] if self.shift != self.size else []
        parts += [f"stride={self.stride}"] if self.stride != 1 else []
        parts += ["drop_remainder"] if self.drop_remainder else []
        return f"window({', '.join(parts)})"

    def lower(self, context: ExecutionContext) -> WindowOperator:
        return WindowOperator(context(self.source), self)


class WindowOperator(UnaryOperator):
    """Operator that holds the elements that the next windows share with the last one.

    A failed element is kept until the windows have passed it: each window that would contain it fails, as in tf.data.
    Elements between windows are skipped when the next window is pulled.
    """

    saved = ("_gap",)

    def __init__(self, source: Operator, node: Window) -> None:
        super().__init__(source)
        self.node = node
        assert node.shift is not None
        self.shift = node.shift
        self.span = node.span
        self._buffer = SlidingBuffer()
        self._failures: list[tuple[int, Exception]] = []  # with their positions among all held elements
        self._gap = 0  # elements to skip before the next window
        self._static = spec_is_static(node.source)
        self.packs = False
        """Whether to return windows as a WindowColumn, for an operator that need not see them as datasets."""
        self._specs: list[Callable[[], Any]] = []

    def pull(self, n: int) -> Chunk | None:
        if self._gap:
            self._pass_gap()
        caught: dict[int, Exception] = {}
        try:
            return self._pull(n, caught)
        finally:
            caught.clear()  # see runtime/contract.py on stored exceptions

    def _pull(self, n: int, caught: dict[int, Exception]) -> Chunk | None:
        ended = self._collect((n - 1) * self.shift + self.span, caught)
        held = self._held
        count = (held - self.span) // self.shift + 1 if held >= self.span else 0
        if ended and not self.node.drop_remainder:
            count = -(-held // self.shift)
        if not count:
            return None
        return self._windows(min(n, count), caught)

    @property
    def _held(self) -> int:
        return self._buffer.length + len(self._failures)

    def _pass_gap(self) -> None:
        while self._gap:
            try:
                chunk = self.source.pull(self._gap)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                self._gap -= 1  # an element in no window is ignored, as in tf.data
                continue
            self._gap = 0 if chunk is None else self._gap - chunk.length

    def _collect(self, wanted: int, caught: dict[int, Exception]) -> bool:
        """Collect the elements of a window, at most ``wanted``; return True if the input ended first.

        The exceptions themselves are put into ``caught`` by position; stored copies have no traceback.
        """
        while (held := self._held) < self.span:
            try:
                chunk = self.source.pull(wanted - held)
            except Exception as error:
                if concerns_iteration(error):
                    raise
                caught[held] = error  # raised by the windows that contain it
                self._failures.append((held, copy_exception(error)))
                continue
            if chunk is None:
                return True
            self._buffer.append(chunk)
        return False

    def _windows(self, count: int, caught: dict[int, Exception]) -> Chunk:
        """Return the next ``count`` windows, or those before the first failure."""
        starts, span, stride = range(0, count * self.shift, self.shift), self.span, self.node.stride
        if not self._failures:
            pieces = self._buffer.pieces(starts, span, stride)
        else:
            if not (starts := self._before_failure(starts)):
                self._raise(caught)
            pieces = [list(column) for column in zip(*map(self._columns_beside, starts), strict=True)]
        lineages = cast("list[Lineage]", pieces.pop()) if self._buffer.is_traced else None
        structure = self._buffer.structure
        columns = self._elements(len(starts), pieces, lineages)
        made = len(columns[0]) if columns else len(starts)
        self._advance(made)
        return Chunk(structure, made, columns, lineage=None if lineages is None else list(map(joined, lineages[:made])))

    def _elements(self, count: int, pieces: Sequence[list[Column]], lineages: list[Lineage] | None) -> list[Column]:  # noqa: ARG002  # used by overrides
        """Return the components of ``count`` windows, or of those before the first that fails.

        Args:
            count: the number of windows.
            pieces: their elements, for each component.
            lineages: the lineage of the elements of each window.
        """
        return [self._datasets(index, column, lineages) for index, column in enumerate(pieces)]

    def _before_failure(self, starts: range) -> range:
        """Return the starts of the windows before the first that contains a failure."""
        return starts[: next((number for number, start in enumerate(starts) if self._failed(start)), len(starts))]

    def _failed(self, start: int) -> tuple[int, Exception] | None:
        """Return the first failure in a window; None if there is none."""
        picked = range(start, start + self.span, self.node.stride)
        return next((failure for failure in self._failures if failure[0] in picked), None)

    def _raise(self, caught: dict[int, Exception]) -> None:
        """Skip the first window, and raise the exception that makes it fail."""
        failure = self._failed(0)
        assert failure is not None  # tested by the caller
        self._advance(1)
        error = caught[failure[0]] if failure[0] in caught else copy_exception(failure[1])
        try:
            raise error
        finally:
            del error  # see runtime/contract.py on stored exceptions

    def _columns_beside(self, start: int) -> list[Column]:
        """Return the components of a window that contains no failure; there are some elsewhere."""
        picked = np.arange(start, min(start + self.span, self._held), self.node.stride)
        return self._buffer.columns_at(picked - np.searchsorted([place for place, _ in self._failures], picked))

    def _advance(self, windows: int) -> None:
        passed = min(windows * self.shift, self._held)
        self._gap = windows * self.shift - passed
        if not self._failures:
            self._buffer.drop(passed)
            return
        later = [(place - passed, error) for place, error in self._failures if place >= passed]
        self._buffer.drop(passed - (len(self._failures) - len(later)))
        self._failures = later

    def _datasets(self, index: int, pieces: list[Column], lineages: list[Lineage] | None) -> Column:
        """Return a dataset for each piece of component ``index``."""
        while index >= len(self._specs):
            self._specs.append(partial(_component_spec, self.node.source, len(self._specs)))
        make = partial(_dataset, self._specs[index], self._static, self.node.origin)
        if self.packs and lineages is None:
            return WindowColumn(pieces, make)  # type: ignore[return-value]  # it takes the place of a list
        return list(map(make, pieces, repeat(None) if lineages is None else lineages))

    def save(self) -> Position:
        items: list[Outcome] = []
        start = 0
        for number, (place, error) in enumerate(self._failures):
            if place - number > start:
                items.append(self._buffer.chunk(start, place - number))
            items.append(error)
            start = place - number
        if self._buffer.length > start:
            items.append(self._buffer.chunk(start, self._buffer.length))
        return super().save().with_held(items=save_pending(items))

    def advance(self, position: Position, count: int) -> Position | None:
        start = position.count("_gap") + count * self.shift
        last = start - self.shift + (self.span if self.node.drop_remainder else 1)  # that the windows before need
        for reached in (start, last) if start > last else (start,):
            found = self.advance_input(position, 0, reached, _gap=start - reached)
            if found is not None and (start >= last or self.source.advance(position.source, last) is not None):
                return found
        return None

    def load(self, position: Position) -> None:
        super().load(position)
        for item in load_pending(position.held.get("items", []), lambda: self.node.source.element_spec):
            if isinstance(item, Chunk):
                self._buffer.append(item)
            else:
                assert isinstance(item, Exception)
                self._failures.append((self._held, item))


def _dataset(
    spec: Callable[[], Any], static: bool, origin: Origin, piece: Column, lineage: Lineage | None = None
) -> Any:
    return dataset_of(Elements(Chunk(LEAF, len(piece), [piece], lineage=lineage), spec, static, origin=origin))


def _component_spec(node: Node, index: int) -> Any:
    return flatten_spec(node.element_spec)[1][index]
