"""Outcome queue: elements, and exceptions in the places of elements, in order.

Operators hold such a queue if they have more elements than were requested, or an exception after elements that come
first. A saved state holds its content by value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from dataset.plan.structure import Structure
from dataset.runtime.chunks.chunk import Chunk, Outcome, nbytes_of
from dataset.runtime.resources.exceptions import concerns_iteration, forget_own_frames
from dataset.runtime.state.saved_chunks import SpecGetter, load_pending, save_pending


class OutcomeQueue:
    """A queue of chunks and exceptions. Its length is in elements; an exception counts as one.

    One thread may put while another takes, without a lock: each has its own counters. Only the taking thread may call
    any other method than ``put`` and ``extend``.

    Attributes:
        items: the chunks and exceptions, with their declared sizes. Only its truth value is for other classes: it takes
            no call.
        bytes_given: the sizes, as declared to ``put``, of all items that have left. A chunk that is handed out in
            pieces leaves with its last piece.
    """

    __slots__ = ("_bytes_put", "_failures_put", "_failures_taken", "_put", "_start", "_taken", "bytes_given", "items")

    def __init__(self) -> None:
        self.items: deque[tuple[Outcome, int]] = deque()  # with their declared sizes
        self._start = 0  # elements of the first chunk that were handed out
        self._put = self._taken = 0
        self._failures_put = self._failures_taken = 0
        self._bytes_put = self.bytes_given = 0

    def __bool__(self) -> bool:
        return bool(self.items)

    def __len__(self) -> int:
        return self._put - self._taken

    @property
    def counted_bytes(self) -> int:
        """The declared sizes of all items in the queue."""
        return self._bytes_put - self.bytes_given

    @property
    def holds_failure(self) -> bool:
        """Whether the queue contains an exception."""
        return self._failures_put > self._failures_taken

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes, as far as known."""
        return sum(map(nbytes_of, self.outcomes()))

    def put(self, item: Outcome, nbytes: int = 0) -> None:
        """Append an item and count ``nbytes`` for it."""
        self.items.append((item, nbytes))  # first: if memory is insufficient, nothing is counted
        self._bytes_put += nbytes
        if isinstance(item, Chunk):
            self._put += item.length
        else:
            forget_own_frames(item)
            self._put += 1
            self._failures_put += 1

    def extend(self, items: Iterable[Outcome]) -> None:
        """Append several items."""
        for item in items:
            self.put(item)

    def put_first(self, item: Outcome, nbytes: int = 0) -> None:
        """Prepend an item and count ``nbytes`` for it."""
        if self._start:
            first, first_bytes = self.items[0]
            assert isinstance(first, Chunk)  # an exception leaves as a whole
            self.items[0] = first.slice(self._start, first.length), first_bytes
            self._start = 0
        self.items.appendleft((item, nbytes))
        self._count(item, nbytes, -1)

    def _count(self, item: Outcome, nbytes: int, sign: int) -> None:
        self.bytes_given += sign * nbytes
        if isinstance(item, Chunk):
            self._taken += sign * item.length
        else:
            self._taken += sign
            self._failures_taken += sign

    def next_chunk(self) -> Chunk | None:
        """Return the chunk of the next element; None if an exception is next or the queue is empty."""
        first = self.items[0][0] if self.items else None
        return first if isinstance(first, Chunk) else None

    def waiting(self) -> int:
        """Return how many elements can be taken in one chunk."""
        first = self.next_chunk()
        return 0 if first is None else first.length - self._start

    def give(self, n: int) -> Chunk | None:
        """Return the next 1 to ``n`` elements, or None if the queue is empty; raise an exception that is next."""
        items = self.items
        if not items:
            return None
        item, nbytes = items[0]
        if isinstance(item, BaseException):
            items.popleft()
            self._count(item, nbytes, 1)
            try:
                raise item
            finally:
                del item  # see runtime/contract.py on exceptions that are kept
        start, stop = self._start, self._start + n
        if stop >= item.length:
            stop = item.length
            items.popleft()
            self._start = 0
            self.bytes_given += nbytes
        else:
            self._start = stop
        self._taken += stop - start
        return item.slice(start, stop)

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
        """Return whether a chunk of this structure is next."""
        first = self.next_chunk()
        return first is not None and (first.structure is structure or first.structure == structure)

    def collect(self, pull: Callable[[int], Chunk | None], n: int) -> Chunk | None:
        """Return what is queued, or else ``n`` elements from several pulls.

        They are fewer at the end and before an exception, which is queued. Used by operators whose own chunks have
        other sizes, such as the blocks of a file. With chunks of the requested size, the operators above need not join
        them.

        Args:
            pull: returns up to the requested number of elements.
            n: how many elements.
        """
        if self.items:
            return self.give(n)
        parts: list[Chunk] = []
        have = 0
        while have < n:
            try:
                part = pull(n - have)
            except BaseException as error:
                if parts and isinstance(error, Exception) and not concerns_iteration(error):
                    self.put(error)
                    break
                self.extend(parts)  # an interrupt and a fault are raised at once, and no element is lost
                raise
            if part is None:
                break
            if part.length == n:
                return part
            parts.append(part)
            have += part.length
        return self._joined(parts) if parts else None

    def outcomes(self) -> list[Outcome]:
        """Return all outcomes in order."""
        found = [item for item, _ in list(self.items)]  # a copy, as another thread may put
        first = found[0] if found else None
        if isinstance(first, Chunk):
            found[0] = first.slice(self._start, first.length)
        return found

    def take_all(self) -> list[Outcome]:
        """Remove and return all items."""
        found = self.outcomes()
        self.clear()
        return found

    def take_from(self, other: OutcomeQueue) -> None:
        """Append all items of ``other``, with their declared sizes, and clear it."""
        sizes = [nbytes for _, nbytes in other.items]
        for item, nbytes in zip(other.outcomes(), sizes, strict=True):
            self.put(item, nbytes)
        other.clear()

    def clear(self) -> None:
        """Remove all items."""
        self.items.clear()
        self._start = 0
        self._taken, self._failures_taken, self.bytes_given = self._put, self._failures_put, self._bytes_put

    def save(self, count: int | None = None) -> list[Any]:
        """Return the first ``count`` outcomes as plain data; by default all."""
        return save_pending(self.outcomes() if count is None else first_outcomes(self.outcomes(), count))

    def load(self, data: Any, spec: SpecGetter) -> None:
        """Append a saved queue; ``spec`` as for load_chunk. The full size of each item is counted."""
        for item in load_pending(data, spec):
            self.put(item, nbytes_of(item))


def first_outcomes(items: Iterable[Outcome], count: int) -> list[Outcome]:
    """Return the first ``count`` outcomes; an exception counts as one."""
    found: list[Outcome] = []
    for item in items:
        if not count:
            break
        part = item.slice(0, min(item.length, count)) if isinstance(item, Chunk) else item
        count -= part.length if isinstance(part, Chunk) else 1
        found.append(part)
    return found
