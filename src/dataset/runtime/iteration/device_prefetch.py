"""What a framework's devices are fed by: the last operator converts the elements, a few before they are asked for.

It has no thread. Whoever asks for an element waits for the conversion of one further ahead to be begun, so this suits
conversions that go on by themselves, such as a copy to a device. To make the elements themselves in the background is
what ``prefetch`` is for.

The state belongs to the element that was handed out last. It is a place of the input, as that of ``prefetch`` is;
elements stand in it by value only where the input cannot repeat its order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from dataset.plan.node import Node
from dataset.plan.structure import LEAF, structure_of
from dataset.runtime.chunks.chunk import Chunk, Outcome
from dataset.runtime.context import ExecutionContext
from dataset.runtime.contract import Operator, State, UnaryOperator
from dataset.runtime.parallel.pending import Pending
from dataset.runtime.resources.exceptions import concerns_iteration
from dataset.runtime.state.replay_log import ReplayLog
from dataset.runtime.state.saved_chunks import save_pending

Convert = Callable[[Any], tuple[Any, Any]]
"""Takes an element, returns what to hand out for it, and the element to keep until then, for a saved state.

It is called in the thread that asks for an element; user code it must not be.
"""


@dataclass(frozen=True, slots=True)
class DevicePrefetch:
    """How elements leave: to be given to a DatasetIterator.

    Attributes:
        convert: makes of an element what is handed out.
        ahead: how many more elements may be asked for than were handed out.
    """

    convert: Convert
    ahead: int

    def __call__(self, build: ExecutionContext, plan: Node) -> Operator:
        """The operator that reads from the plan's last."""
        return DevicePrefetchOperator(build(plan), build, plan, self)


class _Item(NamedTuple):
    """An element, or an exception in its place.

    Attributes:
        converted: what to hand out.
        element: as it is in a saved state.
        number: how many elements had been read of the input with it; None if it is out of a saved state.
        error: in the place of the element.
    """

    converted: Any
    element: Any
    number: int | None
    error: Exception | None = None

    @property
    def outcome(self) -> Outcome:
        """For a saved state."""
        return self.error or Chunk(structure_of(self.element), 1, rows=[self.element])


class DevicePrefetchOperator(UnaryOperator):
    """Holds up to ``ahead`` converted elements, and exceptions in the places of elements.

    An exception of the conversion takes the place of its element, too.
    """

    def __init__(self, source: Operator, build: ExecutionContext, node: Node, how: DevicePrefetch) -> None:
        super().__init__(source)
        self._build = build
        self._node = node
        self._how = how
        self._feed = _Feed(source, build if how.ahead else None)
        self._saved_left = 0  # elements out of a saved state that have not been given
        self._items: deque[_Item] = deque()
        self._source = _items(self._feed, how.convert)
        self._ended = False
        self._is_direct = not how.ahead  # nothing is ever held

    def pull(self, n: int) -> Chunk | None:  # noqa: ARG002  # it is asked for one
        if self._is_direct:
            try:
                return Chunk(LEAF, 1, rows=[self._how.convert(self._element())[0]])
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
            return Chunk(LEAF, 1, rows=[item.converted])
        try:
            raise item.error
        finally:
            del item  # see runtime/contract.py on exceptions that are kept

    def _element(self) -> Any:
        """The next one, which nobody else refers to then."""
        chunk = self.source.pull(1)
        if chunk is None:
            raise StopIteration
        return chunk.only()

    def _read(self) -> None:
        try:
            self._items.append(next(self._source))
        except StopIteration:
            self._ended = True
        except BaseException:  # an interrupt, or ClosedError: they stand for no element, and end the generator
            self._source = _items(self._feed, self._how.convert)
            raise

    def seek(self, count: int) -> None:
        self.source.seek(count)

    def state_dict(self) -> State:
        trail = self._feed.trail
        by_place = self._how.ahead and self._build.repeats_input and not (self._saved_left or trail.is_behind)
        if by_place and self._items:
            return self._state(trail.place(self._feed.given), [])
        place = trail.place(trail.given) if trail.is_behind else {"source": self.source.state_dict(), "behind": 0}
        return self._state(place, save_pending([item.outcome for item in self._items]) + self._feed.saved.save())

    def _state(self, place: State, held: list[Any]) -> State:
        """``held`` are the elements before those at the place."""
        return {"op": "outgoing", **place, "held": held}

    def load_state_dict(self, state: State) -> None:
        self._feed.saved.load(state["held"], lambda: self._node.element_spec)
        self._saved_left = len(self._feed.saved)
        self._feed.trail.load(state)
        self._feed.given = self._feed.trail.given
        self._is_direct = not (self._how.ahead or self._saved_left or self._feed.given)

    def close(self) -> None:
        self._items.clear()
        super().close()


class _Feed(Iterator[Any]):
    """The elements to be converted: those of a saved state, then those of the input, on which it leaves a trail.

    Args:
        source: the input.
        build: says whether marks are of use; None if they never are.
    """

    def __init__(self, source: Operator, build: ExecutionContext | None) -> None:
        self._source = source
        self._build = build
        self.trail = ReplayLog(source)
        self.saved = Pending()
        self.given = 0
        """Elements that were handed out, counted as the trail counts."""
        self.number: int | None = None
        """Of the element that was taken last, as items have it."""

    def __next__(self) -> Any:
        self.number = None
        chunk = self.saved.give(1) if self.saved else self._pull()
        if chunk is None:
            raise StopIteration
        return chunk.only()

    def _pull(self) -> Chunk | None:
        trail = self.trail
        trail.go_on()
        if self._build is not None and self._build.repeats_input:
            trail.forget(self.given)
            trail.step()
        try:
            return trail.pull(1)
        finally:
            self.number = trail.read


def _items(feed: _Feed, convert: Convert) -> Iterator[_Item]:
    """The converted elements, and exceptions in the places of elements.

    A generator on purpose. An exception that waits for its turn refers to the frames that it came through, and they to
    those who called them, up to the user's loop, which holds the iterator: it could not be dropped. A generator that
    waits has no caller.
    """
    while True:
        found: list[_Item] = []  # emptied before it waits: its frame must not hold such an exception
        try:
            found.append(_Item(*convert(next(feed)), number=feed.number))
        except StopIteration:
            return
        except Exception as error:
            if concerns_iteration(error):
                raise
            found.append(_Item(None, None, feed.number, error))
        yield found.pop()
