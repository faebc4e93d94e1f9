"""Node and rows of a source over any object with ``__len__`` and ``__getitem__``, such as a map-style dataset.

The object is user code: it is only called for requested rows, at the time they are requested. A downstream shuffle,
skip or shard moves row numbers. ``from_torch`` creates this node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dataset.errors import SpecError
from dataset.ops.sources.row_source import Rows, RowSource
from dataset.plan.lazy import lazy_property, once
from dataset.plan.structure import Structure, StructureMismatchError, structure_of
from dataset.plan.traits import Traits
from dataset.runtime.chunks.chunk import Array, Chunk
from dataset.runtime.chunks.ownership import own
from dataset.runtime.functions.signature_rows import SignatureRows
from dataset.runtime.iteration.probing import probed_spec
from dataset.runtime.metrics.dropped import DroppedCount
from dataset.runtime.resources.exceptions import with_location
from dataset.world.interrupts import interruptible


def as_it_is(item: Any) -> Any:
    """Return the item."""
    return item


@dataclass(frozen=True, eq=False)
class IndexedSource(RowSource, pure=False):
    """Source node whose element ``i`` is ``convert(data[i])``.

    If ``data`` has ``__getitems__``, which takes a list of indices and returns a list of items, it is called once for
    all requested rows.

    ``convert`` converts an item into an element. Read-only arrays that it returns are not copied: their memory must not
    change. Other arrays are copied, unless nothing else refers to them.
    """

    op: ClassVar[str] = "indexed_source"
    method: str
    """The name of the source's Dataset method, for messages and plans."""

    data: Any
    signature: Any = None
    convert: Callable[[Any], Any] = field(default=as_it_is, repr=False)

    @lazy_property
    def traits(self) -> Traits:
        return super().traits.having(static_spec=self.signature is not None)

    @once
    def _length(self) -> int:
        return len(self.data)

    @property
    def all_rows(self) -> range:
        return range(self._length())

    @property
    def structure(self) -> Structure:
        return structure_of(self.element_spec)

    def _element_spec(self) -> Any:
        return probed_spec(self) if self.signature is None else self.signature

    def label(self) -> str:
        rows = "" if self.takes_all else super().label().removeprefix(self.op)
        return f"{self.method}({type(self.data).__name__}){rows}"

    def parameters(self) -> dict[str, Any]:
        chosen = {} if self.takes_all else {"rows": str(self.rows)}
        named = {"method": self.method, "data": type(self.data).__name__, "length": self._length()}
        return {**named, "signature": repr(self.signature), **chosen}

    def fingerprint_fields(self) -> Any:
        return [self.parameters(), self.data]

    def open_rows(self, skipped: DroppedCount) -> IndexedRows:  # noqa: ARG002  # drops no rows
        return IndexedRows(self)


class IndexedRows(Rows):
    """Row reader. Each row is requested once: rows after a failed one are buffered."""

    def __init__(self, node: IndexedSource) -> None:
        self.node = node
        self._rows = SignatureRows(f"{node.label()} gave", node.signature)
        self._waiting: deque[tuple[int, Any]] = deque()  # row numbers with their items or _FailedRow

    def take(self, numbers: Array) -> Chunk:
        wanted = numbers.tolist()
        if not self._waiting or self._waiting[0][0] != wanted[0]:
            chunk = self._ask(wanted)
            if chunk is not None:
                return chunk
        return self._give_one()

    def _ask(self, wanted: list[int]) -> Chunk | None:
        """Request rows. Return those before the first failure; None if they must be returned one by one."""
        self._waiting.clear()
        rows: list[Any] = []
        self._collect(rows, wanted)
        try:
            return self._rows.chunk(rows) if rows else None
        except (StructureMismatchError, SpecError, TypeError, ValueError):
            self._waiting.extendleft(reversed(list(zip(wanted, rows, strict=False))))
            return None

    @interruptible
    def _collect(self, rows: list[Any], wanted: list[int]) -> None:
        shared: list[Array] = []
        try:
            items = self._items(wanted)
            for _ in wanted:
                rows.append(own(self._converted(next(items), shared), shared))  # kept if a later one fails
                shared.clear()
        except Exception as error:  # noqa: BLE001  # raised at its position
            number = wanted[len(rows)]
            self._waiting.append((number, _FailedRow(with_location(error, self.node, number, "item"))))

    def _items(self, wanted: list[int]) -> Iterator[Any]:
        """Yield the items of the object one by one, without keeping references to them."""
        many = getattr(self.node.data, "__getitems__", None) if len(wanted) > 1 else None
        if many is None:
            return map(self.node.data.__getitem__, wanted)
        try:
            items = list(many(wanted))
        except Exception:  # noqa: BLE001  # single requests find the row that fails
            return map(self.node.data.__getitem__, wanted)
        if len(items) != len(wanted):
            raise SpecError(
                f"{type(self.node.data).__name__}.__getitems__() must return one item per requested index: expected "
                f"{len(wanted)} items, got {len(items)}"
            )
        items.reverse()
        return (items.pop() for _ in wanted)

    def _converted(self, item: Any, shared: list[Array]) -> Any:
        """Convert an item into an element; append its arrays that need no copy to ``shared``."""
        element = self.node.convert(item)
        parts = structure_of(element).flatten(element)
        shared.extend(part for part in parts if isinstance(part, np.ndarray) and not part.flags.writeable)
        return element

    def _give_one(self) -> Chunk:
        number, row = self._waiting.popleft()
        if isinstance(row, _FailedRow):
            raise row.error
        try:
            return self._rows.chunk([row])
        except StructureMismatchError:
            raise with_location(self._rows.mismatch(row), self.node, number, "item") from None
        except (SpecError, TypeError, ValueError) as error:
            with_location(error, self.node, number, "item")
            raise


class _FailedRow(NamedTuple):
    """Exception in place of an item."""

    error: Exception
