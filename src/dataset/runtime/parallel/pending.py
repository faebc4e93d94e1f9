"""What has to come out later, in order: elements, and exceptions in the places of elements.

Operators hold such a queue where they have more than they were asked for, or an exception behind elements that come
first. A saved state holds it by value.
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
        counted_bytes: of what is held, as far as it was said when it was put here. A chunk that is handed out in pieces
            is held until the last of them.
    """

    __slots__ = ("_failures", "_front", "_front_bytes", "_items", "_length", "counted_bytes")

    def __init__(self) -> None:
        self.counted_bytes = 0
        self._front = Remainder()
        self._front_bytes = 0
        self._items: deque[tuple[Outcome, int]] = deque()  # with their counted bytes
        self._length = 0
        self._failures = 0

    def __len__(self) -> int:
        return self._length

    @property
    def holds_failure(self) -> bool:
        """Whether there is an exception somewhere."""
        return self._failures > 0

    def put(self, item: Outcome, nbytes: int = 0) -> None:
        """Add an item behind all others; ``nbytes`` of it count."""
        self._items.append((item, nbytes))
        self.counted_bytes += nbytes
        self._count(item, 1)

    def put_first(self, item: Outcome, nbytes: int = 0) -> None:
        """Add an item before all others."""
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
        """The next 1 to ``n`` elements; raises the exception where one is next; None where nothing is left."""
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
        """The same, but as many as there are before an exception or another structure, in one chunk."""
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
        """The chunks as one; where there is no memory for it, they are the next again."""
        try:
            return Chunk.concatenate(parts)
        except BaseException:
            for part in reversed(parts):
                self.put_first(part)
            raise

    def _continues(self, structure: Structure) -> bool:
        """Whether a chunk of this structure is next; the front one has been given whole."""
        item = self._items[0][0] if self._items else None
        return isinstance(item, Chunk) and (item.structure is structure or item.structure == structure)

    def give_chunk(self) -> Chunk | None:
        """The first item, if it is a chunk of which nothing has been given."""
        if self._items and isinstance(self._items[0][0], Chunk) and not self._front:
            return self.give(1 << 62)
        return None

    def collect(self, pull: Callable[[int], Chunk | None], n: int, *, drops_traceback: bool = False) -> Chunk | None:
        """``n`` elements out of several pulls; fewer at the end, or where an exception is next, which waits here.

        Operators with chunks of their own making use it, such as the blocks of a file: chunks as long as they were
        asked for spare everybody above the joining.

        Args:
            pull: gives up to as many as it is asked for.
            n: how many.
            drops_traceback: whether an exception that has to wait forgets where it came through: for code of the
                library only, of which that tells nobody anything. It would keep the iterator alive until the garbage
                collector comes.
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
                self.extend(parts)  # an interrupt comes out at once, and loses nothing
                raise
            if part is None:
                break
            parts.append(part)
            have += part.length
        return self._joined(parts) if parts else None

    def take_all(self) -> list[Outcome]:
        """Everything, which is then not here any more."""
        items = self.items()
        self.clear()
        return items

    def take_from(self, other: Pending) -> None:
        """Put all that ``other`` holds behind what is here, with its counted bytes."""
        rest = other._front.rest()
        if rest is not None:
            self.put(rest, other._front_bytes)
        for item, nbytes in other._items:
            self.put(item, nbytes)
        other.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._front = Remainder()
        self._items.clear()
        self._length = self._failures = self.counted_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, as far as they tell."""
        return sum(item.nbytes for item in self.items() if isinstance(item, Chunk))

    def items(self) -> list[Outcome]:
        """All that is held, in order."""
        rest = self._front.rest()
        items = [item for item, _ in self._items]
        return items if rest is None else [rest, *items]

    def save(self) -> list[Any]:
        """The queue as plain data."""
        return save_pending(self.items())

    def load(self, data: Any, spec: SpecGetter) -> None:
        """Put a saved queue behind what is here; ``spec`` as for load_chunk. All its bytes count."""
        for item in load_pending(data, spec):
            self.put(item, nbytes_of(item))

    def extend(self, items: Iterable[Outcome]) -> None:
        """Add several items."""
        for item in items:
            self.put(item)
