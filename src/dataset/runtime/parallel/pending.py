"""Queue of pending outcomes: elements, and exceptions in the places of elements.

Operators hold such a queue if they have more elements than were requested, or an exception after elements that come
first. A saved state holds its content by value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk, Outcome, Remainder, nbytes_of
from dataset.runtime.state.saved_chunks import SpecGetter, load_pending, save_pending


class Pending:
    """A queue of chunks and exceptions. Its length is in elements; an exception counts as one.

    Attributes:
        counted_bytes: the sum of the sizes given to ``put`` for the items in the queue. A chunk that is handed out in
            pieces counts until its last piece.
    """

    __slots__ = ("_failures", "_front", "_front_bytes", "_items", "_length", "counted_bytes")

    def __init__(self) -> None:
        self.counted_bytes = 0
        self._front = Remainder()
        self._front_bytes = 0
        self._items: deque[tuple[Outcome, int]] = deque()  # with their accounted bytes
        self._length = 0
        self._failures = 0

    def __len__(self) -> int:
        return self._length

    @property
    def holds_failure(self) -> bool:
        """Whether the queue contains an exception."""
        return self._failures > 0

    def put(self, item: Outcome, nbytes: int = 0) -> None:
        """Append an item and account ``nbytes`` for it."""
        self._items.append((item, nbytes))
        self.counted_bytes += nbytes
        self._count(item, 1)

    def put_first(self, item: Outcome, nbytes: int = 0) -> None:
        """Prepend an item and account ``nbytes`` for it."""
        rest = self._front.rest()
        if rest is not None:
            self._items.appendleft((rest, self._front_bytes))
            self._front = Remainder()
        self._items.appendleft((item, nbytes))
        self.counted_bytes += nbytes
        self._count(item, 1)

    def _count(self, item: Outcome, sign: int) -> None:
        if isinstance(item, Chunk):
            self._length += sign * item.length
        else:
            self._length += sign
            self._failures += sign

    def give(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements, or None if the queue is empty; raise an exception that is next."""
        if not self._front:
            if not self._items:
                return None
            item, nbytes = self._items.popleft()
            if isinstance(item, BaseException):
                self.counted_bytes -= nbytes
                self._count(item, -1)
                try:
                    raise item
                finally:
                    del item  # see runtime/contract.py on exceptions that are kept
            self._front, self._front_bytes = Remainder(item), nbytes
        chunk = self._front.give(n)
        assert chunk is not None  # it is not empty
        self._length -= chunk.length
        if not self._front:
            self.counted_bytes -= self._front_bytes
        return chunk

    def give_joined(self, n: int) -> Chunk | None:
        """Return up to ``n`` elements as one chunk, up to an exception or a change of structure."""
        first = self.give(n)
        if first is None or first.length == n:
            return first
        parts, have = [first], first.length
        while have < n and self._continues(first.structure):
            part = self.give(n - have)
            assert part is not None
            parts.append(part)
            have += part.length
        return self._joined(parts)

    def _joined(self, parts: list[Chunk]) -> Chunk:
        """Return the chunks as one; if memory is insufficient, put them back."""
        try:
            return Chunk.concatenate(parts)
        except BaseException:
            for part in reversed(parts):
                self.put_first(part)
            raise

    def _continues(self, structure: Structure) -> bool:
        """Return whether a chunk of this structure is next; the front chunk has been handed out completely."""
        item = self._items[0][0] if self._items else None
        return isinstance(item, Chunk) and (item.structure is structure or item.structure == structure)

    def give_chunk(self) -> Chunk | None:
        """Return the first item, if it is a chunk from which no element was handed out."""
        if self._items and isinstance(self._items[0][0], Chunk) and not self._front:
            return self.give(1 << 62)
        return None

    def collect(self, pull: Callable[[int], Chunk | None], n: int, *, drops_traceback: bool = False) -> Chunk | None:
        """Return ``n`` elements from several pulls; fewer at the end or before an exception, which is queued.

        Used by operators whose own chunks have other sizes, such as the blocks of a file. With chunks of the requested
        size, the operators above need not join them.

        Args:
            pull: returns up to the requested number of elements.
            n: how many elements.
            drops_traceback: whether to remove the traceback of an exception that is queued, which would keep the
                iterator alive until a garbage collection. For library code only, where the traceback is not
                informative.
        """
        parts: list[Chunk] = []
        have = 0
        while have < n:
            try:
                part = pull(n - have)
            except BaseException as error:
                if parts and isinstance(error, Exception):
                    self.put(error.with_traceback(None) if drops_traceback else error)
                    break
                self.extend(parts)  # an interrupt is raised at once, and no element is lost
                raise
            if part is None:
                break
            parts.append(part)
            have += part.length
        return self._joined(parts) if parts else None

    def take_all(self) -> list[Outcome]:
        """Remove and return all items."""
        items = self.items()
        self.clear()
        return items

    def take_from(self, other: Pending) -> None:
        """Append all items of ``other``, with their accounted bytes, and clear it."""
        rest = other._front.rest()
        if rest is not None:
            self.put(rest, other._front_bytes)
        for item, nbytes in other._items:
            self.put(item, nbytes)
        other.clear()

    def clear(self) -> None:
        """Remove all items."""
        self._front = Remainder()
        self._items.clear()
        self._length = self._failures = self.counted_bytes = 0

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes, as far as known."""
        return sum(item.nbytes for item in self.items() if isinstance(item, Chunk))

    def items(self) -> list[Outcome]:
        """Return all items in order."""
        rest = self._front.rest()
        items = [item for item, _ in self._items]
        return items if rest is None else [rest, *items]

    def save(self) -> list[Any]:
        """Return the queue as plain data."""
        return save_pending(self.items())

    def load(self, data: Any, spec: SpecGetter) -> None:
        """Append a saved queue; ``spec`` as for load_chunk. The full size of each item is accounted."""
        for item in load_pending(data, spec):
            self.put(item, nbytes_of(item))

    def extend(self, items: Iterable[Outcome]) -> None:
        """Append several items."""
        for item in items:
            self.put(item)
