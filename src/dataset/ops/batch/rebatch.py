"""Node and operator of rebatch(batch_size): change the batch size by moving slices of batches, not single rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.ops.batch.rows_per_element import known_rows, require_rows, require_static_rows
from dataset.plan.checks import require_bool, require_int
from dataset.plan.lazy import lazy_property
from dataset.plan.node import UnaryNode, spec_is_static
from dataset.plan.spec import flatten_spec, map_spec
from dataset.plan.structure import Structure
from dataset.plan.traits import Traits
from dataset.runtime.chunks.batching import ColumnMismatchError, empty_component, join_rows
from dataset.runtime.chunks.chunk import Chunk, Remainder
from dataset.runtime.chunks.lineage import UNKNOWN, Lineage, Rows, divided, joined
from dataset.runtime.chunks.slicing import number_of_rows, row_major, slice_rows
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.position import Position
from dataset.runtime.state.saved_chunks import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class Rebatch(UnaryNode, batches=True, counted=False):
    """Node that yields batches with the sizes ``batch_size``, in cycles."""

    op: ClassVar[str] = "rebatch"
    batch_size: Any
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        self._set("batch_size", self._checked_sizes(self.batch_size))
        self._set("drop_remainder", require_bool(self.op, "drop_remainder", self.drop_remainder))
        require_static_rows(self)

    def _checked_sizes(self, given: Any) -> tuple[int, ...]:
        sizes = given.tolist() if isinstance(given, np.ndarray) else given
        sizes = list(sizes) if isinstance(sizes, list | tuple) else [sizes]
        checked = tuple(require_int(self.op, "batch_size", size, minimum=0) for size in sizes)
        if not any(checked):
            raise ValueError(f"{self.op}(): batch_size must contain a size of at least 1, got {given!r}")
        return checked

    def _size(self) -> int | None:
        """Return the size of every batch if all are known to have the same size."""
        size = self.batch_size[0]
        if any(other != size for other in self.batch_size):
            return None
        rows = known_rows(self.source)
        return size if self.drop_remainder or (rows is not None and rows % size == 0) else None

    def _element_spec(self) -> Any:
        require_rows(self.op, self.source.element_spec)
        size = self._size()
        return map_spec(lambda spec: spec.unbatched().batched(size), self.source.element_spec)

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(rows=self._size())

    def label(self) -> str:
        sizes = self.batch_size[0] if len(self.batch_size) == 1 else list(self.batch_size)
        return f"{self.op}({sizes}{', drop_remainder' if self.drop_remainder else ''})"

    def lower(self, context: ExecutionContext) -> Operator:
        return RebatchOperator(context(self.source), self)


class RebatchOperator(UnaryOperator):
    """Operator that holds input batches with remaining rows.

    As in tf.data, a failed element drops the rows that are waiting for their batch.
    """

    saved = ("turn", "ended")

    def __init__(self, source: Operator, node: Rebatch) -> None:
        super().__init__(source)
        self.node = node
        self.known_rows = known_rows(node.source)
        self.turn = 0  # index of the next size
        self.ended = False
        self._unopened = Remainder()
        self._held: deque[_HeldRows] = deque()
        self._have = 0
        self._empty: Chunk | None = None  # a batch without rows

    def pull(self, n: int) -> Chunk | None:
        """Return as many batches as the held rows suffice for; at least one, pulling the input if needed."""
        batches: list[Chunk] = []
        while len(batches) < n and not self.ended:
            size = self.node.batch_size[self.turn]
            if batches and (not self._held or size > self._held[0].stop - self._held[0].start):
                break
            batch = self._next(size)
            if batch is not None:
                batches.append(batch)
        return Chunk.concatenate(batches) if batches else None

    def _next(self, size: int) -> Chunk | None:
        """Return the next batch; None if the input has ended."""
        if not size:
            batch = self._empty_batch()
            self.ended = batch is None
        else:
            while self._have < size and self._open_next(size - self._have):
                pass
            self.ended = self._have < size
            if not self._have or (self.ended and self.node.drop_remainder):
                return None
            size = min(size, self._have)
            parts = self._cut(size)
            self.turn = (self.turn + 1) % len(self.node.batch_size)
            return self._join(parts)
        self.turn = (self.turn + 1) % len(self.node.batch_size)
        return batch

    def _open_next(self, wanted: int) -> bool:
        """Hold the next element; return False if there is none. Pulls no more elements than ``wanted`` rows need."""
        try:
            if not self._unopened:
                chunk = self.source.pull(-(-wanted // self.known_rows) if self.known_rows else 1)
                if chunk is None:
                    return False
                self._unopened = Remainder(chunk)
            element = self._unopened.give(1)
            assert element is not None
            rows = self._rows(element, self.at)
        except Exception:
            self.at += 1
            self._held.clear()
            self._have = 0
            raise
        if self._empty is None:
            self._empty = rows.chunk(0, 0)
        if rows.stop:
            self._held.append(rows)
            self._have += rows.stop
        self.at += 1
        return True

    def _rows(self, element: Chunk, position: int) -> _HeldRows:
        components = [row_major(column[0]) for column in element.columns()]
        count = number_of_rows(self.node, element.structure, components)
        lineage = None if element.lineage is None else divided(element.lineage[0], count)
        return _HeldRows(element.structure, components, 0, count, position, lineage)

    def _cut(self, size: int) -> list[_HeldRows]:
        """Remove and return the next ``size`` held rows."""
        parts = []
        self._have -= size
        while size:
            front = self._held[0]
            if front.stop - front.start > size:
                stop = front.start + size
                part = _HeldRows(front.structure, front.components, front.start, stop, front.position, front.lineage)
                front.start = stop
            else:
                part = self._held.popleft()
            parts.append(part)
            size -= part.stop - part.start
        return parts

    def _join(self, parts: list[_HeldRows]) -> Chunk:
        first = parts[0]
        if len(parts) == 1:
            return first.chunk(first.start, first.stop)
        for part in parts:
            if part.structure != first.structure:
                raise SpecError(
                    f"{self.node}: all rows of a batch must have the same structure, got "
                    f"{first.structure!r} and {part.structure!r} in element {part.position}"
                )
        columns = []
        for index in range(len(first.components)):
            try:
                columns.append([join_rows([part.component(index) for part in parts])])
            except ColumnMismatchError as error:
                where, before = parts[error.index].position, parts[error.index - 1].position
                raise SpecError(
                    f"{self.node}: {first.structure.component_name(index)} has {error.what} {error.got} in "
                    f"element {where} but {error.before} in element {before}; all rows of a batch must have the same "
                    f"{error.what}"
                ) from None
        batch = Chunk(first.structure, 1, columns)
        if any(part.lineage is not None for part in parts):
            batch.lineage = [joined([part.records() for part in parts])]
        return batch

    def _empty_batch(self) -> Chunk | None:
        """Return a batch without rows; None if its shape is unknown because there were no elements."""
        if spec_is_static(self.node.source):
            structure, specs = flatten_spec(self.node.element_spec)
            return Chunk(structure, 1, [[empty_component(spec)] for spec in specs])
        if self._empty is None and not self._open_next(1):
            return None
        return self._empty

    def save(self) -> Position:
        held = [
            {"rows": save_chunk(rows.chunk(rows.start, rows.stop)), "position": rows.position} for rows in self._held
        ]
        unopened, empty = save_chunk(self._unopened.rest()), save_chunk(self._empty)
        return super().save().with_held(rows=held, unopened=unopened, empty=empty)

    def load(self, position: Position) -> None:
        super().load(position)
        self._unopened = Remainder(load_chunk(position.held.get("unopened"), self._spec))
        self._empty = load_chunk(position.held.get("empty"), self._spec)
        for saved in position.held.get("rows", ()):
            element = load_chunk(saved["rows"], self._spec)
            assert element is not None
            rows = self._rows(element, int(saved["position"]))
            self._held.append(rows)
            self._have += rows.stop

    def _spec(self) -> Any:
        return self.node.source.element_spec


@dataclass(slots=True, eq=False)
class _HeldRows:
    """Held rows ``start`` to ``stop`` of the input element at ``position``, with the lineage of all its rows."""

    structure: Structure
    components: list[Any]
    start: int
    stop: int
    position: int
    lineage: Lineage | None

    def records(self) -> Rows:
        """Return the lineage of these rows together."""
        return UNKNOWN if self.lineage is None else joined(self.lineage[self.start : self.stop])

    def component(self, index: int) -> Any:
        """Return these rows of one component."""
        return slice_rows(self.components[index], self.start, self.stop)

    def chunk(self, start: int, stop: int) -> Chunk:
        """Return rows of the element as a batch."""
        columns: list[Any] = [[slice_rows(component, start, stop)] for component in self.components]
        lineage = None if self.lineage is None else [joined(self.lineage[start:stop])]
        return Chunk(self.structure, 1, columns, lineage=lineage)
