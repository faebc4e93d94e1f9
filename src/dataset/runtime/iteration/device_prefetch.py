"""Device prefetch: the last operator of a framework iterator, which converts elements ahead of the consumer.

It uses no thread. A request for an element also starts the conversion of a later element, so this suits conversions
that run asynchronously, such as a copy to a device. To compute the elements themselves in the background, use
``prefetch``.

The state corresponds to the element handed out last. As with ``prefetch``, it is a position of the input. It contains
elements by value only if the input cannot repeat its order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dataset.plan.node import Node
from dataset.plan.structure import LEAF, Structure, structure_of
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.chunks.lineage import Lineage
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, UnaryOperator
from dataset.runtime.parallel.outcome_queue import OutcomeQueue
from dataset.runtime.position import Position
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import save_pending

Convert = Callable[[Any], tuple[Any, Any]]
"""Takes an element; returns what to hand out, and the element to keep until then for a saved state.

Called in the consumer's thread; it must not be user code.
"""


@dataclass(frozen=True, slots=True)
class DevicePrefetch:
    """Settings of device prefetch, passed to a DatasetIterator.

    Attributes:
        convert: converts an element to what is handed out.
        ahead: how many elements to convert ahead of the one handed out.
    """

    convert: Convert
    ahead: int

    def __call__(self, context: ExecutionContext, plan: Node) -> Operator:
        """Open the operator that reads from the plan's last operator."""
        return DevicePrefetchOperator(context(plan), context, plan, self)


class _Item(NamedTuple):
    """An element, or an exception in its place.

    Attributes:
        converted: what to hand out.
        element: the element for a saved state.
        number: how many input elements had been read, including this one; None if it comes from a saved state.
        error: the exception in the place of the element.
        lineage: the lineage of the element, if it is recorded.
    """

    converted: Any
    element: Any
    number: int | None
    error: Exception | None = None
    lineage: Lineage | None = None

    @property
    def outcome(self) -> Outcome:
        """The item as an outcome for a saved state."""
        return self.error or _chunk_of(self.element, self.lineage, structure_of(self.element))


class DevicePrefetchOperator(UnaryOperator):
    """Operator that holds up to ``ahead`` converted elements, and exceptions in the places of elements.

    An exception raised by the conversion also takes the place of its element.
    """

    op = "outgoing"

    def __init__(self, source: Operator, context: ExecutionContext, node: Node, how: DevicePrefetch) -> None:
        super().__init__(source)
        self._context = context
        self._node = node
        self._how = how
        self._feed = _Feed(source, context if how.ahead else None)
        self._saved_left = 0  # elements from a saved state that were not handed out yet
        self._items: deque[_Item] = deque()
        self._source = _items(self._feed, how.convert)
        self._ended = False
        self._lineage: Lineage | None = None  # of the last element, if nothing is held
        self._is_direct = not how.ahead  # nothing is held

    def pull(self, n: int) -> Chunk | None:  # noqa: ARG002  # n is always 1
        if self._is_direct:
            try:
                return _chunk_of(self._how.convert(self._element())[0], self._lineage)
            except StopIteration:
                return None
        while not self._ended and len(self._items) <= self._how.ahead:
            self._read()
        if not self._items:
            return None
        item = self._items.popleft()
        if item.number is None:
            self._saved_left -= 1
        else:
            self._feed.given = item.number
        if item.error is None:
            return _chunk_of(item.converted, item.lineage)
        try:
            raise item.error
        finally:
            del item  # see runtime/contract.py on exceptions that are kept

    def _element(self) -> Any:
        """Return the next element without keeping a reference to it."""
        chunk = self.source.pull(1)
        if chunk is None:
            raise StopIteration
        self._lineage = chunk.lineage
        return chunk.only()

    def _read(self) -> None:
        try:
            self._items.append(next(self._source))
        except StopIteration:
            self._ended = True
        except BaseException:  # an interrupt, or ClosedError: they take no element's place, and they end the generator
            self._source = _items(self._feed, self._how.convert)
            raise

    def save(self) -> Position:
        log = self._feed.log
        by_place = self._how.ahead and self._context.input_is_replayable and not (self._saved_left or log.is_behind)
        if by_place and self._items:
            return log.place(self._feed.given)
        items = save_pending([item.outcome for item in self._items]) + self._feed.saved.save()
        return log.present().with_held(items=items)

    def advance(self, position: Position, count: int) -> Position | None:
        return self.advance_log(position, count)

    def load(self, position: Position) -> None:
        self._feed.saved.load(position.held.get("items", ()), lambda: self._node.element_spec)
        self._saved_left = len(self._feed.saved)
        self._feed.log.load(position)
        self._feed.given = self._feed.log.given
        self._is_direct = not (self._how.ahead or self._saved_left or self._feed.given)

    def close(self) -> None:
        self._items.clear()
        super().close()


class _Feed(Iterator[Any]):
    """Input of the conversion: the elements of a saved state, then those of the input, recorded in a replay log.

    Args:
        source: the input.
        context: knows whether the replay log is usable; None if it never is.
    """

    def __init__(self, source: Operator, context: ExecutionContext | None) -> None:
        self._source = source
        self._context = context
        self.log = ReplayLog(source, DevicePrefetchOperator.op)
        self.saved = OutcomeQueue()
        self.given = 0
        """Elements that were handed out, counted like those of the replay log."""
        self.number: int | None = None
        """The number of the last element taken, as in ``_Item.number``."""
        self.lineage: Lineage | None = None
        """The lineage of the last element taken."""

    def __next__(self) -> Any:
        self.number = self.lineage = None
        chunk = self.saved.give(1) if self.saved else self._pull()
        if chunk is None:
            raise StopIteration
        self.lineage = chunk.lineage
        return chunk.only()

    def _pull(self) -> Chunk | None:
        log = self.log
        log.go_on()
        if self._context is not None and self._context.input_is_replayable:
            log.forget(self.given)
            log.step()
        try:
            return log.pull(1)
        finally:
            self.number = log.read


def _chunk_of(element: Any, lineage: Lineage | None, structure: Structure = LEAF) -> Chunk:
    return Chunk(structure, 1, rows=[element], lineage=lineage)


def _items(feed: _Feed, convert: Convert) -> Iterator[_Item]:
    """Yield converted elements, and exceptions in the places of elements.

    This must be a generator. A stored exception refers to the frames that it passed, and through them to their callers,
    up to the user's loop, which holds the iterator. The iterator could then not be dropped. A suspended generator has
    no caller.
    """
    while True:
        found: list[_Item] = []  # emptied before the yield: the frame must not hold an exception
        try:
            found.append(_Item(*convert(next(feed)), number=feed.number, lineage=feed.lineage))
        except StopIteration:
            return
        except Exception as error:
            if concerns_iteration(error):
                raise
            found.append(_Item(None, None, feed.number, error))
        yield found.pop()
