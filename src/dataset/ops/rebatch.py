"""rebatch(batch_size): batches of other sizes. It moves slices of the batches that come in, never single rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dataset.errors import SpecError
from dataset.plan.cardinality import UNKNOWN_CARDINALITY
from dataset.plan.checks import require_bool, require_int
from dataset.plan.node import UnaryNode, spec_is_static
from dataset.plan.rows import known_rows, require_rows, require_static_rows
from dataset.plan.spec import flatten_spec, map_spec
from dataset.runtime.batching import ColumnMismatchError, empty_component, join_rows
from dataset.runtime.chunk import Chunk, Remainder
from dataset.runtime.operator import Build, Operator, State, UnaryOperator
from dataset.runtime.slicing import number_of_rows, row_major, slice_rows
from dataset.runtime.state import load_chunk, save_chunk


@dataclass(frozen=True, eq=False)
class Rebatch(UnaryNode):
    """Batches of the sizes ``batch_size``, one after the other and from the start again."""

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
            raise ValueError(f"{self.op}(): batch_size must hold a size of at least 1, got {given!r}")
        return checked

    def _size(self) -> int | None:
        """The size of every batch, where all are known to be alike."""
        size = self.batch_size[0]
        if any(other != size for other in self.batch_size):
            return None
        rows = known_rows(self.source)
        return size if self.drop_remainder or (rows is not None and rows % size == 0) else None

    def _element_spec(self) -> Any:
        require_rows(self.op, self.source.element_spec)
        size = self._size()
        return map_spec(lambda spec: spec.unbatched().batched(size), self.source.element_spec)

    @property
    def rows_per_element(self) -> int | None:
        return self._size()

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY

    def described(self) -> str:
        sizes = self.batch_size[0] if len(self.batch_size) == 1 else list(self.batch_size)
        return f"{self.op}({sizes}{', drop_remainder' if self.drop_remainder else ''})"

    def lower(self, build: Build) -> Operator:
        return RebatchOperator(build(self.source), self)


class RebatchOperator(UnaryOperator):
    """Holds the batches whose rows have not all been given: chunks of one element, cut off at the front.

    An element that fails takes with it the rows that wait for its batch, as in tf.data.
    """

    def __init__(self, source: Operator, node: Rebatch) -> None:
        super().__init__(source)
        self.node = node
        self.known_rows = known_rows(node.source)
        self.position = 0  # elements opened
        self.turn = 0  # the next size
        self.ended = False
        self._unopened = Remainder()
        self._held: deque[_Rows] = deque()
        self._have = 0
        self._empty: Chunk | None = None  # a batch of no rows

    def pull(self, n: int) -> Chunk | None:
        """As many batches as the rows at hand are good for; at least one, for which the input is asked."""
        batches: list[Chunk] = []
        while len(batches) < n and not self.ended:
            size = self.node.batch_size[self.turn]
            if batches and (not self._held or size > self._held[0].count):
                break
            batch = self._next(size)
            if batch is not None:
                batches.append(batch)
        return Chunk.concatenate(batches) if batches else None

    def _next(self, size: int) -> Chunk | None:
        """The next batch; None if there is none, because the input has ended."""
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
        """Hold the next element; False if there is none. Asks for no more of them than ``wanted`` rows need."""
        try:
            if not self._unopened:
                chunk = self.source.pull(-(-wanted // self.known_rows) if self.known_rows else 1)
                if chunk is None:
                    return False
                self._unopened = Remainder(chunk)
            element = self._unopened.give(1)
            assert element is not None
            components = [row_major(column[0]) for column in element.columns()]
            rows = number_of_rows(self.node, element.structure, components)
        except Exception:
            self.position += 1
            self._held.clear()
            self._have = 0
            raise
        if self._empty is None:
            self._empty = _chunk(element, [slice_rows(component, 0, 0) for component in components])
        if rows:
            self._held.append(_Rows(_chunk(element, components), rows, self.position))
            self._have += rows
        self.position += 1
        return True

    def _cut(self, size: int) -> list[_Rows]:
        """The next ``size`` rows, in slices."""
        parts = []
        self._have -= size
        while size:
            front = self._held[0]
            part = front.cut(min(size, front.count))
            if not front.count:
                self._held.popleft()
            parts.append(part)
            size -= part.count
        return parts

    def _join(self, parts: list[_Rows]) -> Chunk:
        first = parts[0].element
        if len(parts) == 1:
            return first
        for part in parts:
            if part.element.structure != first.structure:
                raise SpecError(
                    f"{self.node.located()}: all rows of a batch need one structure, got {first.structure!r} and "
                    f"{part.element.structure!r} in element {part.position}"
                )
        components: list[Any] = []
        for index, columns in enumerate(zip(*(part.element.columns() for part in parts), strict=True)):
            try:
                components.append(join_rows([column[0] for column in columns]))
            except ColumnMismatchError as error:
                where, before = parts[error.index].position, parts[error.index - 1].position
                raise SpecError(
                    f"{self.node.located()}: {first.structure.component_name(index)} has {error.what} {error.got} in "
                    f"element {where} but {error.before} in element {before}; all rows of a batch need one {error.what}"
                ) from None
        return _chunk(first, components)

    def _empty_batch(self) -> Chunk | None:
        """A batch of no rows; None where no element ever came and only one could have told its shape."""
        if spec_is_static(self.node.source):
            structure, specs = flatten_spec(self.node.element_spec)
            return Chunk(structure, 1, [[empty_component(spec)] for spec in specs])
        if self._empty is None and not self._open_next(1):
            return None
        return self._empty

    def state_dict(self) -> State:
        return {
            **super().state_dict(),
            "position": self.position,
            "turn": self.turn,
            "ended": self.ended,
            "unopened": save_chunk(self._unopened.rest()),
            "held": [{"rows": save_chunk(rows.rest()), "position": rows.position} for rows in self._held],
            "empty": save_chunk(self._empty),
        }

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self.position = int(state["position"])
        self.turn = int(state["turn"])
        self.ended = bool(state["ended"])
        self._unopened = Remainder(load_chunk(state["unopened"], self._spec))
        self._empty = load_chunk(state["empty"], self._spec)
        for saved in state["held"]:
            element = load_chunk(saved["rows"], self._spec)
            assert element is not None
            rows = number_of_rows(self.node, element.structure, [column[0] for column in element.columns()])
            self._held.append(_Rows(element, rows, int(saved["position"])))
            self._have += rows

    def _spec(self) -> Any:
        return self.node.source.element_spec


class _Rows:
    """Rows ``start`` to ``start + count`` of a chunk of one element, whose number in the input is ``position``."""

    __slots__ = ("count", "element", "position", "start")

    def __init__(self, element: Chunk, count: int, position: int, start: int = 0) -> None:
        self.element = element
        self.count = count
        self.position = position
        self.start = start

    def cut(self, count: int) -> _Rows:
        """The first ``count`` rows, which are no longer in this."""
        columns = self.element.columns()
        start, stop = self.start, self.start + count
        self.start, self.count = stop, self.count - count
        return _Rows(
            _chunk(self.element, [slice_rows(column[0], start, stop) for column in columns]), count, self.position
        )

    def rest(self) -> Chunk:
        """All rows, without those that were cut off."""
        return _Rows(self.element, self.count, self.position, self.start).cut(self.count).element


def _chunk(like: Chunk, components: list[Any]) -> Chunk:
    """One element of the structure of ``like``."""
    return Chunk(like.structure, 1, [[component] for component in components])
