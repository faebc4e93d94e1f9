"""What has to come out later, in order: elements, and exceptions in the places of elements.

Operators hold such a queue where they have more than they were asked for, or an exception behind elements that come
first. A saved state holds it by value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dataset.runtime.chunk import Chunk, Remainder
from dataset.runtime.state import SpecGetter, load_pending, save_pending


class Pending:
    """A queue of chunks and exceptions."""

    __slots__ = ("_front", "_items")

    def __init__(self) -> None:
        self._front = Remainder()
        self._items: deque[Chunk | BaseException] = deque()

    def __bool__(self) -> bool:
        return bool(self._front) or bool(self._items)

    def put(self, item: Chunk | BaseException) -> None:
        """Add an item behind all others."""
        self._items.append(item)

    def put_first(self, chunk: Chunk) -> None:
        """Add a chunk before all others."""
        assert not self._front  # only while nothing has been given of the first
        self._items.appendleft(chunk)

    def give(self, n: int) -> Chunk | None:
        """The next 1 to ``n`` elements; raises the exception where one is next; None where nothing is left."""
        if self._front:
            return self._front.give(n)
        if not self._items:
            return None
        item = self._items.popleft()
        if isinstance(item, BaseException):
            try:
                raise item
            finally:
                del item  # see runtime/operator.py on exceptions that are kept
        self._front = Remainder(item)
        return self._front.give(n)

    def give_chunk(self) -> Chunk | None:
        """The first item, if it is a chunk of which nothing has been given."""
        if self._items and isinstance(self._items[0], Chunk) and not self._front:
            self._front = Remainder(self._items.popleft())  # type: ignore[arg-type]  # just tested
            return self._front.give(1 << 62)
        return None

    def collect(self, pull: Callable[[int], Chunk | None], n: int) -> Chunk | None:
        """``n`` elements out of several pulls; fewer at the end, or where an exception is next, which waits here.

        Operators with chunks of their own making use it, such as the blocks of a file: chunks as long as they were
        asked for spare everybody above the joining.
        """
        parts: list[Chunk] = []
        have = 0
        while have < n:
            try:
                part = pull(n - have)
            except BaseException as error:
                if parts and isinstance(error, Exception):
                    self.put(error)
                    break
                self.extend(parts)  # an interrupt comes out at once, and loses nothing
                raise
            if part is None:
                break
            parts.append(part)
            have += part.length
        return Chunk.concatenate(parts) if parts else None

    def clear(self) -> None:
        """Forget everything."""
        self._front = Remainder()
        self._items.clear()

    def __len__(self) -> int:
        """How many elements there are, each exception counting as one."""
        return sum(1 if isinstance(item, BaseException) else item.length for item in self._all())

    def _all(self) -> list[Chunk | BaseException]:
        rest = self._front.rest()
        return [*self._items] if rest is None else [rest, *self._items]

    def save(self) -> list[Any]:
        """The queue as plain data."""
        return save_pending(self._all())

    def load(self, data: Any, spec: SpecGetter) -> None:
        """Put a saved queue behind what is here; ``spec`` as for load_chunk."""
        self.extend(load_pending(data, spec))

    def extend(self, items: Iterable[Chunk | BaseException]) -> None:
        """Add several items."""
        self._items.extend(items)
